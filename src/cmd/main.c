/* Parses the command line, runs one verb and prints its error once. */
#include <signal.h>

#include "base/core.h"
#include "cmd/options.h"
#include "provider/provider.h"
#include "provider/sudo.h"

static int main_report(const struct error *err)
{
        if (err->message)
                print_err("slipway: %s\n", err->message);
        if (err->hint)
                print_err("hint: %s\n", err->hint);
        return err->status ? (int)err->status : EXIT_INTERNAL;
}

int cmd_version(const struct options *o, struct error *err)
{
        if (o->output && streq(o->output, "json"))
                print("{\"version\": \"%s\"}\n", SLIPWAY_VERSION);
        else
                print("slipway %s\n", SLIPWAY_VERSION);
        return EXIT_OK;
}

static int print_overview(FILE *to)
{
        struct str s CLEANUP(str_release) = { 0 };
        help_overview(&s);
        print_text(to, str_text(&s));
        return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static int print_verb(const struct verb *v)
{
        struct str s CLEANUP(str_release) = { 0 };
        help_verb(v, &s);
        print_text(stdout, str_text(&s));
        return EXIT_OK;
}

static int main_run(int argc, char **argv, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct options o = { 0 };
        const struct verb *v;
        int r = options_parse(argc, argv, &a, &o, &v, err);
        if (r < 0)
                return r;
        if (o.version)
                return cmd_version(&o, err);
        if (o.help)
                return v ? print_verb(v) : print_overview(stdout);
        if (!v)
                return print_overview(stderr);
        if (o.ask_sudo_password && (r = sudo_password_ask(err)) < 0)
                return r;
        return v->run(&o, err);
}

/* Output that could not be written is a failure (a full disk), but a closed pipe is not. */
static int main_finish(int status)
{
        if (fflush(stdout) == 0 && !ferror(stdout))
                return status;
        if (errno == EPIPE)
                return status;
        print_err("slipway: cannot write the output: %s\n", strerror(errno));
        return status ? status : EXIT_INTERNAL;
}

int main(int argc, char **argv)
{
        struct error err CLEANUP(error_release) = { 0 };
        int kept;
        if (provider_keeper(argc, argv, &kept))
                return kept;
        core_never();
        json_set_alloc_funcs(malloc, free_wiped);
        sudo_password_take();
        /* a closed pipe becomes an error of write() and does not kill the process while it
         * writes its state */
        signal(SIGPIPE, SIG_IGN);
        int status = main_run(argc, argv, &err);
        return main_finish(status < 0 ? main_report(&err) : status);
}

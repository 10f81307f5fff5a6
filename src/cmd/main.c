/* Parses the command line, runs one verb, prints its failure once. */
#include <signal.h>

#include "cmd/options.h"
#include "provider/provider.h"
#include "provider/sudo.h"

/* A message from a file name or a node must not steer the terminal. */
static void print_clean(FILE *f, const char *s)
{
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        fprintf(f, "\\x%02x", (unsigned char)*s);
                else
                        fputc(*s, f);
}

static int report(const struct error *err)
{
        if (err->message) {
                fputs("slipway: ", stderr);
                print_clean(stderr, err->message);
                fputc('\n', stderr);
        }
        if (err->hint) {
                fputs("hint: ", stderr);
                print_clean(stderr, err->hint);
                fputc('\n', stderr);
        }
        return err->status ? (int)err->status : EXIT_INTERNAL;
}

int cmd_version(const struct options *o, struct error *err)
{
        if (o->output && streq(o->output, "json"))
                printf("{\"version\": \"%s\"}\n", SLIPWAY_VERSION);
        else
                printf("slipway %s\n", SLIPWAY_VERSION);
        return EXIT_OK;
}

static int print_overview(FILE *to)
{
        struct str s CLEANUP(str_release) = { 0 };
        help_overview(&s);
        fputs(str_text(&s), to);
        return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static int print_verb(const struct verb *v)
{
        struct str s CLEANUP(str_release) = { 0 };
        help_verb(v, &s);
        fputs(str_text(&s), stdout);
        return EXIT_OK;
}

static int run(int argc, char **argv, struct error *err)
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

/* Output that did not reach its reader is a failure (a full disk), though a closed pipe is only the reader's choice. */
static int finish(int status)
{
        if (fflush(stdout) == 0 && !ferror(stdout))
                return status;
        if (errno != EPIPE)
                fprintf(stderr, "slipway: cannot write the output: %s\n", strerror(errno));
        return status ? status : EXIT_INTERNAL;
}

int main(int argc, char **argv)
{
        struct error err CLEANUP(error_release) = { 0 };
        int kept;
        if (provider_keeper(argc, argv, &kept))
                return kept;
        sudo_password_take();
        signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error of write(), not our death with a half-written state */
        int status = run(argc, argv, &err);
        return finish(status < 0 ? report(&err) : status);
}

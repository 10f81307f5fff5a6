/* agent [--root DIR]: speaks the protocol of deliver/wire.h on standard input and output, until its
 * input ends. agent --facts: prints the facts. Standard output has nothing else; errors go to
 * standard error. */
#include <fcntl.h>

#include "agent/agent.h"
#include "base/core.h"
#include "base/file.h"

static void send_error(struct agent *a, const struct error *err)
{
        struct str *out = &a->session.outgoing;
        size_t b = wire_begin(out, WIRE_ERROR);
        wire_text(out, TAG_TEXT, err->message ? err->message : "failed");
        wire_text(out, TAG_HINT, err->hint);
        wire_end(out, b);
        session_flush(&a->session);
        journal(a, "stopped: %s", err->message ? err->message : "failed");
}

static void send_hello(struct agent *a)
{
        struct str *out = &a->session.outgoing, facts CLEANUP(str_release) = { 0 };
        struct drift d;
        drift_begin(a, &d);
        facts_write(a, &facts);
        struct str frame CLEANUP(str_release) = { 0 };
        size_t b = wire_begin(&frame, WIRE_HELLO);
        wire_number(&frame, TAG_VERSION, WIRE_VERSION);
        wire_text(&frame, TAG_FACTS, facts.data);
        wire_text(&frame, TAG_DIGEST, a->record.spec[0] ? a->record.spec : NULL);
        drift_end(a, &d, &frame);
        wire_end(&frame, b);
        str_addn(out, frame.data, frame.len);
}

/* An order may name the node it is for: another host may answer at that node's address. */
static int agent_check_meant(struct agent *a, const struct wire_frame *f, struct error *err)
{
        char *node CLEANUP(free_p) = wire_string(f, TAG_NODE);
        if (node && (!*node || strpbrk(node, "\t\n")))
                return error_set(err, EPROTO, EXIT_STEP,
                        "the node's name is empty or has a tab or line break");
        return agent_meant(a, node, err);
}

static int agent_on_spec(struct agent *a, const struct wire_frame *f, struct error *err)
{
        char *digest CLEANUP(free_p) = wire_string(f, TAG_DIGEST);
        uint64_t count = wire_value(f, TAG_COUNT, 0);
        if (!digest || !sha256_valid(digest) || count > ENTRIES_MAX || a->receiving ||
                a->blob.fd >= 0)
                return error_set(
                        err, EPROTO, EXIT_STEP, "the spec has no digest or too many entries");
        entries_release(a);
        free(a->cluster);
        free(a->node);
        a->cluster = wire_string(f, TAG_NAME);
        a->node = wire_string(f, TAG_NODE);
        if (a->cluster && (!*a->cluster || strpbrk(a->cluster, "\t\n")))
                return error_set(err, EPROTO, EXIT_STEP,
                        "the cluster's id is empty or has a tab or line break");
        memcpy(a->digest, digest, SHA256_HEX);
        a->expected = (size_t)count;
        /* never moves: the index points into it */
        a->entries = xcalloc(a->expected, sizeof(*a->entries));
        a->receiving = true;
        return 0;
}

static int agent_on_entry(struct agent *a, const struct wire_frame *f, struct error *err)
{
        return a->receiving ? entry_decode(a, f, err)
                            : error_set(err, EPROTO, EXIT_STEP, "an ENTRY frame came before SPEC");
}

static int agent_on_spec_end(struct agent *a, const struct wire_frame *f, struct error *err)
{
        (void)f;
        if (!a->receiving || a->count != a->expected)
                return error_set(err, EPROTO, EXIT_STEP,
                        "the spec ended after %zu of its %zu entries", a->count, a->expected);
        a->receiving = false;
        a->complete = true;
        spec_needs(a);
        return 0;
}

static int agent_on_apply(struct agent *a, const struct wire_frame *f, struct error *err)
{
        uint64_t mode = wire_value(f, TAG_MODE, 0);
        if (!a->complete || a->blob.fd >= 0 || mode >= APPLY_MODES)
                return error_set(err, EPROTO, EXIT_STEP,
                        a->blob.fd >= 0 ? "a blob is incomplete" : "no spec was sent before APPLY");
        return spec_apply(a, (enum apply_mode)mode, err);
}

static int agent_on_run(struct agent *a, const struct wire_frame *f, struct error *err)
{
        return session_run(&a->session, f, err);
}

static const struct {
        enum wire_type type;
        int (*handle)(struct agent *a, const struct wire_frame *f, struct error *err);
} handlers[] = {
        { WIRE_SPEC, agent_on_spec },
        { WIRE_ENTRY, agent_on_entry },
        { WIRE_SPEC_END, agent_on_spec_end },
        { WIRE_BLOB, store_begin },
        { WIRE_DATA, store_data },
        { WIRE_APPLY, agent_on_apply },
        { WIRE_RUN, agent_on_run },
};

static bool is_order(enum wire_type t)
{
        return t == WIRE_SPEC || t == WIRE_APPLY || t == WIRE_RUN;
}

static int agent_handle(struct agent *a, const struct wire_frame *f, struct error *err)
{
        if (is_order(f->type) && agent_check_meant(a, f, err) < 0)
                return -err->code;
        for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
                if (handlers[i].type == f->type)
                        return handlers[i].handle(a, f, err);
        return error_set(err, EPROTO, EXIT_STEP, "the agent does not accept frames of type %d",
                (int)f->type);
}

/* Until the input ends; complete frames before its end are handled. */
static int agent_serve(struct agent *a, struct error *err)
{
        struct wire_frame f;
        for (;;) {
                int r = session_frame(&a->session, &f);
                if (r < 0)
                        return error_set(
                                err, EPROTO, EXIT_STEP, "the input is not of the agent's protocol");
                if (r > 0) {
                        r = agent_handle(a, &f, err);
                        session_drop(&a->session, &f);
                        if (r < 0)
                                return r;
                } else if (a->session.eof || a->session.broken)
                        return 0;
                else
                        session_turn(&a->session, -1);
        }
}

static int agent_main(struct agent *a, struct error *err)
{
        int r = session_init(&a->session, STDIN_FILENO, STDOUT_FILENO, err);
        if (r < 0 || (r = record_load(a, err)) < 0) {
                send_error(a, err);
                return r;
        }
        send_hello(a);
        r = agent_serve(a, err);
        if (r < 0)
                send_error(a, err);
        return r;
}

static void agent_release(struct agent *a)
{
        session_release(&a->session);
        entries_release(a);
        record_release(&a->record);
        before_release(a);
        free(a->state);
        free(a->cluster);
        free(a->node);
        close_p(&a->blob.fd);
        close_p(&a->lock);
}

/* Closed standard descriptors would be taken by the first files that are opened. */
static void fill_descriptors(void)
{
        int fd;
        while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
                fcntl(fd, F_SETFD, 0);
        close_p(&fd);
}

int main(int argc, char **argv)
{
        struct agent a = { .root = "",
                .lock = -1,
                .blob.fd = -1,
                .session = { .in = -1, .out = -1, .signals = -1 } };
        struct error err CLEANUP(error_release) = { 0 };
        bool facts = false;
        if (argc > 0 && has_suffix(argv[0], "pause"))
                return pause_main();
        if (argc > 0 && has_suffix(argv[0], "probe"))
                return probe_main(argc, argv);
        core_never();
        fill_descriptors();
        for (int i = 1; i < argc; i++)
                if (streq(argv[i], "--root") && i + 1 < argc && *argv[i + 1] == '/')
                        a.root = streq(argv[++i], "/") ? "" : argv[i];
                else if (streq(argv[i], "--facts"))
                        facts = true;
                else {
                        fprintf(stderr, "usage: agent [--root DIR] [--facts]\n");
                        return EXIT_USAGE;
                }
        umask(022);
        /* independent of the shell that started the agent */
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        setenv("LC_ALL", "C", 1);
        setenv("SYSTEMD_COLORS", "0", 1);
        a.state = agent_path(&a, "/var/lib/slipway");
        if (facts) {
                struct str out CLEANUP(str_release) = { 0 };
                facts_write(&a, &out);
                puts(str_text(&out));
        } else if (agent_main(&a, &err) < 0)
                fprintf(stderr, "slipway agent: %s\n", err.message ? err.message : "failed");
        agent_release(&a);
        return err.code ? (int)err.status : 0;
}

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cluster/etcd/transfer.h"
#include "cluster/etcd/etcd.h"

#define PIECE ((size_t)512 << 10)

/* The run ended before the file was complete. */
static void transfer_release(struct op *o)
{
        struct transfer *c = (struct transfer *)((char *)o - offsetof(struct transfer, op));
        close_p(&c->fd);
        c->fd = -1;
        if (c->part)
                unlink(c->part);
        free(TAKE(c->part));
}

static void transfer_begin(struct transfer *c)
{
        c->op = (struct op){ .release = transfer_release };
        op_begin(&c->op, c->member->site, c->step);
}

static void transfer_over(struct transfer *c, struct error *err)
{
        close_p(&c->fd);
        c->fd = -1;
        if (err && c->part)
                unlink(c->part);
        free(TAKE(c->part));
        c->fn(c, err);
}

static void transfer_failed(struct transfer *c, int code, const char *fmt, ...) PRINTF(3, 4);
static void transfer_failed(struct transfer *c, int code, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str s CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        error_set(&err, code, code == EPIPE ? EXIT_UNREACHABLE : EXIT_STEP, "%s", str_text(&s));
        if (code == ENOSPC)
                error_hint(&err, "make room and run again");
        transfer_over(c, &err);
}

static void progress(struct transfer *c, const char *word)
{
        step_doing(c->step, c->size ? (int)(c->moved * 1000 / c->size) : -1,
                "%s %" PRId64 " of %" PRId64 " MB", word, c->moved >> 20, c->size >> 20);
}

/* ---- on this computer ---- */

static void on_piece(struct link *l, const void *data, size_t n, void *arg)
{
        struct transfer *c = arg;
        int64_t before = c->moved >> 22;
        /* never writes more than was announced */
        if (c->moved + (int64_t)n > c->size) {
                c->over = true;
                return;
        }
        sha256_add(&c->sum, data, n);
        c->moved += (int64_t)n;
        if (!c->failure)
                c->failure = -write_all(c->fd, data, n);
        if (c->moved >> 22 != before)
                progress(c, "bringing");
}

static void on_came(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct transfer *c = arg;
        char digest[SHA256_HEX], *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        sha256_end(&c->sum, digest);
        if (!c->failure && status == 0 && fsync(c->fd) < 0)
                c->failure = errno;
        if (c->over)
                transfer_failed(c, EFBIG,
                        "%s is longer than the node said (%" PRId64 " bytes): it was refused",
                        c->remote, c->size);
        else if (c->failure)
                transfer_failed(
                        c, c->failure, "cannot write %s: %s", c->part, strerror(c->failure));
        else if (status != 0)
                transfer_failed(c, status < 0 ? EPIPE : EIO, "%s could not be read on the node: %s",
                        c->remote, *line ? line : "the connection was cut");
        else if (c->moved != c->size || !streq(digest, c->digest))
                transfer_failed(c, EBADMSG,
                        "%s arrived damaged: %" PRId64 " of %" PRId64
                        " bytes, and its digest differs from the node's",
                        c->local, c->moved, c->size);
        else if (rename(c->part, c->local) < 0)
                transfer_failed(
                        c, errno, "cannot rename the file to %s: %s", c->local, strerror(errno));
        else
                transfer_over(c, NULL);
}

void transfer_fetch(struct transfer *c)
{
        const char *const argv[] = { "cat", "--", c->remote, NULL };
        c->part = xasprintf("%s.part", c->local);
        c->moved = c->failure = 0;
        c->over = false;
        c->fd = -1;
        sha256_init(&c->sum);
        if (c->size < 0 || c->size > TRANSFER_MAX) {
                transfer_failed(c, EFBIG,
                        "the node says that %s has %" PRId64 " bytes: more than %" PRId64
                        " GB are refused",
                        c->remote, c->size, TRANSFER_MAX >> 30);
                return;
        }
        c->fd = open(c->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        transfer_begin(c);
        if (c->fd < 0)
                transfer_failed(c, errno, "cannot write %s: %s", c->part, strerror(errno));
        else if (!member_reachable(c->member))
                transfer_failed(c, EPIPE, "the connection was cut");
        else
                member_run_program(c->member, &(struct link_program){ .argv = argv,
                                                      .max = 4096,
                                                      .sink = on_piece,
                                                      .fn = on_came,
                                                      .arg = c });
}

/* ---- on the node ---- */

static void transfer_script(struct transfer *c, const char *text,
        void (*fn)(struct link *, int, const char *, const char *, void *))
{
        const char *const argv[] = { "sh", "-c", text, "transfer", c->remote, c->digest, NULL };
        if (member_reachable(c->member))
                member_run(c->member, argv, NULL, 4096, fn, c);
        else
                transfer_failed(c, EPIPE, "the connection was cut");
}

static void on_named(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct transfer *c = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status != 0)
                transfer_failed(c, status < 0 ? EPIPE : EBADMSG,
                        "%s did not arrive complete on the node: %s", c->remote,
                        *line ? line : "its digest is wrong");
        else
                transfer_over(c, NULL);
}

static void on_written(struct link *l, int status, const char *out, const char *errors, void *arg);

static void send_piece(struct transfer *c)
{
        char *buf CLEANUP(free_p) = xmalloc(PIECE), at[32],
                  *part CLEANUP(free_p) = xasprintf("of=%s.part", c->remote);
        ssize_t n = pread(c->fd, buf, PIECE, c->moved);
        if (n < 0) {
                transfer_failed(c, errno, "cannot read %s: %s", c->local, strerror(errno));
                return;
        }
        if (n == 0) {
                transfer_script(c,
                        "set -e; test \"$(sha256sum <\"$1.part\" | cut -c1-64)\" = \"$2\"; sync \"$1.part\"; mv -f \"$1.part\" \"$1\"",
                        on_named);
                return;
        }
        snprintf(at, sizeof(at), "seek=%" PRId64, c->moved);
        const char *const argv[] = { "dd", part, "bs=64k", "oflag=seek_bytes", at, "conv=notrunc",
                "iflag=fullblock", "status=none", NULL };
        c->moved += n;
        if (member_reachable(c->member))
                member_run_program(c->member, &(struct link_program){ .argv = argv,
                                                      .input = buf,
                                                      .input_len = (size_t)n,
                                                      .max = 4096,
                                                      .fn = on_written,
                                                      .arg = c });
        else
                transfer_failed(c, EPIPE, "the connection was cut");
}

static void on_written(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct transfer *c = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status != 0) {
                transfer_failed(c,
                        status < 0                 ? EPIPE
                        : strstr(line, "No space") ? ENOSPC
                                                   : EIO,
                        "%s cannot be written on the node: %s", c->remote,
                        *line ? line : "the connection was cut");
                return;
        }
        progress(c, "sending");
        send_piece(c);
}

static void on_looked(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct transfer *c = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status == 10)
                send_piece(c);
        else if (status == 0)
                transfer_over(c, NULL);
        else
                transfer_failed(c, status < 0 ? EPIPE : EIO, "%s cannot be written on the node: %s",
                        c->remote, *line ? line : "the connection was cut");
}

void transfer_send(struct transfer *c)
{
        struct stat st;
        c->moved = 0;
        c->fd = open(c->local, O_RDONLY | O_CLOEXEC);
        transfer_begin(c);
        if (c->fd < 0 || fstat(c->fd, &st) < 0) {
                transfer_failed(c, errno, "cannot read %s: %s", c->local, strerror(errno));
                return;
        }
        c->size = st.st_size;
        if (!*c->digest)
                sha256_fd(c->fd, c->digest);
        /* status 10: the node does not have the file yet */
        transfer_script(c,
                "set -e; umask 077; mkdir -p \"$(dirname \"$1\")\"; if test -f \"$1\" && test \"$(sha256sum <\"$1\" | cut -c1-64)\" = \"$2\"; then exit 0; fi; "
                ": >\"$1.part\"; exit 10",
                on_looked);
}

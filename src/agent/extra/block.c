/* slipway's lines between two marks in a file that others write too (/etc/hosts). All other lines
 * stay unchanged, and only these lines are removed. */
#include <fcntl.h>

#include "agent/agent.h"

#define BLOCK_MAX  ((size_t)4 << 20) /* maximum size of such a file */
#define MARK_BEGIN "# slipway: begin\n"
#define MARK_END   "# slipway: end\n"

struct block_file {
        struct str text;
        struct stat st;
        bool there;
        size_t start, end;  /* of the block with its marks; equal: no block */
        size_t inner, last; /* of the lines between the marks */
};

static void block_release(struct block_file *f) { str_release(&f->text); }

/* The start of a line with this text, from `at` on, or NULL. */
static const char *block_line(const struct str *s, const char *at, const char *line)
{
        while ((at = strstr(at, line)) && at != s->data && at[-1] != '\n')
                at++;
        return at;
}

static void block_find(struct block_file *f)
{
        const char *begin = f->text.len ? block_line(&f->text, f->text.data, MARK_BEGIN) : NULL,
                   *end = begin ? block_line(&f->text, begin, MARK_END) : NULL;
        f->start = f->end = f->inner = f->last = f->text.len;
        /* without the end mark, the block's lines are unknown */
        if (!end)
                return;
        f->start = (size_t)(begin - f->text.data);
        f->inner = f->start + strlen(MARK_BEGIN);
        f->last = (size_t)(end - f->text.data);
        f->end = f->last + strlen(MARK_END);
}

static int block_read(struct agent *a, const char *path, struct block_file *f, struct error *err)
{
        char *full CLEANUP(free_p) = agent_path(a, path), buf[16 << 10];
        int fd CLEANUP(close_p) = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        ssize_t n = 0;
        if (fd < 0 && errno == ENOENT) {
                block_find(f);
                return 0;
        }
        if (fd < 0 || fstat(fd, &f->st) < 0)
                return error_set(err, errno, EXIT_STEP, "cannot read it: %s",
                        errno == ELOOP ? "it is a link" : strerror(errno));
        if (!S_ISREG(f->st.st_mode))
                return error_set(err, EINVAL, EXIT_STEP, "it is not a file");
        while (f->text.len <= BLOCK_MAX && (n = read(fd, buf, sizeof(buf))) > 0)
                str_addn(&f->text, buf, (size_t)n);
        if (n < 0 || f->text.len > BLOCK_MAX)
                return error_set(err, EFBIG, EXIT_STEP, "cannot read it: %s",
                        n < 0 ? strerror(errno) : "it is larger than 4 MiB");
        if (memchr(str_text(&f->text), 0, f->text.len))
                return error_set(err, EINVAL, EXIT_STEP, "it is not a text file");
        if (f->text.len && f->text.data[f->text.len - 1] != '\n')
                str_addc(&f->text, '\n'); /* an editor may have removed it from the last mark */
        f->there = true;
        block_find(f);
        return 0;
}

static bool block_same(const struct block_file *f, const char *content, size_t len)
{
        return f->end > f->start && f->last - f->inner == len &&
               memcmp(f->text.data + f->inner, content, len) == 0;
}

void check_block(struct agent *a, struct entry *e)
{
        struct block_file f CLEANUP(block_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        int r = block_read(a, e->path, &f, &err);
        e->state = r == 0 && block_same(&f, e->content, e->len) ? STATE_SAME
                   : f.there || r < 0                           ? STATE_CHANGED
                                                                : STATE_CREATED;
}

bool block_drifted(struct agent *a, const struct row *row)
{
        struct block_file f CLEANUP(block_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        char digest[SHA256_HEX];
        if (block_read(a, row->key, &f, &err) < 0 || f.end == f.start)
                return true;
        sha256_hex(f.text.data + f.inner, f.last - f.inner, digest);
        return !streq(digest, row->digest);
}

/* Writes the file with these lines as the block; NULL: without a block. */
static int block_write(struct agent *a, const char *path, const struct block_file *f, unsigned mode,
        const char *content, size_t len, struct error *err)
{
        struct staged s = { .fd = -1 };
        struct str out CLEANUP(str_release) = { 0 };
        struct print print;
        str_addn(&out, str_text((struct str *)(uintptr_t)&f->text), f->start);
        if (content) {
                str_add(&out, MARK_BEGIN);
                str_addn(&out, content, len);
                str_add(&out, MARK_END);
        }
        str_addn(&out, str_text((struct str *)(uintptr_t)&f->text) + f->end, f->text.len - f->end);
        int r = stage_open(a, path, &s, err);
        if (r == 0 && ((r = write_all(s.fd, str_text(&out), out.len)) < 0 ||
                              (r = own(s.fd, f->there ? f->st.st_mode & 07777 : mode, f->st.st_uid,
                                       f->st.st_gid)) < 0))
                error_set(err, -r, EXIT_STEP, "cannot write it: %s", strerror(-r));
        if (r == 0)
                r = stage_commit(a, &s, &print, err);
        if (r == 0)
                sync_dir(s.full);
        stage_release(&s);
        return r;
}

void apply_blocks(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct block_file f CLEANUP(block_release) = { 0 };
                struct error err CLEANUP(error_release) = { 0 };
                int r = e[i].state == STATE_SAME ? 0 : block_read(a, e[i].path, &f, &err);
                if (r == 0 && e[i].state != STATE_SAME)
                        r = block_write(a, e[i].path, &f, e[i].mode, e[i].content, e[i].len, &err);
                if (r < 0) {
                        entry_failed(a, &e[i], &err);
                        continue;
                }
                memcpy(record_entry(a, &e[i])->digest, e[i].digest, SHA256_HEX);
                entry_report(a, &e[i], e[i].state);
        }
}

/* Removes the file if nothing is left in it: it did not exist before. */
int block_remove(struct agent *a, const char *path, struct error *err)
{
        struct block_file f CLEANUP(block_release) = { 0 };
        char *full CLEANUP(free_p) = agent_path(a, path);
        int r = block_read(a, path, &f, err);
        if (r < 0 || f.end == f.start)
                return r;
        if (f.end - f.start == f.text.len)
                return unlink(full) < 0 ? error_set(err, errno, EXIT_STEP, "cannot remove it: %s",
                                                  strerror(errno))
                                        : 0;
        return block_write(a, path, &f, 0644, NULL, 0, err);
}

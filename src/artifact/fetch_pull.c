/* Images from a registry, through skopeo, which handles registries, logins and certificates. */
#include <fcntl.h>

#include "artifact/fetch_impl.h"
#include "base/file.h"
#include "base/proc.h"

#define TEXT_MAX 8192

struct pull {
        struct proc *proc;
        char *dir; /* of its own, under CACHE/tmp */
        struct str said;
        char digest[65];
        int64_t size;
};

static struct job *fetch_pull_job_of(struct work *w)
{
        return (struct job *)(void *)((char *)w - offsetof(struct job, work));
}

static char *archive_path(const struct pull *p) { return path_join(p->dir, "image.tar"); }

static int pull_run(struct work *w, stop_flag stop, struct error *err)
{
        struct job *j = fetch_pull_job_of(w);
        struct pull *p = j->state;
        char *path CLEANUP(free_p) = archive_path(p);
        int r = file_digest(path, stop, p->digest, &p->size, err);
        return r == 0 ? blob_adopt(j->fetch->cache, path, p->digest, err) : r;
}

static void pull_done(struct work *w, struct error *err)
{
        struct job *j = fetch_pull_job_of(w);
        struct pull *p = j->state;
        for (size_t i = j->count; !err && i-- > 0;)
                want_resolved(j, j->wants[i], p->digest, p->size, source_name(j->source));
        job_done(j, err);
}

/* A registry that cannot be reached is tried only once. */
static void note_dead(struct job *j, const char *why)
{
        static const char *const signs[] = { "no such host", "connection refused", "i/o timeout",
                "network is unreachable", "no route to host", "server misbehaving" };
        char **dead = &j->fetch->pull_dead[j->source];
        for (size_t i = 0; i < ARRAY_SIZE(signs) && !*dead; i++)
                if (strcasestr(why, signs[i]))
                        *dead = xstrdup(why);
}

/* skopeo's last line is a log line: time="…" level=fatal msg="…". */
static char *last_words(const struct str *said)
{
        const char *text = str_text(said), *msg = NULL;
        for (const char *p = text; (p = strstr(p, "msg=\"")); p++)
                msg = p + 5;
        if (!msg)
                return xstrdup("it said nothing");
        size_t n = strcspn(msg, "\n");
        while (n && strchr("\"\r ", msg[n - 1]))
                n--;
        struct str out = { 0 };
        for (size_t i = 0; i < n; i++)
                if (msg[i] != '\\')
                        str_addc(&out, msg[i]);
        return str_take(&out);
}

static void pull_exit(struct proc *proc, int status, void *arg)
{
        struct job *j = arg;
        struct pull *p = j->state;
        struct error err CLEANUP(error_release) = { 0 };
        p->proc = NULL;
        if (status == 0) {
                job_note(j, -1, "verifying");
                j->work = (struct work){ .run = pull_run, .done = pull_done };
                worker_submit(j->fetch->worker, &j->work);
                return;
        }
        char *why CLEANUP(free_p) = last_words(&p->said);
        error_set(&err, EIO, EXIT_UNREACHABLE, "skopeo cannot copy %s: %s", j->key, why);
        error_hint(
                &err, "set registry.mirror to a registry that has it, or artifacts.source: build");
        note_dead(j, why);
        job_done(j, &err);
}

static void pull_said(struct proc *proc, const char *data, size_t n, void *arg)
{
        struct pull *p = ((struct job *)arg)->state;
        if (p->said.len > TEXT_MAX)
                str_truncate(&p->said, 0);
        str_addn(&p->said, data, n < TEXT_MAX ? n : TEXT_MAX);
}

/* The login and the CA of the mirror, as files that only this user can read; never as arguments,
 * which all users can read. */
static int write_login(const struct job *j, const struct pull *p, struct error *err)
{
        const struct registry *reg = &j->fetch->request.cluster->registry;
        struct str plain CLEANUP(str_wipe_release) = { 0 }, word CLEANUP(str_wipe_release) = { 0 },
                         text CLEANUP(str_wipe_release) = { 0 };
        char *auth CLEANUP(free_p) = path_join(p->dir, "auth.json"),
                   *ca CLEANUP(free_p) = path_join(p->dir, "ca.crt");
        int r = 0;
        if (reg->username && reg->password) {
                str_addf(&plain, "%s:%s", reg->username, reg->password);
                str_add_base64(&word, plain.data, plain.len);
                str_addf(&text, "{\"auths\":{\"%.*s\":{\"auth\":\"%s\"}}}\n",
                        (int)strcspn(j->key, "/"), j->key, str_text(&word));
                r = file_write(auth, text.data, text.len, 0600, 0, NULL, err);
        }
        if (r == 0 && reg->ca_pem)
                r = file_write(ca, reg->ca_pem, strlen(reg->ca_pem), 0600, 0, NULL, err);
        return r;
}

static int pull_begin(struct job *j, struct pull *p, struct error *err)
{
        const struct fetch *f = j->fetch;
        const struct registry *reg = &f->request.cluster->registry;
        /* a registry's settings are those of its mirror */
        bool mirror = !streq(j->key, j->wants[0]->item->name);
        p->dir = cache_path(f->cache, "tmp", "pull.XXXXXX");
        if (!mkdtemp(p->dir))
                return error_set(err, errno, EXIT_INTERNAL, "cannot write to the cache %s: %s",
                        f->cache, strerror(errno));
        char *archive CLEANUP(free_p) = archive_path(p),
                      *auth CLEANUP(free_p) = path_join(p->dir, "auth.json");
        char *from CLEANUP(free_p) = xasprintf("docker://%s", j->key),
                   *to CLEANUP(free_p) =
                           xasprintf("docker-archive:%s:%s", archive, j->wants[0]->item->name);
        const char *argv[20] = { "skopeo", "--override-os", "linux", "--override-arch",
                f->request.arch, "copy", "--retry-times", "2" };
        size_t n = 8;
        int r = mirror ? write_login(j, p, err) : 0;
        if (r < 0)
                return r;
        if (mirror && reg->insecure)
                argv[n++] = "--src-tls-verify=false";
        if (mirror && reg->username && reg->password) {
                argv[n++] = "--src-authfile";
                argv[n++] = auth;
        }
        if (mirror && reg->ca_pem) {
                argv[n++] = "--src-cert-dir";
                argv[n++] = p->dir;
        }
        argv[n++] = from;
        argv[n++] = to;
        struct proc_spec spec = { .argv = argv,
                .file_max = f->request.file_max,
                .on_err = pull_said,
                .on_exit = pull_exit,
                .arg = j };
        if ((r = proc_start(f->base, &spec, &p->proc, err)) < 0)
                return error_hint(
                        err, "install skopeo, or set artifacts.bundle or artifacts.source: build");
        proc_end_input(p->proc);
        return 0;
}

static void pull_start(struct job *j)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct pull *p = j->state = xcalloc(1, sizeof(*p));
        if (j->fetch->pull_dead[j->source]) {
                error_set(
                        &err, EHOSTUNREACH, EXIT_UNREACHABLE, "%s", j->fetch->pull_dead[j->source]);
                job_done(j, &err);
                return;
        }
        job_note(j, -1, "downloading from %s", source_title(j->source));
        if (pull_begin(j, p, &err) < 0)
                job_done(j, &err);
}

static void pull_stop(struct job *j)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct pull *p = j->state;
        proc_free(p->proc);
        if (p->dir)
                dir_remove(p->dir, &ignored);
        free(p->dir);
        str_release(&p->said);
        free(p);
}

const struct job_kind pull_job = { .at_once = 2, .start = pull_start, .stop = pull_stop };

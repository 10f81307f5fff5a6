#include <event2/event.h>
#include <signal.h>

#include "artifact/blob.h"
#include "base/file.h"
#include "base/proc.h"
#include "base/utf8.h"
#include "cluster/services/helm.h"
#include "cluster/services/relay.h"

#define AT_ONCE     10 /* they wait for pods most of the time; each has some 80 MB */
#define ERRORS_MAX  ((size_t)64 << 10)
#define WORDS_MAX   600 /* characters of helm's output in a sentence */
#define PROGRAM_MAX ((size_t)256 << 20)
#define MISSING_HINT \
        "install helm 3.13 or newer on this computer, or set artifacts.source so that it can be fetched or built (upstream, a mirror, or Go modules)"

struct helm_job {
        struct helm *helm;
        struct step *step;
        struct helm_call call;
        char *args[HELM_ARGS_MAX + 1]; /* [0] is the program */
        struct proc *proc;
        struct event *timer;
        struct str out, errors;
        bool late;
        struct helm_job *next;
};

static void helm_pump(struct helm *h);

/* ---- jobs ---- */

static void helm_job_free(struct helm_job *j)
{
        struct helm *h = j->helm;
        struct helm_job *before = NULL;
        for (struct helm_job *o = h->first; o && o != j; o = o->next)
                before = o;
        if (before)
                before->next = j->next;
        else
                h->first = j->next;
        if (h->last == j)
                h->last = before;
        proc_free(j->proc);
        if (j->timer)
                event_free(j->timer);
        str_wipe_release(&j->out); /* manifests contain Secrets */
        str_release(&j->errors);
        for (size_t i = 0; i <= HELM_ARGS_MAX; i++)
                free(j->args[i]);
        free(j);
}

static void job_end(struct helm_job *j, const struct helm_result *r)
{
        helm_fn fn = j->call.fn;
        void *arg = j->call.arg;
        struct helm *h = j->helm;
        struct str out CLEANUP(str_wipe_release) = j->out;
        struct helm_result copy = *r;
        j->out = (struct str){ 0 };
        copy.out = str_text(&out);
        helm_job_free(j);
        fn(&copy, arg);
        helm_pump(h);
}

/* helm's error output without its prefixes, as one line. */
static char *helm_words(const struct helm_job *j, int status)
{
        static const char *const prefixes[] = {
                "Error: ", "INSTALLATION FAILED: ", "UPGRADE FAILED: "
        };
        const char *text = str_text(&j->errors), *from = strstr(text, "Error: ");
        struct str s = { 0 };
        char *last CLEANUP(free_p) = NULL;
        if (j->late)
                return xasprintf("helm did not end within %u s", j->call.seconds);
        if (!from)
                from = last = str_last_line(&j->errors);
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (has_prefix(from, prefixes[i]))
                        from += strlen(prefixes[i]);
        for (; *from && s.len < WORDS_MAX; from++)
                str_addc(&s, *from == '\n' || *from == '\t' ? ' ' : *from);
        while (s.len && s.data[s.len - 1] == ' ')
                str_truncate(&s, s.len - 1);
        if (!s.len)
                str_addf(&s, "helm failed with status %d", status);
        return str_take(&s);
}

static void on_helm_out(struct proc *p, const char *data, size_t n, void *arg)
{
        struct helm_job *j = arg;
        if (n > HELM_OUT_MAX - j->out.len)
                proc_kill(p, SIGKILL);
        else
                str_addn(&j->out, data, n);
}

static void on_helm_err(struct proc *p, const char *data, size_t n, void *arg)
{
        struct helm_job *j = arg;
        size_t room = ERRORS_MAX - j->errors.len;
        str_addn(&j->errors, data, n < room ? n : room);
}

static void on_helm_exit(struct proc *p, int status, void *arg)
{
        struct helm_job *j = arg;
        char *words CLEANUP(free_p) = status ? helm_words(j, status) : NULL;
        j->proc = NULL;
        j->helm->running--;
        job_end(j, &(struct helm_result){ .status = status, .trouble = words });
}

static void on_helm_late(evutil_socket_t fd, short what, void *arg)
{
        struct helm_job *j = arg;
        proc_kill(j->proc, j->late ? SIGKILL : SIGTERM);
        j->late = true;
        event_add(j->timer, &(struct timeval){ .tv_sec = 10 });
}

static void job_failed(struct helm_job *j, const struct error *err)
{
        job_end(j,
                &(struct helm_result){ .status = 127, .trouble = err->message, .hint = err->hint });
}

static void job_start(struct helm_job *j)
{
        struct helm *h = j->helm;
        struct error err CLEANUP(error_release) = { 0 };
        struct proc_spec spec = { .argv = (const char *const *)j->args,
                .env = h->env,
                .file_max = HELM_CHART_SIZE,
                .on_out = on_helm_out,
                .on_err = on_helm_err,
                .on_exit = on_helm_exit,
                .arg = j };
        free(j->args[0]);
        j->args[0] = xstrdup(h->program);
        if ((j->call.api && helm_kubeconfig(h, &err) < 0) ||
                proc_start(h->op.site->base, &spec, &j->proc, &err) < 0) {
                job_failed(j, &err);
                return;
        }
        proc_end_input(j->proc);
        h->running++;
        h->started++;
        j->timer = evtimer_new(h->op.site->base, on_helm_late, j);
        event_add(j->timer, &(struct timeval){ .tv_sec = j->call.seconds });
}

/* ---- the program ---- */

static void found_program(struct helm *h, const char *program, struct error *err)
{
        h->finding = false;
        if (program)
                h->program = xstrdup(program);
        /* in order, because fn may add more */
        for (struct helm_job *j; !program && (j = h->first);)
                job_failed(j, err);
        helm_pump(h);
}

/* Copies the blob from the cache to an executable file. */
static int program_copy(const struct item *item, char **out, struct error *err)
{
        char *cache CLEANUP(free_p) = NULL;
        struct str data CLEANUP(str_release) = { 0 };
        int r = cache_open(&cache, err);
        if (r < 0)
                return r;
        char *dir CLEANUP(free_p) = xasprintf("%s/artifacts/helm-%.16s", cache, item->digest);
        *out = path_join(dir, "helm");
        if (access(*out, X_OK) == 0)
                return 0;
        if ((r = dir_make(dir, 0755, err)) == 0)
                r = file_read(item->path, PROGRAM_MAX, &data, err);
        return r < 0 ? r : file_write(*out, data.data, data.len, 0755, 0, NULL, err);
}

static void on_helm_fetched(struct error *err, void *arg)
{
        struct helm *h = arg;
        struct error why CLEANUP(error_release) = { 0 };
        char *program CLEANUP(free_p) = NULL;
        if (err)
                error_set(&why, ENOENT, EXIT_STEP,
                        "helm is not installed on this computer, and cannot be fetched: %s",
                        err->message);
        else
                program_copy(&h->item, &program, &why);
        if (why.message)
                error_hint(&why, MISSING_HINT);
        found_program(h, why.message ? NULL : program, &why);
}

static void on_helm_fetch_says(const struct item *item, const char *what, int permille, void *arg)
{
        struct helm *h = arg;
        if (h->first && h->first->step->state == STEP_RUNNING)
                step_doing(h->first->step, permille, "helm %s: %s", item->version, what);
}

static void on_helm_fetch_notice(const char *text, void *arg)
{
        struct helm *h = arg;
        if (h->first && h->first->step->state == STEP_RUNNING)
                step_changed(h->first->step, "%s", text);
}

static void helm_fetch(struct helm *h)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct site *s = h->op.site;
        h->item = (struct item){ .name = "helm", .version = catalogue_tool("helm") };
        struct fetch_request request = { .cluster = s->cluster,
                .arch = arch_own(),
                .lock = s->lock_path,
                .items = &h->item,
                .count = 1,
                .on_progress = on_helm_fetch_says,
                .on_notice = on_helm_fetch_notice,
                .on_done = on_helm_fetched,
                .arg = h };
        if (fetch_start(s->base, &request, &h->fetch, &err) < 0)
                on_helm_fetched(&err, h);
}

static void on_version_out(struct proc *p, const char *data, size_t n, void *arg)
{
        struct helm *h = arg;
        if (h->version.len + n < 256)
                str_addn(&h->version, data, n);
}

/* Version 3 alone has the options that are used here, from 3.13 on (labels of a release). */
bool helm_fits(const char *version)
{
        return has_prefix(version, "v3.") && strtol(version + strlen("v3."), NULL, 10) >= 13;
}

static void on_version_exit(struct proc *p, int status, void *arg)
{
        struct helm *h = arg;
        bool fits = status == 0 && helm_fits(str_text(&h->version));
        h->asked = NULL;
        str_release(&h->version);
        if (fits)
                found_program(h, "helm", NULL);
        else
                helm_fetch(h);
}

static void helm_find(struct helm *h)
{
        static const char *const argv[] = { "helm", "version", "--template", "{{.Version}}", NULL };
        struct error err CLEANUP(error_release) = { 0 };
        h->finding = true;
        if (helm_home(h, &err) < 0) {
                found_program(h, NULL, &err);
                return;
        }
        struct proc_spec spec = { .argv = argv,
                .env = h->env,
                .on_out = on_version_out,
                .on_exit = on_version_exit,
                .arg = h };
        if (proc_start(h->op.site->base, &spec, &h->asked, &err) == 0)
                proc_end_input(h->asked);
        else
                helm_fetch(h);
}

/* ---- life cycle ---- */

static void helm_pump(struct helm *h)
{
        if (!h->first || h->finding)
                return;
        if (!h->program) {
                helm_find(h);
                return;
        }
        for (struct helm_job *j = h->first, *next; j && h->running < AT_ONCE; j = next) {
                next = j->next;
                if (!j->proc) {
                        job_start(j);
                        /* a job that cannot start is removed, and fn may add others */
                        next = h->first;
                        while (next && next->proc)
                                next = next->next;
                }
        }
}

static void helm_release(struct op *o)
{
        struct helm *h = (struct helm *)o;
        while (h->first)
                helm_job_free(h->first);
        proc_free(h->asked);
        str_release(&h->version);
        fetch_free(h->fetch);
        free(h->item.path);
        relay_free(h->relay);
        free(h->program);
        scratch_remove(&h->home);
}

struct helm *helm_of(struct site *s, struct step *step)
{
        if (s->helm)
                return s->helm;
        s->helm = arena_new(s->arena, struct helm);
        s->helm->op.release = helm_release;
        op_begin(&s->helm->op, s, step);
        return s->helm;
}

void helm_run(struct site *s, struct step *step, const struct helm_call *call)
{
        struct helm *h = helm_of(s, step);
        struct helm_job *j = xcalloc(1, sizeof(*j));
        *j = (struct helm_job){ .helm = h, .step = step, .call = *call };
        for (size_t i = 0; i + 1 < HELM_ARGS_MAX && call->args[i]; i++)
                j->args[i + 1] = xstrdup(call->args[i]);
        if (h->last)
                h->last->next = j;
        else
                h->first = j;
        h->last = j;
        helm_pump(h);
}

size_t helm_started(const struct site *s) { return s->helm ? s->helm->started : 0; }

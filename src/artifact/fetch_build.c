/* Builds the same versions from Go modules with the go command, in one scratch module per recipe.
 * The go command verifies module checksums, and its caches let an interrupted build continue. The
 * programs are kept in CACHE/artifacts, for the next run and the tests. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "artifact/fetch_impl.h"
#include "artifact/pack.h"
#include "base/file.h"
#include "base/proc.h"

#define OUT_MAX  ((size_t)8 << 20)
#define LAST_MAX 4096

enum step {
        STEP_LIBRARY,
        STEP_ENV,
        STEP_MODULE,
        STEP_TIDY,
        STEP_COUNT,
        STEP_COMPILE,
        STEP_WHERE, /* the module's directory, for its data */
        STEP_DATA,
        STEP_END
};

struct build {
        struct job *job;
        const struct recipe *recipe;
        char *version;
        char *work, *from; /* the scratch module; where the programs are */
        enum step step;
        struct proc *proc;
        struct str out, last; /* a child's output; the end of its error output */
        int log;
        char *log_path;
        char *go, *go_version, *goflags;
        size_t packages, compiled;
        int permille;
        bool unverified; /* GOSUMDB=off */
        const char *how; /* "build" or "computer" */
        struct made {
                char digest[65];
                int64_t size;
        } * made; /* one per want */
};

static void next_step(struct build *b);
static void pack_start(struct build *b);

static struct job *fetch_build_job_of(struct work *w)
{
        return (struct job *)(void *)((char *)w - offsetof(struct job, work));
}

const char *arch_own(void)
{
        static const struct {
                const char *machine, *arch;
        } names[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" }, { "ppc64le", "ppc64le" },
                { "s390x", "s390x" }, { "riscv64", "riscv64" } };
        struct utsname u;
        for (size_t i = 0; uname(&u) == 0 && i < ARRAY_SIZE(names); i++)
                if (streq(u.machine, names[i].machine))
                        return names[i].arch;
        return "amd64";
}

bool fetch_own_arch(const struct fetch *f) { return streq(f->request.arch, arch_own()); }

char *recipe_dir(const struct fetch *f, const char *recipe, const char *version)
{
        char *dir CLEANUP(free_p) = xasprintf("%s/artifacts/%s-%s", f->cache, recipe, version);
        return fetch_own_arch(f) && access(dir, X_OK) == 0 ? TAKE(dir) : NULL;
}

static void build_fail(struct build *b, struct error *err) { job_done(b->job, err); }

/* ---- what was built, as blobs (in the thread) ---- */

static int make_blob(struct build *b, const struct item *item, struct made *out, stop_flag stop,
        struct error *err)
{
        const struct fetch *f = b->job->fetch;
        char *word CLEANUP(free_p) = NULL, *version CLEANUP(free_p) = NULL;
        if (!item->image) {
                const char *file = origin_of(item->name)->file;
                char *path CLEANUP(free_p) =
                        streq(b->how, "computer") ? xstrdup(b->from) : path_join(b->from, file);
                return streq(file, "*")
                               ? pack_set(f->cache, b->from, stop, out->digest, &out->size, err)
                               : blob_copy(f->cache, path, stop, out->digest, &out->size, err);
        }
        bool agent = b->recipe->agent;
        if (!agent)
                image_words(item->name, &word, &version);
        const struct image_origin *o = image_origin_of(agent ? b->recipe->name : word);
        char *path CLEANUP(free_p) = agent ? NULL : path_join(b->from, o->file);
        struct pack_image image = { .reference = item->name,
                .arch = f->request.arch,
                .path = o->path,
                .user = o->user,
                .file = path };
        image.data = f->request.agent;
        image.len = f->request.agent_len;
        return pack_image(f->cache, &image, stop, out->digest, &out->size, err);
}

static int pack_run(struct work *w, stop_flag stop, struct error *err)
{
        struct job *j = fetch_build_job_of(w);
        struct build *b = j->state;
        int r = 0;
        for (size_t i = 0; r == 0 && i < j->count; i++)
                r = make_blob(b, j->wants[i]->item, &b->made[i], stop, err);
        return r;
}

/* A directory that exists is complete, because it is renamed at the end. */
static int keep_programs(const struct build *b, struct error *err)
{
        const struct fetch *f = b->job->fetch;
        char *dir CLEANUP(free_p) =
                xasprintf("%s/artifacts/%s-%s", f->cache, b->recipe->name, b->version);
        if (b->work && streq(b->how, "build") && fetch_own_arch(f) && rename(b->from, dir) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot make %s: %s", dir, strerror(errno));
        return 0;
}

/* If only programs are wanted, nothing is packed. */
static void programs_made(struct build *b)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct job *j = b->job;
        int r = keep_programs(b, &err);
        for (size_t i = 0; r == 0 && i < j->count; i++)
                j->wants[i]->done = true;
        job_done(j, r < 0 ? &err : NULL);
}

static void pack_done(struct work *w, struct error *err)
{
        struct job *j = fetch_build_job_of(w);
        struct build *b = j->state;
        struct error unkept CLEANUP(error_release) = { 0 };
        /* after a failure the next run builds again */
        if (!err)
                (void)keep_programs(b, &unkept);
        if (!err && b->work)
                build_notice(j->fetch, "%s %s is built", b->recipe->name, b->version);
        for (size_t i = 0; !err && b->recipe->builds && !b->recipe->same && i < j->count; i++)
                if (j->wants[i]->item->image) /* its tag says another */
                        build_notice(j->fetch,
                                "%s is built from %s %s: newer ones have no Go module",
                                j->wants[i]->item->name, b->recipe->name, b->version);
        for (size_t i = j->count; !err && i-- > 0;)
                want_resolved(j, j->wants[i], b->made[i].digest, b->made[i].size, b->how);
        job_done(j, err);
}

static void pack_start(struct build *b)
{
        struct job *j = b->job;
        if (j->fetch->request.programs) {
                programs_made(b);
                return;
        }
        job_note(j, -1, "packing");
        b->made = xcalloc(j->count, sizeof(*b->made));
        j->work = (struct work){ .run = pack_run, .done = pack_done };
        worker_submit(j->fetch->worker, &j->work);
}

/* ---- this computer's own ---- */

static char *find_program(const char *name)
{
        const char *path = getenv("PATH");
        char *dirs CLEANUP(free_p) = xasprintf(
                "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "/usr/local/bin:/usr/bin:/bin");
        for (char *rest = dirs, *dir; (dir = strsep(&rest, ":"));) {
                char *file CLEANUP(free_p) = path_join(*dir ? dir : ".", name);
                struct stat st;
                if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
                        return TAKE(file);
        }
        return NULL;
}

static void take_own(struct build *b, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 };
        const char *name = b->recipe->name;
        free(b->from);
        bool may =
                b->recipe->own && fetch_own_arch(b->job->fetch) && !b->job->fetch->request.programs;
        b->from = may ? find_program(name) : NULL;
        if (!b->from) {
                error_set(&err, ENOENT, EXIT_INTERNAL,
                        "%s cannot be built for %s (%s), and this computer has none of its own",
                        name, b->job->fetch->request.arch, why);
                if (fetch_own_arch(b->job->fetch))
                        error_hint(&err,
                                "install the package %s on this computer, or set artifacts.bundle or artifacts.mirror",
                                name);
                else
                        error_hint(&err, "set artifacts.bundle or artifacts.mirror");
                build_fail(b, &err);
                return;
        }
        b->how = "computer";
        job_note(b->job, -1, "taking this computer's own %s instead of %s: %s", b->from, b->version,
                why);
        pack_start(b);
}

/* ---- the go command ---- */

static void on_fetch_build_out(struct proc *p, const char *data, size_t n, void *arg)
{
        struct build *b = arg;
        if (b->step == STEP_COUNT) {
                for (size_t i = 0; i < n; i++)
                        b->packages += data[i] == '\n';
        } else if (b->out.len + n < OUT_MAX) {
                str_addn(&b->out, data, n);
        }
}

static void show_compiled(struct build *b)
{
        size_t total = b->packages > b->compiled ? b->packages : b->compiled;
        int permille = total ? (int)(b->compiled * 990 / total) : -1;
        if (permille == b->permille)
                return;
        b->permille = permille;
        job_note(b->job, permille, "building %s %s: %zu of %zu packages", b->recipe->name,
                b->version, b->compiled, total);
}

/* With -v each package that was compiled is a line. */
static void on_err(struct proc *p, const char *data, size_t n, void *arg)
{
        struct build *b = arg;
        if (b->log >= 0)
                (void)!write(b->log, data, n);
        str_addn(&b->last, data, n);
        if (b->last.len > LAST_MAX) {
                memmove(b->last.data, b->last.data + b->last.len - LAST_MAX / 2, LAST_MAX / 2);
                str_truncate(&b->last, LAST_MAX / 2);
        }
        for (size_t i = 0; i < n && b->step == STEP_COMPILE; i++)
                b->compiled += data[i] == '\n';
        if (b->step == STEP_COMPILE && !b->recipe->test)
                show_compiled(b);
}

static void on_exit_child(struct proc *p, int status, void *arg)
{
        struct build *b = arg;
        struct error err CLEANUP(error_release) = { 0 };
        b->proc = NULL;
        if (status == 0) {
                b->step++;
                next_step(b);
                return;
        }
        if (b->step == STEP_LIBRARY) {
                char *why CLEANUP(free_p) =
                        xasprintf("%s's headers are not installed", b->recipe->library);
                take_own(b, why);
                return;
        }
        static const char *const names[] = { [STEP_ENV] = "env",
                [STEP_MODULE] = "mod download",
                [STEP_TIDY] = "mod tidy",
                [STEP_COUNT] = "list",
                [STEP_COMPILE] = "build",
                [STEP_WHERE] = "list" };
        char *line CLEANUP(free_p) = str_last_line(&b->last);
        error_set(&err, EIO, EXIT_INTERNAL, "%s %s failed with status %d: %s",
                b->step == STEP_DATA ? "cp" : "go", b->step == STEP_DATA ? "-r" : names[b->step],
                status, *line ? line : "it said nothing");
        error_hint(&err, "all it said is in %s", b->log_path);
        build_fail(b, &err);
}

/* Starts a child in the scratch module. The end of argv is NULL. */
static int fetch_build_run(struct build *b, const char *const *argv, struct error *err)
{
        char *flags CLEANUP(free_p) =
                xasprintf("GOFLAGS=%s -buildvcs=false -trimpath", b->goflags ? b->goflags : "");
        char *arch CLEANUP(free_p) = xasprintf("GOARCH=%s", b->job->fetch->request.arch);
        /* "none" matches no module: these are verified, whatever this
         * computer's settings exclude. */
        const char *env[12] = { b->recipe->cgo ? "CGO_ENABLED=1" : "CGO_ENABLED=0", "GOOS=linux",
                "GOWORK=off", "GOTOOLCHAIN=local", "GONOSUMDB=none", "GOINSECURE=none",
                "GONOSUMCHECK=", arch };
        size_t n = 8;
        if (b->goflags) /* this computer's own setting, queried first */
                env[n++] = flags;
        if (b->recipe->cgo && !fetch_own_arch(b->job->fetch)) /* as Debian names it */
                env[n++] = streq(b->job->fetch->request.arch, "arm64") ? "CC=aarch64-linux-gnu-gcc"
                                                                       : "CC=x86_64-linux-gnu-gcc";
        struct proc_spec spec = { .argv = argv,
                .dir = b->work,
                .env = env,
                .on_out = on_fetch_build_out,
                .on_err = on_err,
                .on_exit = on_exit_child,
                .arg = b };
        str_truncate(&b->out, 0);
        str_truncate(&b->last, 0);
        if (b->log >= 0)
                for (size_t i = 0; argv[i]; i++)
                        dprintf(b->log, "%s%s%s", i ? " " : "$ ", argv[i], argv[i + 1] ? "" : "\n");
        int r = proc_start(b->job->fetch->base, &spec, &b->proc, err);
        if (r < 0)
                return r;
        proc_end_input(b->proc);
        return 0;
}

/* "etcd=go.etcd.io/etcd/server/v3": the package, and the name its program gets. */
static const char *package_of(const char *row)
{
        const char *eq = strchr(row, '=');
        return eq ? eq + 1 : row;
}

static int run_packages(struct build *b, const char *const *words, size_t n, struct error *err)
{
        const char *argv[32] = { b->go };
        memcpy(argv + 1, words, n * sizeof(*words));
        n++;
        for (size_t i = 0; i < ARRAY_SIZE(b->recipe->packages) && b->recipe->packages[i]; i++)
                argv[n++] = package_of(b->recipe->packages[i]);
        return fetch_build_run(b, argv, err);
}

/* ---- steps ---- */

static int scratch(struct build *b, struct error *err)
{
        const struct fetch *f = b->job->fetch;
        b->work = xasprintf("%s/artifacts/.work.XXXXXX", f->cache);
        b->log_path = xasprintf("%s/logs/build-%s-%s.log", f->cache, b->recipe->name, b->version);
        if (!mkdtemp(b->work))
                return error_set(err, errno, EXIT_INTERNAL, "cannot write to the cache %s: %s",
                        f->cache, strerror(errno));
        b->log = open(b->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        b->from = path_join(b->work, "out");
        return dir_make(b->from, 0755, err);
}

/* scripts/setup.sh installs one into the cache if the computer's is too old. */
static char *go_command(const struct fetch *f)
{
        char *own = path_join(f->cache, "go/bin/go");
        if (access(own, X_OK) == 0)
                return own;
        free(own);
        return xstrdup("go");
}

/* "1.26" of "go1.26.8". */
static bool read_env(struct build *b)
{
        json_t *env = json_loads(str_text(&b->out), 0, NULL);
        const char *version = json_string_value(json_object_get(env, "GOVERSION")),
                   *flags = json_string_value(json_object_get(env, "GOFLAGS")),
                   *sums = json_string_value(json_object_get(env, "GOSUMDB"));
        unsigned major, minor;
        bool good = version && sscanf(version, "go%u.%u", &major, &minor) == 2;
        if (good) {
                b->go_version = xasprintf("%u.%u", major, minor);
                b->goflags = xstrdup(flags ? flags : "");
                b->unverified = sums && streq(sums, "off");
        }
        json_decref(env);
        return good;
}

/* Kubernetes' own go.mod lists its staging modules as v0.0.0. */
static void staging_line(const struct build *b, const char *line, struct str *mod)
{
        const char *minor = strchr(b->version, '.');
        char name[100], at[32];
        if (sscanf(line, " %99s %31s", name, at) == 2 && has_prefix(name, "k8s.io/") &&
                streq(at, "v0.0.0"))
                str_addf(mod, "replace %s => %s v0%s\n", name, name, minor ? minor : "");
}

/* go heeds replace and exclude only in the main module's go.mod. A directory cannot be taken over.
 * An exclude is read where it is a line of its own. */
static void replace_line(const char *line, struct str *mod)
{
        char name[200], at[100];
        const char *by = strstr(line, " => ");
        line += strspn(line, " \t");
        if (sscanf(line, "exclude %199s %99s", name, at) == 2 && at[0] == 'v')
                str_addf(mod, "exclude %s %s\n", name, at);
        line += has_prefix(line, "replace ") ? strlen("replace ") : 0;
        if (by && sscanf(by, " => %199s %99s", name, at) == 2 && at[0] == 'v')
                str_addf(mod, "replace %.*s => %s %s\n", (int)(by - line), line, name, at);
}

/* What the wanted module's own go.mod says of others. */
static int add_others(const struct build *b, struct str *mod, struct error *err)
{
        json_t *info = json_loads(str_text(&b->out), 0, NULL);
        const char *path = json_string_value(json_object_get(info, "GoMod"));
        struct str text CLEANUP(str_release) = { 0 };
        int r = path ? file_read(path, 1 << 20, &text, err)
                     : error_set(err, EIO, EXIT_INTERNAL,
                               "go mod download did not tell where the module is");
        json_decref(info);
        for (char *rest = text.data, *line; r == 0 && rest && (line = strsep(&rest, "\n"));) {
                if (b->recipe->staging)
                        staging_line(b, line, mod);
                if (b->recipe->replaces)
                        replace_line(line, mod);
        }
        return r;
}

static int write_module(struct build *b, struct error *err)
{
        struct str mod CLEANUP(str_release) = { 0 }, tools CLEANUP(str_release) = { 0 };
        char *mod_path CLEANUP(free_p) = path_join(b->work, "go.mod"),
                       *tools_path CLEANUP(free_p) = path_join(b->work, "tools.go");
        str_addf(&mod, "module build\n\ngo %s\n\n", b->go_version);
        for (size_t i = 0; i < ARRAY_SIZE(b->recipe->modules) && b->recipe->modules[i]; i++) {
                const char *module = b->recipe->modules[i], *at = strchr(module, '@');
                str_addf(&mod, "require %.*s %s%s\n", (int)strcspn(module, "@"), module,
                        at ? at + 1 : "v", at ? "" : b->version);
        }
        int r = b->recipe->staging || b->recipe->replaces ? add_others(b, &mod, err) : 0;
        /* Imports keep go mod tidy from dropping what is required; the file is never compiled. */
        str_add(&tools, "//go:build tools\n\npackage build\n\n");
        for (size_t i = 0; i < ARRAY_SIZE(b->recipe->packages) && b->recipe->packages[i]; i++)
                str_addf(&tools, "import _ \"%s\"\n", package_of(b->recipe->packages[i]));
        if (r == 0)
                r = file_write(mod_path, mod.data, mod.len, 0644, 0, NULL, err);
        return r == 0 ? file_write(tools_path, tools.data, tools.len, 0644, 0, NULL, err) : r;
}

static int compile(struct build *b, struct error *err)
{
        char *expanded CLEANUP(free_p) =
                origin_expand(b->recipe->ldflags, b->version, b->job->fetch->request.arch);
        char *ldflags CLEANUP(free_p) =
                xasprintf("%s%s", expanded, b->recipe->cgo ? " -extldflags \"-static\"" : "");
        const char *words[] = { "build", "-v", "-o", "out/", "-tags",
                b->recipe->tags ? b->recipe->tags : "", "-ldflags", ldflags, "-c", "-vet=off" };
        b->permille = -2;
        if (!b->recipe->test) {
                show_compiled(b);
                return run_packages(b, words, ARRAY_SIZE(words) - 2, err);
        }
        /* go test prints no line per package */
        job_note(b->job, -1, "building %s %s", b->recipe->name, b->version);
        words[0] = "test";
        return run_packages(b, words, ARRAY_SIZE(words), err);
}

/* The name of the program in go: the last word of its package that is not a version. */
static char *program_of(const char *package)
{
        const char *end = package + strlen(package), *slash = strrchr(package, '/');
        if (slash && slash[1] == 'v' && slash[2] >= '0' && slash[2] <= '9')
                end = slash;
        const char *begin = end;
        while (begin > package && begin[-1] != '/')
                begin--;
        return xstrndup(begin, (size_t)(end - begin));
}

static int rename_programs(struct build *b, struct error *err)
{
        for (size_t i = 0; i < ARRAY_SIZE(b->recipe->packages) && b->recipe->packages[i]; i++) {
                const char *row = b->recipe->packages[i], *package = package_of(row);
                if (package == row)
                        continue;
                char *word CLEANUP(free_p) = program_of(package),
                           *name CLEANUP(free_p) = xstrndup(row, (size_t)(package - row - 1));
                char *old CLEANUP(free_p) = path_join(b->from, word),
                          *new CLEANUP(free_p) = path_join(b->from, name);
                if (rename(old, new) < 0)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot rename %s: %s", old,
                                strerror(errno));
        }
        return 0;
}

/* The module cache is read-only; the copy is not. */
static int copy_data(struct build *b, struct error *err)
{
        const char *dir = str_text(&b->out);
        char *from CLEANUP(free_p) =
                xasprintf("%.*s/%s", (int)strcspn(dir, "\n"), dir, b->recipe->data);
        return fetch_build_run(b,
                (const char *[]){ "cp", "-r", "--no-preserve=mode", "--", from, "out/", NULL },
                err);
}

/* 0: a child was started, 1: nothing to do in this step. */
static int run_step(struct build *b, struct error *err)
{
        const struct recipe *r = b->recipe;
        char *module CLEANUP(free_p) = xasprintf("%s@v%s", r->modules[0], b->version),
                     *go CLEANUP(free_p) = NULL;
        switch (b->step) {
        case STEP_LIBRARY:
                return r->library ? fetch_build_run(b,
                                            (const char *[]){
                                                    "pkg-config", "--exists", r->library, NULL },
                                            err)
                                  : 1;
        case STEP_ENV:
                return fetch_build_run(b,
                        (const char *[]){
                                b->go, "env", "-json", "GOVERSION", "GOFLAGS", "GOSUMDB", NULL },
                        err);
        case STEP_MODULE:
                if (!read_env(b))
                        return error_set(
                                err, EIO, EXIT_INTERNAL, "go env does not tell its version");
                if (b->unverified) {
                        error_set(err, EACCES, EXIT_STATE,
                                "the go command does not verify modules on this computer (GOSUMDB=off): nothing was built");
                        return error_hint(err,
                                "unset GOSUMDB (go env -u GOSUMDB), or name a checksum database that can be reached, and run again");
                }
                return r->staging || r->replaces
                               ? fetch_build_run(b,
                                         (const char *[]){
                                                 b->go, "mod", "download", "-json", module, NULL },
                                         err)
                               : 1;
        case STEP_TIDY:
                if (write_module(b, err) < 0)
                        return -err->code;
                go = xasprintf("-go=%s", b->go_version);
                job_note(b->job, -1, "getting the modules of %s %s", r->name, b->version);
                return fetch_build_run(
                        b, (const char *[]){ b->go, "mod", "tidy", "-e", go, NULL }, err);
        case STEP_COUNT:
                return r->test ? 1
                               : run_packages(b,
                                         (const char *[]){
                                                 "list", "-deps", "-tags", r->tags ? r->tags : "" },
                                         4, err);
        case STEP_COMPILE:
                return compile(b, err);
        case STEP_WHERE:
                return r->data ? fetch_build_run(b,
                                         (const char *[]){ b->go, "list", "-m", "-f", "{{.Dir}}",
                                                 r->modules[0], NULL },
                                         err)
                               : 1;
        case STEP_DATA:
                return r->data ? copy_data(b, err) : 1;
        default:
                return rename_programs(b, err);
        }
}

static void next_step(struct build *b)
{
        struct error err CLEANUP(error_release) = { 0 };
        int r;
        while ((r = run_step(b, &err)) == 1)
                b->step++;
        if (r < 0 && b->step == STEP_LIBRARY)
                take_own(b, "there is no pkg-config to look for its libraries");
        else if (r < 0) {
                if (err.code == ENOENT && b->step == STEP_ENV)
                        error_hint(&err, "install Go, or set artifacts.bundle or artifacts.mirror");
                build_fail(b, &err);
        } else if (b->step == STEP_END) {
                pack_start(b);
        }
}

static void build_start(struct job *j)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct build *b = j->state = xcalloc(1, sizeof(*b));
        const char *space = strchr(j->key, ' ');
        char *name CLEANUP(free_p) = xstrndup(j->key, (size_t)(space - j->key));
        *b = (struct build){ .job = j,
                .recipe = recipe_of(name),
                .version = xstrdup(space + 1),
                .log = -1,
                .how = "build" };
        if (b->recipe->agent && !j->fetch->request.agent) {
                error_set(&err, ENOTSUP, EXIT_INTERNAL,
                        "this program has no agent to make the %s image of", name);
                build_fail(b, &err);
        } else if (b->recipe->agent || (b->from = recipe_dir(j->fetch, name, b->version))) {
                pack_start(b);
        } else if (!b->recipe->packages[0]) {
                take_own(b, "it is not written in Go");
        } else if (b->recipe->library && !fetch_own_arch(j->fetch)) {
                take_own(b, "it is linked with a C library of that architecture");
        } else if (scratch(b, &err) < 0) {
                build_fail(b, &err);
        } else {
                b->go = go_command(j->fetch);
                job_note(j, -1, "building %s %s", name, b->version);
                next_step(b);
        }
}

static void build_stop(struct job *j)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct build *b = j->state;
        proc_free(b->proc);
        if (b->work)
                dir_remove(b->work, &ignored);
        close_p(&b->log);
        str_release(&b->out);
        str_release(&b->last);
        char *texts[] = { b->version, b->work, b->from, b->log_path, b->go, b->go_version,
                b->goflags };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                free(texts[i]);
        free(b->made);
        free(b);
}

const struct job_kind build_job = { .at_once = 2, .start = build_start, .stop = build_stop };

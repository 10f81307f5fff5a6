/* Packages, with the node's package manager: only missing ones are installed, all in one call. */
#include <fcntl.h>

#include "agent/reset/reset.h"

#define QUERY_SECONDS   120
#define INSTALL_SECONDS 1800

static const struct manager {
        const char *program;
        const char *databases[3]; /* files that change with every installation */
        const char *query[6], *install[16], *refresh[8], *list[6], *remove[8];
} managers[] = {
        { .program = "apt-get",
                .databases = { "/var/lib/dpkg/status" },
                .query = { "dpkg-query", "-W", "-f", "${Package} ${Status}\n", "--" },
                /* keeps configuration files that the agent wrote before the package came; waits for
                   another apt */
                .install = { "apt-get", "-y", "-q", "--no-install-recommends", "-o",
                        "DPkg::Lock::Timeout=600", "-o", "Dpkg::Options::=--force-confold", "-o",
                        "Dpkg::Options::=--force-confdef", "install", "--" },
                .refresh = { "apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", "update" },
                .list = { "dpkg-query", "-W", "-f", "${Package} ${Status}\n" },
                /* dpkg, not apt: it removes no other packages and refuses those that
                 * others depend on */
                .remove = { "dpkg", "--purge" } },
        { .program = "dnf",
                .databases = { "/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite",
                        "/var/lib/rpm/Packages" },
                .query = { "rpm", "-q", "--qf", "%{NAME} install ok installed\n",
                        "--whatprovides" },
                .install = { "dnf", "-y", "--setopt=install_weak_deps=False", "install" },
                .refresh = { "dnf", "-y", "makecache" },
                .list = { "rpm", "-qa", "--qf", "%{NAME} install ok installed\n" },
                .remove = { "rpm", "-e" } },
        { .program = "yum",
                .databases = { "/var/lib/rpm/rpmdb.sqlite", "/var/lib/rpm/Packages" },
                .query = { "rpm", "-q", "--qf", "%{NAME} install ok installed\n",
                        "--whatprovides" },
                .install = { "yum", "-y", "install" },
                .refresh = { "yum", "-y", "makecache" },
                .list = { "rpm", "-qa", "--qf", "%{NAME} install ok installed\n" },
                .remove = { "rpm", "-e" } },
        { .program = "zypper",
                .databases = { "/usr/lib/sysimage/rpm/Packages.db", "/var/lib/rpm/Packages.db",
                        "/var/lib/rpm/Packages" },
                .query = { "rpm", "-q", "--qf", "%{NAME} install ok installed\n",
                        "--whatprovides" },
                .install = { "zypper", "--non-interactive", "install", "--no-recommends", "--" },
                .refresh = { "zypper", "--non-interactive", "refresh" },
                .list = { "rpm", "-qa", "--qf", "%{NAME} install ok installed\n" },
                .remove = { "rpm", "-e" } },
};

static const struct manager *manager_find(void)
{
        static const char *const dirs[] = { "/usr/bin", "/bin", "/usr/sbin" };
        for (size_t i = 0; i < ARRAY_SIZE(managers); i++)
                for (size_t k = 0; k < ARRAY_SIZE(dirs); k++) {
                        char *path CLEANUP(free_p) =
                                xasprintf("%s/%s", dirs[k], managers[i].program);
                        if (access(path, X_OK) == 0)
                                return &managers[i];
                }
        return NULL;
}

const char *package_manager(void)
{
        const struct manager *m = manager_find();
        return !m ? NULL : streq(m->program, "apt-get") ? "apt" : m->program;
}

static bool package_print(struct print *out)
{
        const struct manager *m = manager_find();
        for (size_t i = 0; m && i < ARRAY_SIZE(m->databases) && m->databases[i]; i++)
                if (print_take(m->databases[i], out))
                        return true;
        return false;
}

static void words_add_all(struct words *w, const char *const *v)
{
        for (; *v; v++)
                words_add(w, *v);
}

static bool package_installed(const struct str *list, const char *name)
{
        char *line CLEANUP(free_p) = xasprintf("%s install ok installed\n", name);
        const char *at = strstr(str_text(list), line);
        while (at && at != list->data && at[-1] != '\n')
                at = strstr(at + 1, line);
        return at != NULL;
}

/* rpm is asked for one at a time: it answers with the providing package, whose name may differ. */
static void packages_query(struct agent *a, const struct manager *m)
{
        struct words w CLEANUP(words_release) = { 0 };
        struct str list CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        bool rpm = streq(m->query[0], "rpm");
        words_add_all(&w, m->query);
        size_t fixed = w.n;
        for (size_t i = 0; i < a->count; i++) {
                struct entry *e = &a->entries[i];
                if (e->kind != SPEC_PACKAGE)
                        continue;
                words_add(&w, e->name);
                if (rpm) {
                        e->state = tool(&a->session, w.v, QUERY_SECONDS, NULL, &err) == 0
                                           ? STATE_SAME
                                           : STATE_CREATED;
                        w.n = fixed;
                }
        }
        if (rpm || w.n == fixed)
                return;
        /* its exit status only says that some are unknown */
        tool(&a->session, w.v, QUERY_SECONDS, &list, &err);
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_PACKAGE)
                        a->entries[i].state = package_installed(&list, a->entries[i].name)
                                                      ? STATE_SAME
                                                      : STATE_CREATED;
}

void check_packages(struct agent *a)
{
        struct print now = { 0 };
        bool asked = false;
        const struct manager *m = manager_find();
        package_print(&now);
        for (size_t i = 0; i < a->count; i++) {
                struct entry *e = &a->entries[i];
                if (e->kind != SPEC_PACKAGE)
                        continue;
                const struct row *row = record_find(&a->record, SPEC_PACKAGE, e->name);
                e->state = row && print_equal(&row->print, &now) ? STATE_SAME : STATE_CREATED;
                asked |= e->state != STATE_SAME;
        }
        if (asked && m)
                packages_query(a, m);
}

/* A package manager is never stopped half-way, not even when the connection is cut. */
static int package_manage(struct agent *a, const char *const *argv, struct error *err)
{
        struct child *c = child_start(&a->session, argv, true);
        int r = child_wait(&a->session, c, INSTALL_SECONDS, err);
        child_free(&a->session, c);
        return r < 0 ? error_wrap(err, "%s", argv[0]) : 0;
}

/* Queries only when packages changed since. rpm answers with providing packages, so there only all
 * or none can be reported. */
void packages_drift(struct agent *a, struct str *frame)
{
        struct words w CLEANUP(words_release) = { 0 };
        struct str list CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        const struct manager *m = manager_find();
        struct print now = { 0 };
        bool asked = false;
        if (!m)
                return;
        package_print(&now);
        words_add_all(&w, m->query);
        size_t fixed = w.n;
        for (size_t i = 0; i < a->record.count; i++)
                if (a->record.rows[i]->kind == SPEC_PACKAGE) {
                        words_add(&w, a->record.rows[i]->key);
                        asked |= !print_equal(&a->record.rows[i]->print, &now);
                }
        if (!asked || tool(&a->session, w.v, QUERY_SECONDS, &list, &err) == 0)
                asked = asked && !streq(m->query[0], "rpm");
        for (size_t i = fixed; i < w.n && asked; i++)
                if ((streq(m->query[0], "rpm") || !package_installed(&list, w.v[i])) &&
                        frame->len < WIRE_MAX - 8192)
                        wire_text(frame, TAG_DRIFT, w.v[i]);
}

static int packages_install(
        struct agent *a, const struct manager *m, struct entry *e, size_t n, struct error *err)
{
        struct words w CLEANUP(words_release) = { 0 };
        words_add_all(&w, m->install);
        for (size_t i = 0; i < n; i++)
                if (e[i].state != STATE_SAME)
                        words_add(&w, e[i].name);
        return package_manage(a, w.v, err);
}

/* Package lists may be old or missing: refreshes them when the first attempt fails. */
static int packages_install_retry(
        struct agent *a, const struct manager *m, struct entry *e, size_t n, struct error *err)
{
        struct error other CLEANUP(error_release) = { 0 };
        setenv("DEBIAN_FRONTEND", "noninteractive", 1);
        if (streq(m->program, "apt-get")) /* completes an interrupted installation */
                package_manage(a, WORDS("dpkg", "--force-confold", "--configure", "-a"), &other);
        if (packages_install(a, m, e, n, err) == 0 || !session_alive(&a->session))
                return -err->code;
        error_release(&other);
        if (package_manage(a, m->refresh, &other) < 0)
                return -err->code;
        error_release(err);
        return packages_install(a, m, e, n, err);
}

/* ---- packages that the agent installed ---- */

static void packages_list(struct agent *a, const struct manager *m, struct str *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        tool(&a->session, m->list, QUERY_SECONDS, out, &err);
}

/* Saves packages of `now` that are not in `then`: the installed ones and their dependencies. */
static void packages_keep_new(struct agent *a, const struct str *then, const struct str *now)
{
        static const char tail[] = " install ok installed";
        struct error err CLEANUP(error_release) = { 0 };
        char *copy CLEANUP(free_p) = xstrdup(str_text(now)), *save = NULL;
        for (char *line = strtok_r(copy, "\n", &save); then->len && line;
                line = strtok_r(NULL, "\n", &save)) {
                if (!has_suffix(line, tail))
                        continue;
                line[strlen(line) - strlen(tail)] = 0;
                if (!package_installed(then, line))
                        before_value(a, "package", line, "absent");
        }
        before_flush(a, &err);
}

static struct words *came; /* for before_each */

static void package_add_came(struct agent *a, const char *name, const char *value)
{
        (void)a;
        (void)value;
        words_add(came, name);
}

/* Removes packages that nothing else depends on; keeping the others is no failure. One by one only
 * when removing all at once is refused. */
void reset_packages(struct agent *a)
{
        struct words names CLEANUP(words_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        const struct manager *m = manager_find();
        came = &names;
        before_each(a, "package", package_add_came);
        if (!m || !names.n)
                return;
        setenv("DEBIAN_FRONTEND", "noninteractive", 1);
        for (size_t i = 0; i <= names.n && session_alive(&a->session); i++) {
                struct words w CLEANUP(words_release) = { 0 };
                words_add_all(&w, m->remove);
                for (size_t k = 0; k < names.n; k++)
                        if (!i || k == i - 1)
                                words_add(&w, names.v[k]);
                error_release(&err);
                if (package_manage(a, w.v, &err) == 0 && !i)
                        break;
                if (streq(m->program, "apt-get")) /* dpkg has removed all that it could */
                        break;
        }
        reset_event(a, SPEC_PACKAGE, "packages", STATE_REMOVED,
                err.code ? "those that no other package needs" : NULL);
}

void apply_packages(struct agent *a, struct entry *e, size_t n)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct manager *m = manager_find();
        struct print now = { 0 };
        bool missing = false;
        for (size_t i = 0; i < n; i++)
                missing |= e[i].state != STATE_SAME;
        if (missing && session_alive(&a->session)) {
                if (!m)
                        error_set(&err, ENOENT, EXIT_STEP,
                                "this node has no supported package manager (apt-get, dnf, yum or zypper)");
                else {
                        struct str then CLEANUP(str_release) = { 0 },
                                        after CLEANUP(str_release) = { 0 };
                        units_premask(a);
                        a->recheck = true;
                        packages_list(a, m, &then);
                        packages_install_retry(a, m, e, n, &err);
                        packages_list(a, m, &after);
                        packages_keep_new(a, &then, &after);
                }
        }
        if (a->session.cut)
                return;
        package_print(&now);
        for (size_t i = 0; i < n; i++)
                if (e[i].state != STATE_SAME && err.code)
                        entry_failed(a, &e[i], &err);
                else {
                        record_entry(a, &e[i])->print = now;
                        entry_report(a, &e[i], e[i].state);
                }
}

/* System users that services run as. A user that existed before is never changed or removed. */
#include <grp.h>
#include <pwd.h>

#include "agent/agent.h"

/* User databases of systems with a read-only /usr; the agent's C library reads only /etc. */
static const char *const other_users[] = { "/usr/lib/passwd", "/usr/share/baselayout/passwd" };
static const char *const other_groups[] = { "/usr/lib/group", "/usr/share/baselayout/group" };

bool user_find(const char *name, unsigned *uid, unsigned *gid)
{
        struct passwd *pw = getpwnam(name);
        bool found = pw;
        if (found) {
                *uid = pw->pw_uid;
                *gid = pw->pw_gid;
        }
        for (size_t i = 0; !found && i < ARRAY_SIZE(other_users); i++) {
                FILE *f = fopen(other_users[i], "re");
                while (f && !found && (pw = fgetpwent(f)))
                        if ((found = streq(pw->pw_name, name))) {
                                *uid = pw->pw_uid;
                                *gid = pw->pw_gid;
                        }
                if (f)
                        fclose(f);
        }
        return found;
}

bool group_find(const char *name, unsigned *gid)
{
        struct group *gr = getgrnam(name);
        bool found = gr;
        if (found)
                *gid = gr->gr_gid;
        for (size_t i = 0; !found && i < ARRAY_SIZE(other_groups); i++) {
                FILE *f = fopen(other_groups[i], "re");
                while (f && !found && (gr = fgetgrent(f)))
                        if ((found = streq(gr->gr_name, name)))
                                *gid = gr->gr_gid;
                if (f)
                        fclose(f);
        }
        return found;
}

void check_user(struct agent *a, struct entry *e)
{
        unsigned uid, gid;
        (void)a;
        e->state = user_find(e->name, &uid, &gid) ? STATE_SAME : STATE_CREATED;
}

/* Backups that the user tools write before a change: without this, a removed user would still
 * be in them. */
static const char *const copies[] = { "passwd-", "shadow-", "group-", "gshadow-" };

static void copies_keep(struct agent *a, bool back)
{
        for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
                struct error ignored CLEANUP(error_release) = { 0 };
                char *of CLEANUP(free_p) = xasprintf("/etc/%s", copies[i]),
                         *kept CLEANUP(free_p) = xasprintf("%s/before/%s", a->state, copies[i]);
                if (access(back ? kept : of, F_OK) == 0)
                        tool(&a->session,
                                WORDS("cp", "-a", "--", back ? kept : of, back ? of : kept), 60,
                                NULL, &ignored);
                else if (back)
                        unlink(of); /* it did not exist before */
        }
}

static int user_make(struct agent *a, const struct entry *e, struct error *err)
{
        unsigned gid;
        if (!before_is(a, "user", e->name))
                copies_keep(a, false);
        before_value(a, "user", e->name, "absent");
        /* created by others: then that group is used */
        bool grouped = group_find(e->name, &gid);
        const char *const with[] = { "useradd", "--system", "--no-create-home", "--home-dir",
                e->target ? e->target : "/", "--shell", "/usr/sbin/nologin", e->name,
                grouped ? "--gid" : "--user-group", grouped ? e->name : NULL, NULL };
        int r = before_flush(a, err);
        if (r == 0 && (r = tool(&a->session, with, 60, NULL, err)) < 0)
                error_hint(err,
                        "create the system user %s on the node, or fix what useradd complains about",
                        e->name);
        return r;
}

void apply_users(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                record_entry(a, &e[i]);
                if (e[i].state != STATE_SAME && user_make(a, &e[i], &err) < 0)
                        entry_failed(a, &e[i], &err);
                else
                        entry_report(a, &e[i], e[i].state);
        }
}

/* 2: it existed before the first run, and stays. */
int user_remove(struct agent *a, const char *name, struct error *err)
{
        unsigned uid, gid;
        const char *before = before_get(a, "user", name);
        if (!before || !user_find(name, &uid, &gid))
                return before ? 0 : 2;
        if (tool(&a->session, WORDS("userdel", name), 60, NULL, err) < 0)
                return -err->code;
        copies_keep(a, true);
        return 0;
}

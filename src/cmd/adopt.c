/* adopt: adopts a cluster that kubeadm made. Writes cluster.yaml and the Identity; nothing on the
 * hosts is changed (`slipway plan` shows what `up` would change). */
#include <event2/event.h>
#include <time.h>

#include "base/file.h"
#include "cluster/adopt/adopt.h"
#include "cluster/site/record.h"
#include "cmd/operate.h"

/* USER@HOST[:PORT]; -O passes options to ssh (like its -o), --key names a key. */
static int parse_target(
        struct arena *a, const struct options *o, struct link_target *t, struct error *err)
{
        const char *word = o->args.v[0], *at = strrchr(word, '@'), *host = at ? at + 1 : word,
                   *colon = strchr(host, ':');
        bool port = colon && !strchr(colon + 1, ':');
        *t = (struct link_target){ .name = arena_strdup(a, host),
                .host = port ? arena_strndup(a, host, (size_t)(colon - host)) : host,
                .user = at ? arena_strndup(a, word, (size_t)(at - word)) : "root",
                .port = port ? strtol(colon + 1, NULL, 10) : 0,
                .key = o->key,
                .options = &o->ssh_options,
                .accept_new = true };
        t->sudo = !streq(t->user, "root");
        if (*t->host && *t->user && (!port || t->port > 0))
                return 0;
        error_set(err, EINVAL, EXIT_USAGE, "'%s' is not a host", word);
        return error_hint(err, "write it as ssh does: root@10.0.0.11");
}

static int write_file(
        const struct options *o, const char *path, const struct str *text, struct error *err)
{
        if (!o->force && access(path, F_OK) == 0) {
                error_set(err, EEXIST, EXIT_USAGE, "%s exists already", path);
                return error_hint(err, "name another with -f, or give --force to overwrite it");
        }
        return file_write(path, str_text(text), text->len, 0644, FILE_SYNC, NULL, err);
}

/* Paths in the cluster's file are relative to that file. */
static const char *beside(struct arena *a, const char *path, const char *name)
{
        const char *slash = strrchr(path, '/');
        return slash ? arena_printf(a, "%.*s%s", (int)(slash + 1 - path), path, name) : name;
}

static int write_policy(
        const struct options *o, const char *path, const char *text, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, text);
        return write_file(o, path, &s, err);
}

/* The record's hosts are written by the first run. */
static int adopt_record(const char *dir, struct arena *a, struct error *err)
{
        struct host_records record;
        int r = records_read(dir, a, &record, err);
        record.adopted = true;
        return r < 0 ? r : records_write(dir, &record, err);
}

static int take_in(const struct options *o, struct arena *a, struct adopt *found, struct error *err)
{
        struct cluster *c;
        struct identity id = { .lock = -1 };
        struct identity_given given;
        int r = cmd_load(o, a, &c, err);
        if (r == 0)
                r = adopt_given(found, &given, err);
        if (r == 0)
                r = identity_adopt(
                        o->state ? o->state : ".slipway", c, &given, time(NULL), &id, err);
        bool opened = r == 0;
        if (r == 0)
                r = adopt_record(id.dir, a, err);
        if (r == 0)
                print("%s: %zu node%s, Kubernetes %s. Nothing on them was changed.\nlook:  slipway plan\ngo on: slipway up\n",
                        c->name, c->node_count, c->node_count == 1 ? "" : "s", c->kubernetes.text);
        if (opened)
                identity_release(&id);
        return r;
}

int cmd_adopt(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct adopt found CLEANUP(adopt_release) = { .arena = &a, .base = base };
        struct str text CLEANUP(str_release) = { 0 };
        const char *path = o->files.n ? o->files.v[0] : "cluster.yaml";
        int r = parse_target(&a, o, &found.target, err);
        if (r == 0 && !o->force && access(path, F_OK) == 0)
                r = write_file(o, path, &text, err);
        if (r == 0)
                r = adopt_read(&found, err);
        if (r == 0)
                r = adopt_write(&found, o->name, &text, err);
        const char *policy = found.extra[EXTRA_AUDIT] ? beside(&a, path, ADOPT_POLICY) : NULL;
        if (r == 0 && policy)
                r = write_policy(o, policy, found.extra[EXTRA_AUDIT], err);
        if (r == 0)
                r = write_file(o, path, &text, err);
        if (r < 0)
                return r;
        r = take_in(o, &a, &found, err);
        /* removes incomplete files */
        if (r < 0)
                unlink(path);
        if (r < 0 && policy)
                unlink(policy);
        return r;
}

/* Ignition. It runs before systemd starts, so the order of units and files does not matter. It
 * cannot install packages: the agent does. */
#include <jansson.h>

#include "deliver/encode.h"
#include "deliver/userdata.h"

#define GZIP_FROM 1024 /* bytes: smaller files stay readable */

/* A list of an object, made at its first use: empty lists are left out. */
static json_t *ignition_list(json_t *object, const char *key)
{
        json_t *l = json_object_get(object, key);
        if (!l) {
                l = json_array();
                json_object_set_new(object, key, l);
        }
        return l;
}

static json_t *ignition_append(json_t *array, json_t *element)
{
        if (!element || json_array_append_new(array, element) < 0)
                abort(); /* not UTF-8, which src/config refuses */
        return element;
}

/* The element of systemd.units with that name. */
static json_t *ignition_unit(json_t *systemd, const char *name)
{
        json_t *units = ignition_list(systemd, "units"), *u;
        size_t i;
        json_array_foreach(units, i,
                u) if (streq(json_string_value(json_object_get(u, "name")), name)) return u;
        return ignition_append(units, json_pack("{s:s}", "name", name));
}

static void ignition_set_owner(json_t *o, const char *owner)
{
        if (!owner)
                return;
        const char *colon = strchr(owner, ':');
        json_object_set_new(o, "user",
                json_pack(
                        "{s:s%}", "name", owner, colon ? (size_t)(colon - owner) : strlen(owner)));
        if (colon && colon[1])
                json_object_set_new(o, "group", json_pack("{s:s}", "name", colon + 1));
}

static void ignition_add_file(json_t *storage, const struct spec_entry *e, bool gzip)
{
        struct str url CLEANUP(str_release) = { 0 }, packed CLEANUP(str_release) = { 0 },
                       small CLEANUP(str_release) = { 0 };
        data_url_add(&url, e->content, e->len);
        if (gzip && e->len >= GZIP_FROM) {
                gzip_add(&packed, e->content, e->len);
                data_url_add(&small, packed.data, packed.len);
        }
        bool use = small.len && small.len < url.len;
        json_t *contents = json_pack("{s:s}", "source", use ? small.data : url.data);
        if (use)
                json_object_set_new(contents, "compression", json_string("gzip"));
        json_t *f = ignition_append(ignition_list(storage, "files"),
                json_pack("{s:s, s:b, s:i, s:o}", "path", e->path, "overwrite", true, "mode",
                        (int)(e->mode & 07777), "contents", contents));
        ignition_set_owner(f, e->owner);
}

static bool is_unit_name(const char *name, size_t n)
{
        static const char *const types[] = { ".service", ".socket", ".mount", ".automount", ".swap",
                ".target", ".path", ".timer", ".slice" };
        for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
                size_t t = strlen(types[i]);
                if (n > t && !memcmp(name + n - t, types[i], t))
                        return true;
        }
        return false;
}

/* Adds a unit file or a drop-in to systemd.units; false for any other file. */
static bool ignition_add_unit_file(json_t *systemd, const struct spec_entry *e)
{
        const char *path = unit_path(e);
        if (!path || e->owner || (e->mode & 07777) != 0644 || !plain_text(e->content, e->len))
                return false;
        const char *slash = strchr(path, '/');
        if (!slash && is_unit_name(path, strlen(path))) {
                json_object_set_new(
                        ignition_unit(systemd, path), "contents", json_string(e->content));
                return true;
        }
        size_t n = slash ? (size_t)(slash - path) : 0;
        if (n < 2 || memcmp(slash - 2, ".d", 2) || !is_unit_name(path, n - 2) ||
                strchr(slash + 1, '/') || !has_suffix(slash, ".conf"))
                return false;
        char *name CLEANUP(free_p) = xstrndup(path, n - 2);
        ignition_append(ignition_list(ignition_unit(systemd, name), "dropins"),
                json_pack("{s:s, s:s}", "name", slash + 1, "contents", e->content));
        return true;
}

static void ignition_add_entry(
        json_t *storage, json_t *systemd, const struct spec_entry *e, bool gzip)
{
        json_t *o;
        switch (e->kind) {
        case SPEC_FILE:
                if (!ignition_add_unit_file(systemd, e))
                        ignition_add_file(storage, e, gzip);
                break;
        case SPEC_DIR:
                o = ignition_append(ignition_list(storage, "directories"),
                        json_pack("{s:s, s:b, s:i}", "path", e->path, "overwrite", false, "mode",
                                (int)(e->mode & 07777)));
                ignition_set_owner(o, e->owner);
                break;
        case SPEC_LINK:
                ignition_append(ignition_list(storage, "links"),
                        json_pack("{s:s, s:b, s:s}", "path", e->path, "overwrite", true, "target",
                                e->target));
                break;
        case SPEC_UNIT:
                o = ignition_unit(systemd, e->name);
                if (e->flags & SPEC_DISABLE)
                        json_object_set_new(o, "mask", json_true());
                else if (e->flags & SPEC_ENABLE)
                        json_object_set_new(o, "enabled", json_true());
                break;
        default: /* sysctls, modules and mounts are files and units too */
                break;
        }
}

static const char *ignition_login(const struct cluster *c)
{
        switch (c->provider.kind) {
        case PROVIDER_OPENSTACK:
                return c->provider.openstack.user;
        case PROVIDER_AWS:
                return c->provider.aws.user;
        case PROVIDER_SSH:
        case PROVIDER_TERRAFORM:
                return c->provider.ssh.user;
        default:
                return "root";
        }
}

static void ignition_add_host(
        const struct cluster *c, const struct nodespec *s, json_t *root, json_t *storage)
{
        if (!nodespec_find(s, SPEC_FILE, "/etc/hostname")) {
                char *name CLEANUP(free_p) = xasprintf("%s\n", s->node->name);
                ignition_add_file(storage,
                        &(struct spec_entry){ .kind = SPEC_FILE,
                                .path = "/etc/hostname",
                                .mode = 0644,
                                .content = name,
                                .len = strlen(name) },
                        false);
        }
        if (!c->os.authorized_keys.n && !c->login.key)
                return;
        json_t *keys = json_array();
        if (c->login.key)
                ignition_append(keys, json_string(c->login.key));
        for (size_t i = 0; i < c->os.authorized_keys.n; i++)
                ignition_append(keys, json_string(c->os.authorized_keys.v[i]));
        json_object_set_new(root, "passwd",
                json_pack("{s:[{s:s, s:o}]}", "users", "name", ignition_login(c),
                        "sshAuthorizedKeys", keys));
}

void ignition_text(const struct cluster *c, const struct nodespec *s, bool gzip, struct str *out)
{
        json_t *root = json_pack("{s:{s:s}}", "ignition", "version", "3.4.0");
        json_t *storage = json_object(), *systemd = json_object();
        userdata_assert(s);
        ignition_add_host(c, s, root, storage);
        for (size_t i = 0; i < s->count; i++)
                ignition_add_entry(storage, systemd, &s->entries[i], gzip);
        json_object_set_new(root, "storage", storage);
        json_object_set_new(root, "systemd", systemd);
        char *text CLEANUP(free_p) = json_dumps(root, gzip ? JSON_INDENT(2) : JSON_COMPACT);
        if (!text)
                abort();
        str_add(out, text);
        str_add(out, gzip ? "\n" : "");
        json_decref(root);
}

void ignition_write(const struct cluster *c, const struct nodespec *s, struct str *out)
{
        ignition_text(c, s, true, out);
}

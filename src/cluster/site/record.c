#include "cluster/site/record.h"

#include <jansson.h>

#include "base/file.h"
#include "config/cluster.h"

#define RECORD_MAX     ((size_t)8 << 20)
#define RECORD_NODES   20000
#define RECORD_TEXT    512
#define RECORD_VERSION 1
#define RECORD_ROLES   (ROLE_CONTROL_PLANE | ROLE_ETCD | ROLE_WORKER)

/* The text fields of a row. */
static const struct {
        const char *key;
        size_t at;
        bool version;
} record_texts[] = {
        { "name", offsetof(struct host_record, name) },
        { "address", offsetof(struct host_record, address) },
        { "user", offsetof(struct host_record, user) },
        { "ip", offsetof(struct host_record, ip) },
        { "hostKey", offsetof(struct host_record, host_key) },
        { "machineId", offsetof(struct host_record, machine_id) },
        { "healthyVersion", offsetof(struct host_record, healthy), true },
        { "unprovenVersion", offsetof(struct host_record, unproven), true },
};

static const char **record_text(struct host_record *h, size_t i)
{
        return (const char **)((char *)h + record_texts[i].at);
}

/* ---- rows ---- */

struct host_record *records_find(const struct host_records *r, const char *name)
{
        for (size_t i = 0; name && i < r->n; i++)
                if (streq(r->v[i].name, name))
                        return &r->v[i];
        return NULL;
}

struct host_record *records_put(struct host_records *r, struct arena *a, const char *name)
{
        struct host_record *h = records_find(r, name);
        if (h)
                return h;
        if (r->n == r->cap) {
                struct host_record *more =
                        arena_array(a, struct host_record, r->cap = r->cap ? r->cap * 2 : 16);
                if (r->n)
                        memcpy(more, r->v, r->n * sizeof(*more));
                r->v = more;
        }
        r->v[r->n] = (struct host_record){ .name = arena_strdup(a, name) };
        return &r->v[r->n++];
}

void records_drop(struct host_records *r, const char *name)
{
        struct host_record *h = records_find(r, name);
        if (h)
                memmove(h, h + 1, (size_t)(r->v + --r->n - h) * sizeof(*h));
}

/* ---- read ---- */

/* Rejects texts that ssh could take as an option or that contain control characters: slipway never
 * writes such texts. */
static bool record_plain(const char *text)
{
        if (!*text || *text == '-' || strlen(text) > RECORD_TEXT)
                return false;
        for (const char *p = text; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        return false;
        return true;
}

static bool record_valid(size_t i, const char *text)
{
        struct version v;
        return record_plain(text) && (!record_texts[i].version || version_parse(text, &v));
}

static bool record_row(const json_t *o, struct arena *a, struct host_records *out)
{
        struct host_record h = { 0 };
        json_int_t port = json_integer_value(json_object_get(o, "port"));
        for (size_t i = 0; i < ARRAY_SIZE(record_texts); i++) {
                const json_t *v = json_object_get(o, record_texts[i].key);
                const char *text = json_string_value(v);
                if (v && (!text || !record_valid(i, text)))
                        return false;
                *record_text(&h, i) = text ? arena_strdup(a, text) : NULL;
        }
        if (!h.name || (h.unproven && !h.healthy) || port < 0 || port > 65535 ||
                records_find(out, h.name))
                return false;
        h.port = (long)port;
        h.roles = (unsigned)json_integer_value(json_object_get(o, "roles")) & RECORD_ROLES;
        *records_put(out, a, h.name) = h;
        return true;
}

static int record_damaged(const char *path, const char *why, struct error *err)
{
        error_set(err, EBADMSG, EXIT_STATE, "%s is damaged: %s", path, why);
        return error_hint(err,
                "restore it from a backup; or remove it: 'slipway up' records the nodes of the file again, and hosts "
                "that are no longer in the file are then not changed");
}

static int record_unread(struct error *err)
{
        err->status = EXIT_STATE;
        error_wrap(err, "the record of the cluster's hosts");
        return error_hint(err, "make it readable again, or restore it from a backup");
}

static int record_parse(const char *path, const json_t *json, struct arena *a,
        struct host_records *out, struct error *err)
{
        const json_t *list = json_object_get(json, "nodes"), *o;
        size_t i;
        json_int_t version = json_integer_value(json_object_get(json, "version"));
        if (version > RECORD_VERSION) {
                error_set(err, ENOTSUP, EXIT_STATE, "%s was written by a newer slipway", path);
                return error_hint(err, "use that version of slipway");
        }
        if (!json_is_array(list) || json_array_size(list) > RECORD_NODES)
                return record_damaged(path, "it has no list of nodes", err);
        json_array_foreach(list, i, o) if (!record_row(o, a, out)) return record_damaged(
                path, "an entry of its list of nodes is invalid", err);
        out->old = version == 0;
        out->adopted = json_is_true(json_object_get(json, "adopted"));
        out->existed = out->old || json_is_true(json_object_get(json, "existed"));
        return 0;
}

int records_read(const char *dir, struct arena *a, struct host_records *out, struct error *err)
{
        static const char *const names[] = { "record.json", "born" };
        *out = (struct host_records){ 0 };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *path CLEANUP(free_p) = path_join(dir, names[i]);
                struct str text CLEANUP(str_release) = { 0 };
                int r = file_read(path, RECORD_MAX, &text, err);
                if (r == -ENOENT || r == -ENOTDIR) {
                        error_release(err);
                        continue;
                }
                if (r < 0)
                        return record_unread(err);
                out->old = out->existed = i == 1;
                if (i == 1 && !text.len) /* the first version wrote an empty file */
                        return 0;
                json_t *json = json_loadb(text.data, text.len, 0, NULL);
                r = json ? record_parse(path, json, a, out, err)
                         : record_damaged(path, "it is not JSON", err);
                json_decref(json);
                return r;
        }
        return 0;
}

/* ---- write ---- */

static json_t *record_json(const struct host_records *r)
{
        json_t *list = json_array();
        for (size_t i = 0; i < r->n; i++) {
                struct host_record h = r->v[i];
                json_t *o = json_object();
                for (size_t k = 0; k < ARRAY_SIZE(record_texts); k++)
                        if (*record_text(&h, k))
                                json_object_set_new(
                                        o, record_texts[k].key, json_string(*record_text(&h, k)));
                if (h.port)
                        json_object_set_new(o, "port", json_integer(h.port));
                json_object_set_new(o, "roles", json_integer((json_int_t)h.roles));
                json_array_append_new(list, o);
        }
        return json_pack("{s:i, s:b, s:b, s:o}", "version", RECORD_VERSION, "existed",
                (int)r->existed, "adopted", (int)r->adopted, "nodes", list);
}

int records_write(const char *dir, const struct host_records *r, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, "record.json"),
                   *old CLEANUP(free_p) = path_join(dir, "born");
        json_t *json = record_json(r);
        char *text CLEANUP(free_p) = json_dumps(json, JSON_INDENT(1));
        json_decref(json);
        int e = text ? file_write(path, text, strlen(text), 0600, 0, NULL, err)
                     : error_set(err, ENOMEM, EXIT_INTERNAL, "no memory");
        if (e == 0)
                unlink(old);
        return e;
}

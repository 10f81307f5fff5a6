/* That the cluster lives, and where its control plane and etcd are: kept in the state directory from the first answer of its API on. The API and etcd know of every
 * node that is no longer in the file, but only who is in the file can be asked; when the file names none of those it named before, this record leads to them. */
#include "base/file.h"
#include "cluster/plan.h"

#define RECORD_MAX ((size_t)4 << 20)
#define KEPT_ROLES (ROLE_CONTROL_PLANE | ROLE_ETCD)

static char *born_path(const struct site *s) { return path_join(s->identity.dir, "born"); }

bool site_born(const struct site *s)
{
        char *path CLEANUP(free_p) = born_path(s);
        return access(path, F_OK) == 0;
}

void site_unbear(struct site *s)
{
        char *path CLEANUP(free_p) = born_path(s);
        unlink(path);
}

/* ---- written ---- */

static void record_add(json_t *list, const struct member *m)
{
        const struct node *n = m->node;
        char text[IP_TEXT];
        const char *address = n->address ? n->address : n->ip[0].family ? ip_format(&n->ip[0], text) : NULL;
        if (n->pool->roles & KEPT_ROLES && address)
                json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "name", n->name, "address", address, "roles", (int)(n->pool->roles & KEPT_ROLES)));
}

/* Without it a run still goes on: only a control plane that is replaced whole would not be found. */
void site_bear(struct site *s, bool leaving)
{
        char *path CLEANUP(free_p) = born_path(s);
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str before CLEANUP(str_release) = { 0 };
        json_t *list = json_array();
        for (size_t i = 0; i < s->count; i++)
                record_add(list, &s->members[i]);
        for (size_t i = 0; leaving && i < s->gone_count; i++)
                record_add(list, s->gone[i]);
        json_t *record = json_pack("{s:o}", "nodes", list);
        char *text CLEANUP(free_p) = json_dumps(record, JSON_COMPACT);
        json_decref(record);
        if (text && (file_read(path, RECORD_MAX, &before, &ignored) < 0 || !streq(str_text(&before), text))) {
                error_release(&ignored);
                file_write(path, text, strlen(text), 0600, 0, NULL, &ignored);
        }
}

/* ---- read ---- */

struct member member_former(struct site *s, const char *name, const char *address, unsigned roles)
{
        struct node *n = arena_new(s->arena, struct node);
        struct pool *p = arena_new(s->arena, struct pool);
        *p = (struct pool){ .name = "", .roles = roles };
        *n = (struct node){ .pool = p, .name = arena_strdup(s->arena, name), .address = address ? arena_strdup(s->arena, address) : NULL };
        if (address)
                ip_parse(address, &n->ip[0]);
        return (struct member){ .site = s, .node = n, .machine = arena_new(s->arena, struct machine), .fate = FATE_REMOVE };
}

struct member *former_find(const struct site *s, const char *name)
{
        for (size_t i = 0; i < s->former_count; i++)
                if (streq(s->former[i].node->name, name))
                        return &s->former[i];
        return NULL;
}

static void take(struct site *s, const json_t *list)
{
        size_t i;
        const json_t *o;
        s->former = arena_array(s->arena, struct member, json_array_size(list) + 1);
        json_array_foreach(list, i, o)
        {
                const char *name = json_string_value(json_object_get(o, "name")), *address = json_string_value(json_object_get(o, "address"));
                unsigned roles = (unsigned)json_integer_value(json_object_get(o, "roles")) & KEPT_ROLES;
                if (name && address && !cluster_node(s->cluster, name) && !former_find(s, name))
                        s->former[s->former_count++] = member_former(s, name, address, roles);
        }
}

void former_read(struct site *s)
{
        char *path CLEANUP(free_p) = born_path(s);
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        if (file_read(path, RECORD_MAX, &text, &ignored) < 0)
                return;
        json_t *record = json_loads(str_text(&text), 0, NULL);
        take(s, json_object_get(record, "nodes"));
        json_decref(record);
}

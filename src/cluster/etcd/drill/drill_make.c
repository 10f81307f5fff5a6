/* Prepares a drill: the cluster's own programs and keys. */
#include "base/file.h"
#include "cluster/etcd/drill/drill.h"

/* ---- programs ---- */

static void on_fetch(const struct item *item, const char *what, int permille, void *arg)
{
        step_doing(arg, permille, "%s %s", what, item->name);
}

/* An image is a tar of tars: the program is in one of the layers. */
static int unpack_api(struct drill *d, const struct item *image, struct error *err)
{
        const char *layer = drill_path(d, "layer"), *to = drill_path(d, "kube-apiserver"),
                   *const inside = "usr/local/bin/kube-apiserver";
        struct str manifest CLEANUP(str_release) = { 0 };
        int r = proc_must(
                (const char *const[]){ "tar", "-xOf", image->path, "manifest.json", NULL },
                &manifest, err);
        json_t *list = r < 0 ? NULL : json_loads(str_text(&manifest), 0, NULL),
               *layers = json_object_get(json_array_get(list, 0), "Layers");
        bool found = false;
        for (size_t i = json_array_size(layers); r == 0 && !found && i; i--) {
                const char *name = json_string_value(json_array_get(layers, i - 1));
                struct error none CLEANUP(error_release) = { 0 };
                r = proc_must((const char *const[]){ "sh", "-c", "tar -xOf \"$1\" \"$2\" >\"$3\"",
                                      "sh", image->path, name ? name : "", layer, NULL },
                        NULL, err);
                if (r == 0)
                        found = proc_must((const char *const[]){ "tar", "-xf", layer, "-C", d->dir,
                                                  "--strip-components=3", inside, NULL },
                                        NULL, &none) == 0;
                unlink(layer);
        }
        json_decref(list);
        if (r == 0 && (!found || access(to, X_OK) < 0))
                r = error_set(err, ENOENT, EXIT_INTERNAL, "the image %s has no program %s",
                        image->name, inside);
        return r;
}

static int take_program(struct drill *d, const struct item *item, struct error *err)
{
        return proc_must((const char *const[]){ "install", "-m", "0755", item->path,
                                 drill_path(d, item->name), NULL },
                NULL, err);
}

static void on_drill_make_fetched(struct error *err, void *arg)
{
        struct step *s = arg;
        struct drill *d = s->arg;
        struct error own CLEANUP(error_release) = { 0 };
        int r = 0;
        for (size_t i = 0; !err && r == 0 && i < d->site->item_count; i++)
                r = d->site->items[i].image ? unpack_api(d, &d->site->items[i], &own)
                                            : take_program(d, &d->site->items[i], &own);
        step_done(s, err ? err : r < 0 ? &own : NULL);
}

static bool is_needed(const struct item *i)
{
        return i->image ? strstr(i->name, "/kube-apiserver:") != NULL
                        : streq(i->name, "etcd") || streq(i->name, "etcdctl") ||
                                  streq(i->name, "etcdutl");
}

void step_drill_programs(struct step *s)
{
        struct drill *d = s->arg;
        struct site *site = d->site;
        struct error err CLEANUP(error_release) = { 0 };
        size_t count = 0, n;
        site->items = fetch_items(site->cluster, site->arena, &count, &err);
        for (size_t i = 0; site->items && i < count; i++)
                if (is_needed(&site->items[i]))
                        site->items[site->item_count++] = site->items[i];
        struct fetch_request request = { .cluster = site->cluster,
                .arch = arch_own(),
                .lock = site->lock_path,
                .items = site->items,
                .count = site->item_count,
                .on_progress = on_fetch,
                .on_done = on_drill_make_fetched,
                .arg = s };
        request.agent = agent_bytes(&n);
        request.agent_len = n;
        if (!site->items || dir_remove(d->dir, &err) < 0 || dir_make(d->dir, 0700, &err) < 0 ||
                fetch_start(site->base, &request, &site->fetch, &err) < 0)
                step_done(s, &err);
}

/* ---- keys ---- */

static int put_file(struct drill *d, const char *name, const char *text, struct error *err)
{
        return text ? file_write(drill_path(d, name), text, strlen(text), 0600, 0, NULL, err) : 0;
}

/* The cluster's own keys, so that other users of this computer cannot read what
 * the drill serves. */
int drill_keys(struct drill *d, struct error *err)
{
        struct site *s = d->site;
        size_t i = 0, k = 0;
        const struct node *control = cluster_next(s->cluster, ROLE_CONTROL_PLANE, &i),
                          *store = cluster_next(s->cluster, ROLE_ETCD, &k);
        struct member *m = site_member(s, control->name);
        struct node_identity etcd = { 0 };
        struct facts facts = { 0 };
        struct nodespec spec = { 0 };
        int r = member_leaves(m, err);
        if (r == 0)
                r = identity_node(&s->identity, s->cluster, store, &etcd, err);
        const struct {
                const char *name, *text;
        } files[] = { { "etcd-ca.crt", s->identity.ca[CA_ETCD].cert },
                { "server.crt", etcd.leaf[LEAF_ETCD_SERVER].cert },
                { "server.key", etcd.leaf[LEAF_ETCD_SERVER].key },
                { "client.crt", m->plan.leaves.leaf[LEAF_APISERVER_ETCD_CLIENT].cert },
                { "client.key", m->plan.leaves.leaf[LEAF_APISERVER_ETCD_CLIENT].key },
                { "ca.crt", s->identity.ca[CA_CLUSTER].cert },
                { "apiserver.crt", m->plan.leaves.leaf[LEAF_APISERVER].cert },
                { "apiserver.key", m->plan.leaves.leaf[LEAF_APISERVER].key },
                { "sa.key", s->identity.sa_key }, { "sa.pub", s->identity.sa_pub } };
        for (size_t n = 0; r == 0 && n < ARRAY_SIZE(files); n++)
                r = put_file(d, files[n].name, files[n].text, err);
        if (r == 0)
                r = facts_for(NULL, control, &facts, err);
        struct spec_input in = { .cluster = s->cluster,
                .identity = &s->identity,
                .leaves = &m->plan.leaves,
                .node = control,
                .facts = &facts };
        if (r == 0 && (r = node_render(&in, &spec, err)) == 0) {
                const struct spec_entry *e =
                        nodespec_find(&spec, SPEC_FILE, "/etc/kubernetes/encryption/config.yaml");
                r = e ? put_file(d, "encryption.yaml", e->content, err) : 0;
                nodespec_release(&spec);
        }
        node_identity_release(&etcd);
        return r;
}

#include "addon/outside.h"

#define OBJECTS_MAX  ((size_t)20000)
#define RELEASES_MAX ((size_t)1000)
#define CHAIN_MAX    4 /* owners of owners */
#define METADATA     true

const struct outside_row outside_rows[OUTSIDE_LISTS] = {
        [OUTSIDE_RELEASES] = { "/api/v1/secrets", "labelSelector=owner%3Dhelm", METADATA, "v1",
                "Secret" },
        [OUTSIDE_SERVICES] = { "/api/v1/services", "fieldSelector=spec.type%3DLoadBalancer",
                METADATA, "v1", "Service" },
        [OUTSIDE_VOLUMES] = { "/api/v1/persistentvolumes", "", false, "v1", "PersistentVolume" },
        [OUTSIDE_PODS] = { "/api/v1/pods", "", false, "v1", "Pod" },
        [OUTSIDE_STATEFULSETS] = { "/apis/apps/v1/statefulsets", "", METADATA, "apps/v1",
                "StatefulSet" },
        [OUTSIDE_DEPLOYMENTS] = { "/apis/apps/v1/deployments", "", METADATA, "apps/v1",
                "Deployment" },
        [OUTSIDE_REPLICASETS] = { "/apis/apps/v1/replicasets", "", METADATA, "apps/v1",
                "ReplicaSet" },
        [OUTSIDE_DAEMONSETS] = { "/apis/apps/v1/daemonsets", "", METADATA, "apps/v1", "DaemonSet" },
        [OUTSIDE_JOBS] = { "/apis/batch/v1/jobs", "", METADATA, "batch/v1", "Job" },
        [OUTSIDE_CRONJOBS] = { "/apis/batch/v1/cronjobs", "", METADATA, "batch/v1", "CronJob" },
};

static const char *text_of(const json_t *object, const char *field)
{
        const char *s = json_string_value(json_object_get(object, field));
        return s ? s : "";
}

static const json_t *meta_of(const json_t *object) { return json_object_get(object, "metadata"); }

/* ---- one object ---- */

/* helm writes into each object whose it is. */
static void read_release(struct outside_object *o, struct arena *a, const json_t *meta)
{
        const json_t *notes = json_object_get(meta, "annotations");
        const char *name = text_of(notes, "meta.helm.sh/release-name"),
                   *ns = text_of(notes, "meta.helm.sh/release-namespace");
        if (*name && *ns) {
                o->release = arena_strdup(a, name);
                o->release_ns = arena_strdup(a, ns);
        }
}

static const char *read_finalizers(struct arena *a, const json_t *meta)
{
        const char *all = "";
        size_t i;
        const json_t *f;
        json_array_foreach(json_object_get(meta, "finalizers"), i, f)
        {
                if (i < 4 && json_is_string(f))
                        all = arena_printf(
                                a, "%s%s%s", all, *all ? ", " : "finalizer ", json_string_value(f));
        }
        return all;
}

static struct outside_object read_object(
        enum outside_list list, const json_t *object, struct arena *a)
{
        const json_t *meta = meta_of(object);
        struct outside_object o = { .api_version = outside_rows[list].api_version,
                .kind = outside_rows[list].kind,
                .ns = arena_strdup(a, text_of(meta, "namespace")),
                .name = arena_strdup(a, text_of(meta, "name")),
                .going = json_object_get(meta, "deletionTimestamp") != NULL,
                .waits = read_finalizers(a, meta) };
        read_release(&o, a, meta);
        return o;
}

static bool outside_same(const struct outside_object *a, const struct outside_object *b)
{
        return streq(a->kind, b->kind) && streq(a->ns, b->ns) && streq(a->name, b->name);
}

static bool has_object(const struct outside_objects *v, const struct outside_object *o)
{
        for (size_t i = 0; i < v->n; i++)
                if (outside_same(&v->v[i], o))
                        return true;
        return false;
}

/* Once each; room for twice as many at every power of two. */
static void add_object(struct outside_objects *v, const struct outside_object *o, struct arena *a)
{
        if (!*o->name || v->n >= OBJECTS_MAX || has_object(v, o))
                return;
        if (!(v->n & (v->n - 1))) {
                struct outside_object *more =
                        arena_array(a, struct outside_object, v->n ? v->n * 2 : 1);
                if (v->n)
                        memcpy(more, v->v, v->n * sizeof(*more));
                v->v = more;
        }
        v->v[v->n++] = *o;
}

/* ---- load balancers ---- */

void outside_balancers(const json_t *services, struct arena *a, struct outside_objects *out)
{
        size_t i;
        const json_t *s;
        *out = (struct outside_objects){ 0 };
        json_array_foreach(services, i, s)
        {
                struct outside_object o = read_object(OUTSIDE_SERVICES, s, a);
                add_object(out, &o, a);
        }
}

/* ---- volumes ---- */

/* A directory or a disk of a node goes with the node, or stays on its host: nothing outside is left
 * over. Which it is, the volume's source says (that of local-path volumes is one of the two); a
 * driver's name says nothing that one could rely on. */
static bool volume_of_node(const json_t *spec)
{
        return json_object_get(spec, "hostPath") || json_object_get(spec, "local");
}

static struct outside_object read_claim(const json_t *volume, struct arena *a)
{
        const json_t *ref = json_object_get(json_object_get(volume, "spec"), "claimRef"),
                     *status = json_object_get(volume, "status");
        struct outside_object o = read_object(OUTSIDE_VOLUMES, volume, a);
        const char *phase = text_of(status, "phase"), *message = text_of(status, "message");
        o.waits = arena_printf(a, "volume %s%s%s%s%.200s", o.name, *phase ? ", " : "", phase,
                *message ? ": " : "", message);
        o.volume = o.name;
        o.kind = "PersistentVolumeClaim";
        o.ns = arena_strdup(a, text_of(ref, "namespace"));
        o.name = arena_strdup(a, text_of(ref, "name"));
        return o;
}

/* Nobody would delete another one: a driver deletes only what it made. */
static bool made_by_driver(const json_t *volume)
{
        return *text_of(
                json_object_get(meta_of(volume), "annotations"), "pv.kubernetes.io/provisioned-by");
}

void outside_claims(struct outside *o, const json_t *volumes, struct arena *a)
{
        size_t i;
        const json_t *v;
        o->claims = o->kept = o->policies = (struct outside_objects){ 0 };
        json_array_foreach(volumes, i, v)
        {
                const json_t *spec = json_object_get(v, "spec");
                bool goes = streq(text_of(spec, "persistentVolumeReclaimPolicy"), "Delete"), is;
                if (volume_of_node(spec) || !json_object_get(spec, "claimRef"))
                        continue; /* what nobody claimed, nobody made for this cluster */
                is = o->fate == VOLUMES_KEEP     ? false
                     : o->fate == VOLUMES_DELETE ? goes || made_by_driver(v)
                                                 : goes;
                struct outside_object claim = read_claim(v, a),
                                      volume = read_object(OUTSIDE_VOLUMES, v, a);
                add_object(is ? &o->claims : &o->kept, is ? &claim : &volume, a);
                if (is != goes)
                        add_object(&o->policies, &volume, a);
        }
}

/* ---- who uses them ---- */

static bool uses_claim(const json_t *pod, const struct outside_objects *claims)
{
        const char *ns = text_of(meta_of(pod), "namespace"), *name = text_of(meta_of(pod), "name");
        size_t i;
        const json_t *v;
        json_array_foreach(json_object_get(json_object_get(pod, "spec"), "volumes"), i, v)
        {
                char *own CLEANUP(free_p) =
                        xasprintf("%s-%s", name, text_of(v, "name")); /* of an ephemeral volume */
                const char *claim =
                        json_object_get(v, "ephemeral")
                                ? own
                                : text_of(json_object_get(v, "persistentVolumeClaim"), "claimName");
                for (size_t k = 0; *claim && k < claims->n; k++)
                        if (streq(claims->v[k].ns, ns) && streq(claims->v[k].name, claim))
                                return true;
        }
        return false;
}

static const json_t *controller_of(const json_t *object)
{
        size_t i;
        const json_t *o;
        json_array_foreach(json_object_get(meta_of(object), "ownerReferences"), i, o)
        {
                if (json_is_true(json_object_get(o, "controller")))
                        return o;
        }
        return NULL;
}

/* The object that the reference names, and its list; NULL: of a kind that slipway does not know. */
static const json_t *find_owner(
        json_t *const *lists, const json_t *ref, const char *ns, enum outside_list *list)
{
        size_t i;
        const json_t *o;
        for (*list = OUTSIDE_STATEFULSETS; *list < OUTSIDE_LISTS; ++*list) {
                if (!streq(outside_rows[*list].kind, text_of(ref, "kind")) ||
                        !streq(outside_rows[*list].api_version, text_of(ref, "apiVersion")))
                        continue;
                json_array_foreach(lists[*list], i, o)
                {
                        if (streq(text_of(meta_of(o), "namespace"), ns) &&
                                streq(text_of(meta_of(o), "uid"), text_of(ref, "uid")))
                                return o;
                }
        }
        return NULL;
}

/* The first of the chain that nobody else controls: as long as it lives, the pod comes back. */
static void add_holder(
        json_t *const *lists, const json_t *pod, struct arena *a, struct outside_objects *out)
{
        const char *ns = text_of(meta_of(pod), "namespace");
        struct outside_object self = read_object(OUTSIDE_PODS, pod, a);
        const json_t *top = NULL, *next = pod;
        enum outside_list list = OUTSIDE_PODS, at = OUTSIDE_PODS;
        for (unsigned i = 0; i < CHAIN_MAX && next; i++) {
                const json_t *ref = controller_of(next);
                next = ref ? find_owner(lists, ref, ns, &list) : NULL;
                if (next) {
                        top = next;
                        at = list;
                }
        }
        if (top) {
                struct outside_object owner = read_object(at, top, a);
                add_object(out, &owner, a);
        }
        add_object(out, &self, a);
}

void outside_holders(json_t *const *lists, const struct outside_objects *claims, struct arena *a,
        struct outside_objects *out)
{
        size_t i;
        const json_t *pod;
        *out = (struct outside_objects){ 0 };
        json_array_foreach(lists[OUTSIDE_PODS], i, pod)
        {
                if (uses_claim(pod, claims))
                        add_holder(lists, pod, a, out);
        }
}

/* ---- releases ---- */

static bool owned_by(const struct outside_objects *v, const struct service *s)
{
        for (size_t i = 0; i < v->n; i++)
                if (v->v[i].release && streq(v->v[i].release, s->name) &&
                        streq(v->v[i].release_ns, s->ns))
                        return true;
        return false;
}

static const struct chart *chart_of(const struct services *file, const struct service *s)
{
        for (size_t i = 0; i < file->charts.n; i++)
                if (streq(file->charts.v[i].name, s->name) &&
                        streq(file->charts.v[i].namespace, s->ns))
                        return &file->charts.v[i];
        return NULL;
}

bool outside_after(const struct outside *o, size_t i, size_t k)
{
        const struct chart *c = o->releases[i].chart;
        for (size_t j = 0; c && o->releases[k].chart && j < c->after.n; j++)
                if (streq(c->after.v[j], o->releases[k].name))
                        return true;
        return false;
}

/* Who comes after one that goes first, goes before it. */
static bool spread_holds(struct outside *o)
{
        bool more = false;
        for (size_t i = 0; i < o->release_count; i++)
                for (size_t k = 0; k < o->release_count && !o->holds[i]; k++)
                        if (o->holds[k] && outside_after(o, i, k))
                                more = o->holds[i] = true;
        return more;
}

void outside_releases(
        struct outside *o, const struct services *file, const json_t *secrets, struct arena *a)
{
        o->releases = arena_array(a, struct service, RELEASES_MAX);
        o->release_count =
                service_removed(&(struct services){ 0 }, secrets, a, o->releases, RELEASES_MAX);
        o->holds = arena_array(a, bool, o->release_count + 1);
        for (size_t i = 0; i < o->release_count; i++) {
                o->releases[i].chart = chart_of(file, &o->releases[i]);
                o->holds[i] = owned_by(&o->balancers, &o->releases[i]) ||
                              owned_by(&o->holders, &o->releases[i]);
        }
        while (spread_holds(o))
                ;
}

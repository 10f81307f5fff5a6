/* The API, and what else of other rooms a run asks for: artifacts, rendered nodes, certificates. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "addon/addon.h"
#include "cluster/services/services.h"
#include "fake.h"

enum call_kind { CALL_REQUEST, CALL_READY, CALL_WATCH, CALL_APPLY, CALL_LIST, CALL_HELM };

struct fake_call {
        struct fake_call *next;
        enum call_kind kind;
        struct fake_event *event;
        char *method, *path, *body;
        unsigned ms; /* its patience, or between two looks */
        union {
                kube_fn reply;
                void (*ready)(void *arg);
                void (*seen)(const char *type, json_t *object, void *arg);
                void (*applied)(const char *error, void *arg);
                void (*listed)(json_t *items, const char *error, void *arg);
        } fn;
        void *arg;
        struct helm_call helm;
};

struct kube_call *__wrap_kube_request(struct kube *k, const char *method, const char *path,
        const char *type, const char *body, unsigned timeout_ms, kube_fn fn, void *arg);
struct kube_call *__wrap_kube_ask(struct kube *k, size_t server, const char *path,
        unsigned timeout_ms, kube_fn fn, void *arg);
struct kube_call *__wrap_kube_watch(struct kube *k, const char *path, const char *query,
        void (*fn)(const char *type, json_t *object, void *arg), void *arg);
struct kube_call *__wrap_kube_wait_ready(
        struct kube *k, unsigned interval_ms, void (*fn)(void *arg), void *arg);
void __wrap_kube_apply(
        struct kube *k, const char *documents, void (*fn)(const char *error, void *arg), void *arg);
void __wrap_kube_cancel(struct kube_call *c);
void __wrap_kube_objects(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(const char *error, void *arg), void *arg);
void __wrap_kube_answers(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(json_t *objects, const char *error, void *arg), void *arg);
void __wrap_kube_list_metadata(struct kube *k, const char *path, const char *selector, size_t max,
        void (*fn)(json_t *items, const char *error, void *arg), void *arg);
void __wrap_kube_list(struct kube *k, const char *path, const char *query, bool metadata,
        size_t max, void (*fn)(json_t *items, const char *error, void *arg), void *arg);
void __wrap_helm_run(struct site *s, struct step *step, const struct helm_call *call);
int __wrap_kube_open(struct event_base *base, const struct kube_target *target, struct kube **out,
        struct error *err);
void __wrap_kube_free(struct kube *k);
const char *__wrap_kube_trouble(const struct kube *k);
bool __wrap_kube_direct(const struct kube_target *target, unsigned ms);
int __wrap_site_tunnels(struct site *s, struct kube_target *target, struct error *err);

bool fake_api_gone(void)
{
        const struct fake_node *c1 = &world.nodes[0];
        return world.api_gone || (world.api_on_c1 && c1->broken && streq(c1->given, FAKE_NEW));
}

/* ---- calls ---- */

static void call_free(struct fake_call *c)
{
        for (struct fake_call **p = &world.calls; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        fake_forget(c->event);
        free(c->method);
        free(c->path);
        free(c->body);
        free(c);
}

static void on_call(void *self, enum how how);

static struct fake_call *call_new(
        enum call_kind kind, const char *method, const char *path, const char *body, unsigned ms)
{
        struct fake_call *c = xcalloc(1, sizeof(*c));
        *c = (struct fake_call){ .next = world.calls,
                .kind = kind,
                .method = xstrdup(method),
                .path = xstrdup(path),
                .body = body ? xstrdup(body) : NULL };
        c->ms = ms ? ms : 30000;
        c->event = fake_post(fake_api_gone() ? c->ms : 8, on_call, c);
        world.calls = c;
        return c;
}

/* ---- what it says ---- */

static void kubelets_start(void)
{
        for (size_t i = 0; i < FAKE_NODES; i++) {
                struct fake_node *n = &world.nodes[i];
                if (!n->starts || fake_now() < n->starts)
                        continue;
                n->starts = 0;
                if (!n->broken || !streq(n->given, FAKE_NEW))
                        snprintf(n->version, sizeof(n->version), "%s", n->given);
        }
}

static json_t *node_object(size_t i)
{
        const struct fake_node *n = &world.nodes[i];
        json_t *o = json_pack("{s:{s:s, s:{s:s}, s:{}}, s:{}, s:{s:{s:s, s:s}, s:[{s:s, s:s}]}}",
                "metadata", "name", fake_names[i], "labels", POOL_LABEL,
                i < 3 ? "control" : "worker", "annotations", "spec", "status", "nodeInfo",
                "kubeletVersion", n->version, "machineID", fake_names[i], "conditions", "type",
                "Ready", "status", "True");
        if (n->cordoned) {
                json_object_set_new(json_object_get(o, "spec"), "unschedulable", json_true());
                json_object_set_new(json_object_get(json_object_get(o, "metadata"), "annotations"),
                        "slipway.dev/cordoned", json_string("true"));
        }
        return o;
}

static bool has_node(size_t i)
{
        return !world.nodes[i].gone && !world.nodes[i].fresh && !world.nodes[i].mute;
}

static json_t *nodes_list(void)
{
        json_t *list = json_array();
        for (size_t i = 0; i < FAKE_NODES; i++)
                if (has_node(i))
                        json_array_append_new(list, node_object(i));
        return json_pack("{s:o}", "items", list);
}

static const char *digest_of(const char *version, char out[17])
{
        snprintf(out, 17, "%s----------------", version);
        return out;
}

static json_t *static_pods(size_t i)
{
        char digest[17];
        static const char *const names[] = { "kube-apiserver", "kube-controller-manager",
                "kube-scheduler" };
        json_t *list = json_array();
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
                char *name CLEANUP(free_p) = xasprintf("%s-%s", names[k], fake_names[i]);
                json_array_append_new(
                        list, json_pack("{s:{s:s, s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata",
                                      "name", name, "annotations", "slipway.dev/digest",
                                      digest_of(world.nodes[i].version, digest), "status",
                                      "conditions", "type", "Ready", "status", "True"));
        }
        return json_pack("{s:o}", "items", list);
}

static json_t *pods_of(const char *selector)
{
        const char *name = strstr(selector, "%3D");
        size_t i = fake_index(name + 3);
        if (world.nodes[i].moved)
                return json_pack("{s:[]}", "items");
        return json_pack("{s:[{s:{s:s, s:s, s:s, s:[{s:s, s:b}]}, s:{s:s}}]}", "items", "metadata",
                "name", fake_names[i], "namespace", "default", "uid", fake_names[i],
                "ownerReferences", "kind", "ReplicaSet", "controller", true, "status", "phase",
                "Running");
}

static json_t *evict(const char *path)
{
        const char *name = strstr(path, "/pods/") + 6;
        char *node CLEANUP(free_p) = xstrndup(name, strcspn(name, "/"));
        world.nodes[fake_index(node)].moved = true;
        return json_object();
}

static json_t *on_node_path(const struct fake_call *c, int *status)
{
        const char *name = c->path + strlen("/api/v1/nodes/");
        char *node CLEANUP(free_p) = xstrndup(name, strcspn(name, "/"));
        size_t i = fake_index(node);
        *status = has_node(i) ? 200 : 404;
        if (*status == 404)
                return json_object();
        if (strstr(c->path, "/proxy/pods"))
                return static_pods(i);
        if (streq(c->method, "DELETE"))
                world.nodes[i].gone = true;
        if (streq(c->method, "PATCH"))
                world.nodes[i].cordoned = strstr(c->body, "\"unschedulable\":true") != NULL;
        return node_object(i);
}

/* Two pages, one node on the first. */
static json_t *nodes_page(bool second)
{
        json_t *all = nodes_list(), *items = json_object_get(all, "items");
        if (second) {
                json_array_remove(items, 0);
        } else {
                while (json_array_size(items) > 1)
                        json_array_remove(items, 1);
                json_object_set_new(all, "metadata", json_pack("{s:s}", "continue", "more"));
        }
        return all;
}

static json_t *inventory(void)
{
        json_t *all = json_pack(
                "{s:{s:{s:s, s:[]}}}", "manifests", world.manifest, "digest", "older", "objects");
        char *text CLEANUP(free_p) = json_dumps(all, JSON_COMPACT);
        json_decref(all);
        return json_pack("{s:{s:s}}", "data", "inventory", text);
}

static json_t *answer(const struct fake_call *c, int *status)
{
        *status = 200;
        if (has_prefix(c->path, "/api/v1/nodes/"))
                return on_node_path(c, status);
        if (has_prefix(c->path, "/api/v1/nodes?limit="))
                return nodes_page(strstr(c->path, "&continue=") != NULL);
        if (has_prefix(c->path, "/api/v1/pods?"))
                return pods_of(c->path);
        if (has_suffix(c->path, "/eviction"))
                return evict(c->path);
        if (has_suffix(c->path, "/slipway-services") && world.manifest)
                return inventory();
        if (streq(c->path, "/version")) {
                char *v CLEANUP(free_p) = xasprintf("v%s", world.nodes[2].version);
                return json_pack("{s:s}", "gitVersion", v);
        }
        if (streq(c->path, "/apis"))
                return json_pack("{s:[{s:s, s:{s:s}}]}", "groups", "name", "apps",
                        "preferredVersion", "version", "v1");
        if (strstr(c->path, "/leases/"))
                return json_pack("{s:{s:s}}", "spec", "renewTime", "2099-01-01T00:00:00Z");
        return json_object();
}

/* ---- how it says it ---- */

static void reply_to(struct fake_call *c, enum how how)
{
        struct kube_reply r = { 0 };
        json_t *body = NULL;
        if (!fake_api_gone() && (how == HOW_PLAIN || how == HOW_LOST))
                body = answer(c, &r.status);
        if (fake_api_gone() || how == HOW_LOST) {
                r.status = 0;
                r.error = "the API does not answer";
        } else if (how != HOW_PLAIN) {
                r.status = 503;
                r.error = "the API refuses";
        } else {
                r.body = body;
                r.error = r.status >= 400 ? "not found" : NULL;
        }
        kube_fn fn = c->fn.reply;
        void *arg = c->arg;
        call_free(c);
        fn(&r, arg);
        json_decref(body);
}

static void look_ready(struct fake_call *c, enum how how)
{
        if (how == HOW_PLAIN && !fake_api_gone()) {
                void (*fn)(void *) = c->fn.ready;
                void *arg = c->arg;
                call_free(c);
                fn(arg);
                return;
        }
        fake_forget(c->event);
        c->event = fake_post(c->ms, on_call, c);
}

static bool call_lives(const struct fake_call *c)
{
        for (const struct fake_call *o = world.calls; o; o = o->next)
                if (o == c)
                        return true;
        return false;
}

/* Tells all of it again and again, as a watch that is cut now and then. */
static void tell_nodes(struct fake_call *c, enum how how)
{
        fake_forget(c->event);
        c->event = fake_post(how == HOW_PLAIN ? 600 * 1000 : 5000, on_call, c);
        if (how != HOW_PLAIN || fake_api_gone()) {
                json_t *status = json_pack("{s:s}", "message", "no answer");
                c->fn.seen("ERROR", status, c->arg);
                json_decref(status);
                return;
        }
        for (size_t i = 0; i < FAKE_NODES && call_lives(c); i++) {
                json_t *o = has_node(i) ? node_object(i) : NULL;
                if (o)
                        c->fn.seen("ADDED", o, c->arg);
                json_decref(o);
        }
}

static void tell_applied(struct fake_call *c, enum how how)
{
        void (*fn)(const char *, void *) = c->fn.applied;
        void *arg = c->arg;
        if (c->body && !fake_api_gone() && (how == HOW_PLAIN || how == HOW_LOST))
                fake_deleted(c->body);
        call_free(c);
        fn(fake_api_gone()         ? "the API does not answer"
                : how == HOW_PLAIN ? NULL
                                   : "the API refuses",
                arg);
}

static void tell_list(struct fake_call *c, enum how how)
{
        void (*fn)(json_t *, const char *, void *) = c->fn.listed;
        void *arg = c->arg;
        bool good = how == HOW_PLAIN && !fake_api_gone();
        json_t *items = !good                         ? NULL
                        : strstr(c->path, "/secrets") ? fake_metadata(c->path)
                                                      : fake_list(c->path);
        call_free(c);
        fn(items, good ? NULL : "the API does not answer", arg);
        json_decref(items);
}

static void tell_helm(struct fake_call *c, enum how how)
{
        struct str out CLEANUP(str_release) = { 0 };
        struct helm_call call = c->helm;
        int status = fake_api_gone() && call.api ? 1 : fake_helm(&call, how, &out);
        call_free(c);
        call.fn(&(struct helm_result){ .status = status,
                        .out = str_text(&out),
                        .trouble = status ? "it fails" : NULL },
                call.arg);
}

static void on_call(void *self, enum how how)
{
        kubelets_start();
        static void (*const kinds[])(struct fake_call *, enum how) = { reply_to, look_ready,
                tell_nodes, tell_applied, tell_list, tell_helm };
        struct fake_call *c = self;
        kinds[c->kind](c, how);
}

/* ---- kube.h ---- */

struct kube_call *__wrap_kube_request(struct kube *k, const char *method, const char *path,
        const char *type, const char *body, unsigned timeout_ms, kube_fn fn, void *arg)
{
        struct fake_call *c = call_new(CALL_REQUEST, method, path, body, timeout_ms);
        assert_non_null(k);
        c->fn.reply = fn;
        c->arg = arg;
        return (struct kube_call *)c;
}

struct kube_call *__wrap_kube_ask(
        struct kube *k, size_t server, const char *path, unsigned timeout_ms, kube_fn fn, void *arg)
{
        return __wrap_kube_request(k, "GET", path, NULL, NULL, timeout_ms, fn, arg);
}

struct kube_call *__wrap_kube_watch(struct kube *k, const char *path, const char *query,
        void (*fn)(const char *type, json_t *object, void *arg), void *arg)
{
        struct fake_call *c = call_new(CALL_WATCH, "GET", path, NULL, 0);
        c->fn.seen = fn;
        c->arg = arg;
        return (struct kube_call *)c;
}

struct kube_call *__wrap_kube_wait_ready(
        struct kube *k, unsigned interval_ms, void (*fn)(void *arg), void *arg)
{
        struct fake_call *c = call_new(CALL_READY, "GET", "/readyz", NULL, interval_ms);
        assert_non_null(k);
        c->fn.ready = fn;
        c->arg = arg;
        return (struct kube_call *)c;
}

void __wrap_kube_apply(
        struct kube *k, const char *documents, void (*fn)(const char *error, void *arg), void *arg)
{
        struct fake_call *c = call_new(CALL_APPLY, "PATCH", "documents", NULL, 0);
        c->fn.applied = fn;
        c->arg = arg;
}

void __wrap_kube_objects(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(const char *error, void *arg), void *arg)
{
        bool counts = verb == KUBE_DELETE || strstr(documents, "ReclaimPolicy");
        struct fake_call *c =
                call_new(CALL_APPLY, "PATCH", "documents", counts ? documents : NULL, 0);
        c->fn.applied = fn;
        c->arg = arg;
}

void __wrap_kube_answers(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(json_t *objects, const char *error, void *arg), void *arg)
{
        __wrap_kube_list_metadata(k, "answers", "", 0, fn, arg);
}

void __wrap_kube_list_metadata(struct kube *k, const char *path, const char *selector, size_t max,
        void (*fn)(json_t *items, const char *error, void *arg), void *arg)
{
        struct fake_call *c = call_new(CALL_LIST, "GET", path, NULL, 0);
        c->fn.listed = fn;
        c->arg = arg;
}

void __wrap_kube_list(struct kube *k, const char *path, const char *query, bool metadata,
        size_t max, void (*fn)(json_t *items, const char *error, void *arg), void *arg)
{
        assert_non_null(k);
        __wrap_kube_list_metadata(k, path, query, max, fn, arg);
}

void __wrap_helm_run(struct site *s, struct step *step, const struct helm_call *call)
{
        call_new(CALL_HELM, "helm", call->args[0], NULL, 500)->helm = *call;
}

void __wrap_kube_cancel(struct kube_call *c) { call_free((struct fake_call *)c); }

int __wrap_kube_open(struct event_base *base, const struct kube_target *target, struct kube **out,
        struct error *err)
{
        *out = (struct kube *)&world;
        return 0;
}

void __wrap_kube_free(struct kube *k)
{
        while (k && world.calls)
                call_free(world.calls);
}

const char *__wrap_kube_trouble(const struct kube *k) { return NULL; }
bool __wrap_kube_direct(const struct kube_target *target, unsigned ms) { return true; }
int __wrap_site_tunnels(struct site *s, struct kube_target *target, struct error *err) { return 0; }

/* ---- artifacts ---- */

struct fake_fetch {
        struct fake_fetch *next;
        struct fake_event *event;
        struct fetch_request request;
};

int __wrap_fetch_start(struct event_base *base, const struct fetch_request *request,
        struct fetch **out, struct error *err);
void __wrap_fetch_free(struct fetch *f);
struct item *__wrap_fetch_items(
        const struct cluster *c, struct arena *a, size_t *count, struct error *err);

static void on_fetched(void *self, enum how how)
{
        struct fake_fetch *f = self;
        struct error err CLEANUP(error_release) = { 0 };
        fake_forget(TAKE(f->event));
        if (how != HOW_PLAIN)
                error_set(&err, EIO, EXIT_STEP, "an artifact cannot be had");
        f->request.on_done(how != HOW_PLAIN ? &err : NULL, f->request.arg);
}

int __wrap_fetch_start(struct event_base *base, const struct fetch_request *request,
        struct fetch **out, struct error *err)
{
        struct fake_fetch *f = xcalloc(1, sizeof(*f));
        *f = (struct fake_fetch){ .request = *request, .next = world.fetches };
        f->event = fake_post(30, on_fetched, f);
        world.fetches = f;
        *out = (struct fetch *)f;
        return 0;
}

void __wrap_fetch_free(struct fetch *fetch)
{
        struct fake_fetch *f = (struct fake_fetch *)fetch;
        if (!f)
                return;
        for (struct fake_fetch **p = &world.fetches; *p; p = &(*p)->next)
                if (*p == f) {
                        *p = f->next;
                        break;
                }
        fake_forget(f->event);
        free(f);
}

struct item *__wrap_fetch_items(
        const struct cluster *c, struct arena *a, size_t *count, struct error *err)
{
        *count = 0;
        return xcalloc(1, sizeof(struct item));
}

/* ---- nodes and certificates ---- */

int __wrap_node_render(const struct spec_input *in, struct nodespec *out, struct error *err);
int __wrap_facts_from_agent(
        json_t *said, const struct node *n, struct arena *a, struct facts *out, struct error *err);
int __wrap_identity_keep(
        struct identity *id, const struct node *n, struct node_identity *leaves, struct error *err);
int __wrap_identity_people(struct identity *id, const struct cluster *c, struct error *err);
int __wrap_addon_bootstrap(const struct cluster *c, const struct identity *id, const char *kubelet,
        time_t now, struct str *out, struct error *err);
void __wrap_addon_joined(const struct cluster *c, const struct nodespec *spec, struct str *out);

static void file_add(struct nodespec *s, const char *path, const char *content)
{
        struct spec_entry *e = nodespec_add(s, SPEC_FILE, CLASS_MUTABLE);
        e->path = path;
        e->content = arena_strdup(&s->arena, content);
        e->len = strlen(content);
}

int __wrap_node_render(const struct spec_input *in, struct nodespec *out, struct error *err)
{
        static const char *const manifests[] = { "/etc/kubernetes/manifests/kube-apiserver.yaml",
                "/etc/kubernetes/manifests/kube-controller-manager.yaml",
                "/etc/kubernetes/manifests/kube-scheduler.yaml" };
        const char *version = in->cluster->kubernetes.text;
        char digest[17], *pod CLEANUP(free_p) = xasprintf(
                                 "slipway.dev/digest: \"%s\"", digest_of(version, digest));
        bool control = in->node->pool->roles & ROLE_CONTROL_PLANE;
        *out = (struct nodespec){ .node = in->node };
        file_add(out, "/version", version);
        file_add(out, "/var/lib/kubelet/config.yaml", "kubelet");
        for (size_t i = 0; control && i < ARRAY_SIZE(manifests); i++)
                file_add(out, manifests[i], pod);
        if (control)
                nodespec_add(out, SPEC_UNIT, CLASS_IMMUTABLE)->name = "etcd.service";
        nodespec_add(out, SPEC_UNIT, CLASS_IMMUTABLE)->name = "kubelet.service";
        nodespec_add(out, SPEC_ARTIFACT, CLASS_MUTABLE)->path = FAKE_KUBELET;
        return 0;
}

int __wrap_facts_from_agent(
        json_t *said, const struct node *n, struct arena *a, struct facts *out, struct error *err)
{
        *out = (struct facts){ .os_id = "debian", .arch = "amd64" };
        return 0;
}

int __wrap_identity_keep(
        struct identity *id, const struct node *n, struct node_identity *leaves, struct error *err)
{
        return 0;
}
int __wrap_identity_people(struct identity *id, const struct cluster *c, struct error *err)
{
        return 0;
}
int __wrap_addon_bootstrap(const struct cluster *c, const struct identity *id, const char *kubelet,
        time_t now, struct str *out, struct error *err)
{
        return 0;
}
void __wrap_addon_joined(const struct cluster *c, const struct nodespec *spec, struct str *out) {}

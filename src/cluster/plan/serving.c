#include "cluster/plan/serving.h"

#include <dirent.h>

#include "base/file.h"
#include "kube/wait.h"

#define CSRS       "/apis/certificates.k8s.io/v1/certificatesigningrequests"
#define NODE_USER  "system:node:"
#define RECORD_MAX ((size_t)64 << 10)

static const char *serving_text(const json_t *o, const char *key)
{
        const char *s = json_string_value(json_object_get(o, key));
        return s ? s : "";
}

/* A name that is safe in a path, in a URL and on a terminal. Names of nodes and requests
 * are always safe. */
static bool serving_plain(const char *s)
{
        size_t n = strlen(s);
        return n && n < 254 && s[0] != '.' &&
               strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

/* ---- names ---- */

static bool names_have(const struct strings *l, const char *name)
{
        for (size_t i = 0; i < l->n; i++)
                if (streq(l->v[i], name))
                        return true;
        return false;
}

static bool names_same(const struct strings *a, const struct strings *b)
{
        for (size_t i = 0; i < a->n; i++)
                if (!names_have(b, a->v[i]))
                        return false;
        for (size_t i = 0; i < b->n; i++)
                if (!names_have(a, b->v[i]))
                        return false;
        return true;
}

/* The names in a kubelet's request: the addresses in its Node. */
static struct strings node_says(struct arena *a, const json_t *node)
{
        const json_t *all = json_object_get(json_object_get(node, "status"), "addresses"), *o;
        struct strings l = { .v = arena_array(a, const char *, json_array_size(all) + 1) };
        size_t i;
        json_array_foreach(all, i, o)
        {
                const char *value = serving_text(o, "address");
                struct ip ip;
                char text[IP_TEXT];
                const char *name = ip_parse(value, &ip)
                                           ? arena_printf(a, "IP:%s", ip_format(&ip, text))
                                           : arena_printf(a, "DNS:%s", value);
                if (!names_have(&l, name))
                        l.v[l.n++] = name;
        }
        return l;
}

/* Hosts that stand for something else to clients of the API or to slipway. */
static bool host_taken(const struct cluster *c, const char *host)
{
        const char *endpoint = cluster_endpoint_host(c);
        char *domain CLEANUP(free_p) = xasprintf(".%s", c->network.domain);
        for (size_t i = 0; i < c->node_count; i++)
                if (streq(c->nodes[i].name, host))
                        return true;
        for (size_t i = 0; i < c->api.names.n; i++)
                if (streq(c->api.names.v[i], host))
                        return true;
        return streq(host, "localhost") || streq(host, "kubernetes") ||
               has_prefix(host, "kubernetes.") || has_suffix(host, ".svc") ||
               has_suffix(host, domain) || (endpoint && streq(endpoint, host));
}

static bool serving_in_ranges(const struct cidrs *l, const struct ip *ip)
{
        for (size_t i = 0; i < l->n; i++)
                if (cidr_contains(&l->v[i], ip))
                        return true;
        return false;
}

static bool address_taken(const struct cluster *c, const char *text)
{
        const char *others[] = { c->api.vip, cluster_endpoint_host(c), "::1" };
        struct ip ip, other;
        if (!ip_parse(text, &ip) || (ip.family == 4 && ip.b[0] == 127))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (others[i] && ip_parse(others[i], &other) && ip_equal(&ip, &other))
                        return true;
        for (size_t i = 0; i < c->node_count * 2; i++)
                if (ip_equal(&c->nodes[i / 2].ip[i % 2], &ip))
                        return true;
        return serving_in_ranges(&c->network.services, &ip) ||
               serving_in_ranges(&c->network.pods, &ip);
}

static const json_t *node_items(const json_t *nodes)
{
        return json_is_array(nodes) ? nodes : json_object_get(nodes, "items");
}

/* Another Node has this address. */
static const char *serving_other_node(
        struct arena *a, const json_t *nodes, const char *node, const char *name)
{
        const json_t *o;
        size_t i;
        json_array_foreach(node_items(nodes), i, o)
        {
                struct strings l = node_says(a, o);
                if (!streq(object_name(o), node) && names_have(&l, name))
                        return object_name(o);
        }
        return NULL;
}

/* ---- one request ---- */

static bool usages_fit(const json_t *spec)
{
        static const char *const allowed[] = { "server auth", "digital signature",
                "key encipherment" };
        const json_t *u;
        bool server = false;
        size_t i, k;
        json_array_foreach(json_object_get(spec, "usages"), i, u)
        {
                const char *text = json_string_value(u);
                for (k = 0; text && k < ARRAY_SIZE(allowed) && !streq(allowed[k], text); k++)
                        ;
                if (!text || k == ARRAY_SIZE(allowed))
                        return false;
                server |= k == 0;
        }
        return server;
}

static bool of_nodes(const json_t *spec)
{
        const json_t *g;
        size_t i;
        json_array_foreach(json_object_get(spec, "groups"), i,
                g) if (json_is_string(g) &&
                       streq(json_string_value(g), "system:nodes")) return true;
        return false;
}

static const char *names_trouble(
        struct arena *a, const struct cluster *c, const json_t *nodes, const struct serving *r)
{
        const json_t *o, *own = NULL;
        size_t i;
        json_array_foreach(node_items(nodes), i, o) if (streq(object_name(o), r->node)) own = o;
        if (!own)
                return "the API has no Node of that name";
        struct strings says = node_says(a, own);
        if (!names_same(&says, &r->names))
                return "it asks for other names and addresses than its Node has";
        for (i = 0; i < r->names.n; i++) {
                const char *name = r->names.v[i], *value = strchr(name, ':') + 1,
                           *other = serving_other_node(a, nodes, r->node, name);
                if (has_prefix(name, "IP:") ? address_taken(c, value) : host_taken(c, value))
                        return arena_printf(a,
                                "%s is not its own: it belongs to the cluster or to a node of cluster.yaml",
                                value);
                if (other)
                        return arena_printf(a, "%s is also what the Node %s says it has", value,
                                serving_plain(other) ? other : "of another name");
        }
        return NULL;
}

static const char *serving_judge(
        struct arena *a, const struct cluster *c, const json_t *nodes, struct serving *r)
{
        const json_t *spec = json_object_get(r->object, "spec");
        struct cert_request asked;
        const char *why = request_read(a, serving_text(spec, "request"), &asked);
        r->names = asked.names;
        if (why)
                return why;
        if (!of_nodes(spec) || !streq(asked.cn, serving_text(spec, "username")) ||
                !streq(asked.o, "system:nodes"))
                return "it is for another subject than who sent it";
        if (!usages_fit(spec))
                return "it is for more than serving";
        for (size_t i = 0; i < c->node_count; i++)
                if (streq(c->nodes[i].name, r->node))
                        return "it is a node of cluster.yaml, and slipway issues its certificate itself";
        return names_trouble(a, c, nodes, r);
}

static bool serving_waits(const json_t *csr)
{
        const json_t *status = json_object_get(csr, "status");
        return !json_array_size(json_object_get(status, "conditions")) &&
               !json_object_get(status, "certificate");
}

bool serving_asks(const json_t *requests, const char *node)
{
        const json_t *o;
        size_t i;
        json_array_foreach(json_object_get(requests, "items"), i, o)
        {
                const char *user = serving_text(json_object_get(o, "spec"), "username");
                if (serving_waits(o) && has_prefix(user, NODE_USER) &&
                        streq(user + strlen(NODE_USER), node))
                        return true;
        }
        return false;
}

size_t serving_read(struct arena *a, const struct cluster *c, const json_t *requests,
        const json_t *nodes, struct serving **out)
{
        const json_t *items = json_object_get(requests, "items"), *o;
        struct serving *all = arena_array(a, struct serving, json_array_size(items) + 1);
        size_t n = 0, i;
        json_array_foreach(items, i, o)
        {
                const json_t *spec = json_object_get(o, "spec");
                const char *user = serving_text(spec, "username");
                if (!serving_waits(o) ||
                        !streq(serving_text(spec, "signerName"), "kubernetes.io/kubelet-serving") ||
                        !has_prefix(user, NODE_USER) || !serving_plain(user + strlen(NODE_USER)) ||
                        !serving_plain(object_name(o)))
                        continue;
                struct serving *r = &all[n++];
                *r = (struct serving){ .node = arena_strdup(a, user + strlen(NODE_USER)),
                        .object = o };
                r->trouble = serving_judge(a, c, nodes, r);
        }
        *out = all;
        return n;
}

void serving_names(const struct serving *r, struct str *out)
{
        for (size_t i = 0; i < r->names.n; i++)
                str_addf(out, "%s%s", i ? ", " : "", strchr(r->names.v[i], ':') + 1);
}

struct chore serving_chore(struct arena *a, const struct serving *r)
{
        struct str names CLEANUP(str_release) = { 0 };
        json_t *csr = json_deep_copy(r->object);
        json_t *yes = json_pack("{s:s, s:s, s:s, s:s}", "type", "Approved", "status", "True",
                "reason", "ApprovedBySlipway", "message",
                "its names and addresses are those that were approved for this node");
        json_t *status = json_object_get(csr, "status");
        if (!json_is_object(status)) {
                json_object_set_new(csr, "status", json_object());
                status = json_object_get(csr, "status");
        }
        json_object_set_new(status, "conditions", json_pack("[o]", yes));
        /* items of a list have no kind */
        json_object_set_new(csr, "kind", json_string("CertificateSigningRequest"));
        json_object_set_new(csr, "apiVersion", json_string("certificates.k8s.io/v1"));
        char *body CLEANUP(free_p) = json_dumps(csr, 0);
        json_decref(csr);
        serving_names(r, &names);
        return (struct chore){
                .plan = arena_printf(a,
                        "node %s  approve  its kubelet's serving certificate, for %s", r->node,
                        str_text(&names)),
                .done = arena_printf(a, "approved the serving certificate of %s", r->node),
                .method = "PUT",
                .path = arena_printf(a, CSRS "/%s/approval", object_name(r->object)),
                .body = arena_strdup(a, body ? body : "{}"),
        };
}

/* ---- approved names ---- */

static char *joined_path(const struct site *s, const char *node)
{
        char *dir CLEANUP(free_p) = path_join(s->identity.dir, "joined");
        return node ? path_join(dir, node) : TAKE(dir);
}

bool serving_any_known(const struct site *s)
{
        char *path CLEANUP(free_p) = joined_path(s, NULL);
        DIR *d = opendir(path);
        bool any = false;
        for (struct dirent *e; !any && d && (e = readdir(d));)
                any = e->d_name[0] != '.';
        if (d)
                closedir(d);
        return any;
}

bool serving_known(const struct site *s, const struct serving *r)
{
        char *path CLEANUP(free_p) = joined_path(s, r->node);
        struct str text CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        if (file_read(path, RECORD_MAX, &text, &ignored) < 0)
                return false;
        json_t *list = json_loads(str_text(&text), JSON_REJECT_DUPLICATES, NULL), *o;
        struct strings l = { .v = xcalloc(json_array_size(list) + 1, sizeof(char *)) };
        size_t i;
        json_array_foreach(list, i, o) if (json_is_string(o)) l.v[l.n++] = json_string_value(o);
        bool same = l.n && names_same(&l, &r->names);
        free(l.v);
        json_decref(list);
        return same;
}

int serving_remember(const struct site *s, const struct serving *r, struct error *err)
{
        char *dir CLEANUP(free_p) = joined_path(s, NULL),
                  *path CLEANUP(free_p) = joined_path(s, r->node);
        json_t *list = json_array();
        for (size_t i = 0; i < r->names.n; i++)
                json_array_append_new(list, json_string(r->names.v[i]));
        char *text CLEANUP(free_p) = json_dumps(list, 0);
        json_decref(list);
        int e = dir_make(dir, 0700, err);
        return e < 0 ? e : file_write(path, text, strlen(text), 0600, 0, NULL, err);
}

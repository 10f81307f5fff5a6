/* The load balancer in front of the API servers. Nobody waits for it: nodes have their own. */
#include "base/sha256.h"
#include "provider/openstack/openstack.h"

/* ---- who may use it ---- */

/* A tag of the balancer says which networks its listener lets in: without it, all. The balancer is
 * listed anyway, and its listener is not. */
#define FROM_TAG "api-from-"
/* While the listener is changed: a run that ends meanwhile is known by it, whatever the file then
 * says. */
#define FROM_CHANGING FROM_TAG "changing"

/* NULL: everybody. The nodes' own rules do not tell who a client is: to them it is the balancer. */
static json_t *clients_allowed(const struct os *os)
{
        const struct cidrs *from = &os->options->access.api;
        const char *own = os_own_cidr(os);
        char text[IP_TEXT + 4];
        if (!os_api_restricted(os))
                return NULL;
        json_t *list = json_array();
        if (own)
                json_array_append_new(list, json_string(own));
        for (size_t i = 0; i < from->n; i++) {
                bool known = from->v[i].ip.family != os->vip.family; /* Octavia refuses these, */
                size_t k;
                json_t *o;
                cidr_format(&from->v[i], text);
                json_array_foreach(list, k, o) known |= streq(json_string_value(o), text);
                if (!known) /* and the same one twice */
                        json_array_append_new(list, json_string(text));
        }
        return list;
}

/* "": no tag. */
static const char *clients_tag(const struct os *os)
{
        char hex[SHA256_HEX];
        json_t *list = clients_allowed(os);
        if (!list)
                return "";
        char *text = json_dumps(list, JSON_COMPACT);
        sha256_hex(text, strlen(text), hex);
        free(text);
        json_decref(list);
        return arena_printf(os->run->arena, FROM_TAG "%.16s", hex);
}

static const char *clients_tag_is(const struct os_balancer *b)
{
        for (size_t i = 0; i < b->tags.n; i++)
                if (has_prefix(b->tags.v[i], FROM_TAG))
                        return b->tags.v[i];
        return "";
}

static const char *clients_listener(const struct os *os)
{
        const struct os_balancer *b = os->found.balancer;
        const struct os_pool *listener = b ? b->listeners.v : NULL;
        return listener && b->listeners.n ? listener->id : NULL;
}

bool os_clients_differ(const struct os *os)
{
        return os->options->load_balancer == OS_LB_OCTAVIA && clients_listener(os) &&
               !streq(clients_tag_is(os->found.balancer), clients_tag(os));
}

/* With those that others have added to an existing one. */
static json_t *balancer_tags(const struct os *os, const char *tag)
{
        const struct os_balancer *b = os->found.balancer;
        json_t *list = *tag ? json_pack("[s, s]", os->mark, tag) : json_pack("[s]", os->mark);
        for (size_t i = 0; b && i < b->tags.n; i++)
                if (!streq(b->tags.v[i], os->mark) && !has_prefix(b->tags.v[i], FROM_TAG))
                        json_array_append_new(list, json_string(b->tags.v[i]));
        return list;
}

/* ---- how it is made ---- */

static json_t *member_body(const struct os *os, const struct node *n)
{
        char text[IP_TEXT];
        json_t *o =
                json_pack("{s:s, s:s, s:I}", "name", n->name, "address", ip_format(&n->ip[0], text),
                        "protocol_port", (json_int_t)os->run->cluster->api.port);
        if (os->found.subnet)
                json_object_set_new(o, "subnet_id", json_string(os->found.subnet->id));
        return o;
}

static json_t *balancer_body(const struct os *os)
{
        const struct cluster *c = os->run->cluster;
        json_t *members = json_array();
        size_t i = 0;
        for (const struct node *n; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));)
                json_array_append_new(members, member_body(os, n));
        json_t *pool = json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:i, s:i, s:i}}", "name", os->name,
                "protocol", "TCP", "lb_algorithm", "ROUND_ROBIN", "members", members,
                "healthmonitor", "type", "TCP", "delay", 5, "timeout", 3, "max_retries", 2);
        json_t *listener = json_pack("{s:s, s:s, s:I, s:o}", "name", os->name, "protocol", "TCP",
                "protocol_port", (json_int_t)cluster_endpoint_port(c), "default_pool", pool);
        json_t *allowed = clients_allowed(os);
        if (allowed)
                json_object_set_new(listener, "allowed_cidrs", allowed);
        return json_pack("{s:s, s:s, s:s, s:o, s:[o]}", "name", os->name, "description", os->mark,
                "vip_port_id", os->found.vip->id, "tags", balancer_tags(os, clients_tag(os)),
                "listeners", listener);
}

void stage_balancer(struct os_job *j)
{
        struct os *os = j->os;
        if (os->options->load_balancer == OS_LB_OCTAVIA && !os->found.balancer && os->found.vip)
                job_make(j, OS_CREATE_BALANCER, balancer_body(os), os->name,
                        (const void **)&os->found.balancer);
}

/* Changes of an existing one, in the order of their stages. */
enum change { CHANGE_MEMBERS = 1, CHANGE_BEGUN, CHANGE_CLIENTS, CHANGE_TAGS };

static void on_set(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (!reply->fault) {
                j->row = (size_t)arg;
                return;
        }
        /* it is still at the change before */
        if (reply->fault->kind == FAULT_CONFLICT && job_later(j, 2000))
                return;
        fault_error(reply->fault, &err);
        job_fail(j, &err);
}

/* body is taken. */
static void balancer_set(struct os_job *j, enum change change, enum os_call call,
        const struct pair *args, json_t *body)
{
        job_ask(j, &(struct os_ask){ .call = call,
                           .args = args,
                           .body = body,
                           .resource = j->os->name,
                           .fn = on_set,
                           .arg = (void *)(size_t)change,
                           .optional = true });
}

static void balancer_tag(struct os_job *j, enum change change, const char *tag)
{
        struct pair id[] = { { "id", j->os->found.balancer->id }, { 0 } };
        balancer_set(j, change, OS_SET_BALANCER, id,
                json_pack("{s:o}", "tags", balancer_tags(j->os, tag)));
}

void stage_clients_begin(struct os_job *j)
{
        if (j->row < CHANGE_BEGUN && os_clients_differ(j->os) &&
                !streq(clients_tag_is(j->os->found.balancer), FROM_CHANGING))
                balancer_tag(j, CHANGE_BEGUN, FROM_CHANGING);
}

void stage_clients(struct os_job *j)
{
        struct pair id[] = { { "id", clients_listener(j->os) }, { 0 } };
        if (j->row >= CHANGE_CLIENTS || !os_clients_differ(j->os))
                return;
        json_t *allowed = clients_allowed(j->os);
        balancer_set(j, CHANGE_CLIENTS, OS_SET_LISTENER, id,
                json_pack("{s:o}", "allowed_cidrs", allowed ? allowed : json_array()));
}

void stage_clients_tag(struct os_job *j)
{
        if (j->row < CHANGE_TAGS && os_clients_differ(j->os))
                balancer_tag(j, CHANGE_TAGS, clients_tag(j->os));
}

/* ---- members ---- */

static const struct os_member *member_find(const struct os *os, const struct node *n)
{
        const struct os_member *all = os->found.members.v;
        char text[IP_TEXT];
        ip_format(&n->ip[0], text);
        for (size_t i = 0; i < os->found.members.n; i++)
                if (all[i].address && streq(all[i].address, text))
                        return &all[i];
        return NULL;
}

/* One that was listed; a new balancer has all of them. */
static const char *members_pool(const struct os *os)
{
        const struct os_balancer *b = os->found.balancer;
        const struct os_pool *p = b && os->found.balancers.n ? b->pools.v : NULL;
        return p && b->pools.n ? p->id : NULL;
}

bool os_members_differ(const struct os *os)
{
        size_t i = 0;
        if (!members_pool(os))
                return false;
        for (const struct node *n; (n = cluster_next(os->run->cluster, ROLE_CONTROL_PLANE, &i));)
                if (!member_find(os, n))
                        return true;
        return false;
}

static void members_send(struct os_job *j, json_t *members)
{
        struct pair pool[] = { { "pool", members_pool(j->os) }, { 0 } };
        balancer_set(j, CHANGE_MEMBERS, OS_SET_MEMBERS, pool, members);
}

/* Control-plane nodes become members before they serve; those that will leave stay until then. */
void stage_members(struct os_job *j)
{
        struct os *os = j->os;
        const struct cluster *c = os->run->cluster;
        const struct os_member *all = os->found.members.v;
        size_t i = 0;
        if (j->row || !os_members_differ(os))
                return;
        json_t *members = json_array();
        for (const struct node *n; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));)
                json_array_append_new(members, member_body(os, n));
        for (i = 0; i < os->found.members.n; i++) {
                bool ours = false;
                size_t k = 0;
                for (const struct node *n; (n = cluster_next(c, ROLE_CONTROL_PLANE, &k));)
                        ours |= member_find(os, n) == &all[i];
                if (!ours && all[i].address)
                        json_array_append_new(members,
                                json_pack("{s:s, s:s, s:I}", "name", all[i].name ? all[i].name : "",
                                        "address", all[i].address, "protocol_port",
                                        (json_int_t)all[i].port));
        }
        members_send(j, members);
}

struct members_wanted {
        const struct node *const *nodes;
        size_t n;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void stage_exact_members(struct os_job *j)
{
        const struct members_wanted *w = j->arg;
        json_t *members = json_array();
        for (size_t i = 0; i < w->n; i++)
                json_array_append_new(members, member_body(j->os, w->nodes[i]));
        if (j->row || !members_pool(j->os))
                json_decref(members);
        else
                members_send(j, members);
}

static void on_exact_members(struct error *err, void *arg)
{
        const struct members_wanted *w = arg;
        w->fn(err, w->arg);
}

/* The lists are read again: a balancer that this run made has its pool since. */
void openstack_members(struct provider_run *run, const struct node *const *nodes, size_t n,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        static const os_stage stages[] = { stage_exact_members, NULL };
        struct members_wanted *w = arena_new(run->arena, struct members_wanted);
        *w = (struct members_wanted){ nodes, n, fn, arg };
        job_start(run->own, stages, NULL, on_exact_members, w);
}

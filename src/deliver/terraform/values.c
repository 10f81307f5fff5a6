/* What the user's file says, as values of the files' variables. */
#include "config/fabric.h"
#include "deliver/terraform/terraform.h"

/* ---- what is there ---- */

static bool has_balancer(const struct terraform *t)
{
        const struct cluster *c = t->cluster;
        return t->platform->has & PLATFORM_BALANCER && c->provider.terraform.load_balancer &&
               !c->api.vip && !c->api.load_balancer;
}

static bool when_word(const struct terraform *t, const char *word)
{
        const struct cluster *c = t->cluster;
        const char *value = terraform_variable(c, word);
        return streq(word, "balancer") ? has_balancer(t)
               : streq(word, "vip")    ? c->api.vip != NULL
               : streq(word, "dns")
                       ? terraform_variable(c, "dns_zone") && (has_balancer(t) || c->api.vip) &&
                                 !c->api.load_balancer
                       : value && *value;
}

bool terraform_when(const struct terraform *t, const char *words)
{
        struct strings all = platform_list(t->arena, words);
        bool holds = true;
        for (size_t i = 0; i < all.n; i++) {
                bool negated = all.v[i][0] == '!';
                holds = holds && when_word(t, all.v[i] + negated) != negated;
        }
        return holds;
}

/* What the file says, or the default. */
static const char *variable_text(const struct terraform *t, const char *name)
{
        const char *said = terraform_variable(t->cluster, name);
        const struct platform_variable *v = platform_variable(t->platform, name);
        return said ? said : v ? v->def : NULL;
}

/* ---- nodes ---- */

static json_t *text_or_null(const char *s) { return s && *s ? json_string(s) : json_null(); }
static json_t *number_or_null(int64_t n) { return n ? json_integer(n) : json_null(); }

/* Of the node's pool. */
static const char *node_text(const struct terraform *t, const struct node *n, const char *name)
{
        const char *said = terraform_pool_variable(t->cluster, n->pool, name);
        return said ? said : variable_text(t, name);
}

static bool node_is_public(const struct terraform *t, const struct node *n)
{
        const char *which = node_text(t, n, "public");
        return streq(which, "all") ||
               (streq(which, "control-plane") && n->pool->roles & ROLE_CONTROL_PLANE);
}

static json_t *nodes_value(const struct terraform *t)
{
        const struct cluster *c = t->cluster;
        json_t *all = json_object();
        for (size_t i = 0; i < c->node_count; i++) {
                const struct node *n = &c->nodes[i];
                struct strings zones = platform_list(t->arena, node_text(t, n, "zones"));
                json_t *v = json_pack("{s:s, s:I, s:b, s:b}", "pool", n->pool->name, "number",
                        (json_int_t)n->index, "control", !!(n->pool->roles & ROLE_CONTROL_PLANE),
                        "public", node_is_public(t, n));
                json_object_set_new(v, "zone",
                        text_or_null(zones.n ? zones.v[(n->index - 1) % zones.n] : NULL));
                json_object_set_new(v, "image", text_or_null(node_text(t, n, "image")));
                json_object_set_new(v, "size", text_or_null(node_text(t, n, "size")));
                json_object_set_new(v, "cpus", number_or_null(n->pool->machine.cpus));
                json_object_set_new(v, "memory", number_or_null(n->pool->machine.memory >> 20));
                json_object_set_new(all, n->name, v);
        }
        return all;
}

/* ---- who may connect ---- */

#define API_PORT -1

/* Within the machines' network everything is allowed: the pod network, etcd, kubelets, a VIP. */
static const struct access_row {
        const char *name, *from, *protocol;
        long first, last; /* 0: all */
        bool control;     /* only to control-plane nodes */
} access_rows[] = {
        { "inside", "cidr", "all", 0, 0, false },
        { "ssh", "ssh_from", "tcp", 22, 22, false },
        { "api", "api_from", "tcp", API_PORT, API_PORT, true },
        { "http", "node_ports_from", "tcp", 80, 80, false },
        { "https", "node_ports_from", "tcp", 443, 443, false },
        { "node-ports-tcp", "node_ports_from", "tcp", 30000, 32767, false },
        { "node-ports-udp", "node_ports_from", "udp", 30000, 32767, false },
};

/* Ranges of pods whose addresses packets between machines have. */
static struct strings pods_between(const struct terraform *t)
{
        const struct network *net = &t->cluster->network;
        struct strings out = { 0 };
        char text[IP_TEXT + 4];
        for (size_t i = 0; cluster_fabric(t->cluster)->backends &&
                           net->fabric.backend == BACKEND_HOST_GW && i < net->pods.n;
                i++)
                if (net->pods.v[i].ip.family == 4)
                        strings_add(t->arena, &out,
                                arena_strdup(t->arena, cidr_format(&net->pods.v[i], text)));
        return out;
}

static void rule_add(const struct terraform *t, json_t *all, const struct access_row *row,
        size_t number, const char *range)
{
        long port = t->cluster->api.port;
        json_t *rule = json_pack("{s:s, s:s, s:b, s:I}", "protocol", row->protocol, "range", range,
                "control", row->control, "priority", (json_int_t)(100 + json_object_size(all)));
        json_object_set_new(
                rule, "first", number_or_null(row->first == API_PORT ? port : row->first));
        json_object_set_new(rule, "last", number_or_null(row->last == API_PORT ? port : row->last));
        json_object_set_new(all, arena_printf(t->arena, "%s-%zu", row->name, number), rule);
}

static json_t *rules_value(const struct terraform *t)
{
        static const struct access_row pods = { "pods", NULL, "all", 0, 0, false };
        json_t *all = json_object();
        for (size_t i = 0; i < ARRAY_SIZE(access_rows); i++) {
                struct strings from =
                        platform_list(t->arena, variable_text(t, access_rows[i].from));
                for (size_t k = 0; k < from.n; k++)
                        rule_add(t, all, &access_rows[i], k + 1, from.v[k]);
        }
        struct strings ranges = pods_between(t);
        for (size_t i = 0; i < ranges.n; i++)
                rule_add(t, all, &pods, i + 1, ranges.v[i]);
        return all;
}

/* ---- variables ---- */

static json_t *list_value(const struct strings *s)
{
        json_t *list = json_array();
        for (size_t i = 0; i < s->n; i++)
                json_array_append_new(list, json_string(s->v[i]));
        return list;
}

static json_t *keys_value(const struct terraform *t)
{
        return list_value(&t->cluster->os.authorized_keys);
}
static json_t *pods_value(const struct terraform *t)
{
        struct strings ranges = pods_between(t);
        return list_value(&ranges);
}
static json_t *name_value(const struct terraform *t) { return json_string(t->cluster->name); }
static json_t *port_value(const struct terraform *t) { return json_integer(t->cluster->api.port); }
static json_t *vip_value(const struct terraform *t) { return text_or_null(t->cluster->api.vip); }
static json_t *user_value(const struct terraform *t)
{
        return json_string(t->cluster->provider.ssh.user);
}
static json_t *bastion_value(const struct terraform *t)
{
        return text_or_null(t->cluster->provider.ssh.bastion);
}

/* Variables that every platform's rows may use, besides those of config/platform.c. */
static const struct given_variable {
        const char *name, *help;
        json_t *(*value)(const struct terraform *t);
} given_variables[] = {
        { "name", "The cluster's name, which names of resources begin with.", name_value },
        { "nodes", "The machines.", nodes_value },
        { "rules", "Who may connect to the machines.", rules_value },
        { "api_port", "The port of the API servers.", port_value },
        { "vip", "The virtual IP address of the API.", vip_value },
        { "pods", "Ranges of pods whose addresses packets between machines have.", pods_value },
        { "user", "The user of the image.", user_value },
        { "authorized_keys", "ssh keys that may log in.", keys_value },
        { "bastion", "The jump host, [user@]host[:port].", bastion_value },
};

static json_t *variable_value(
        const struct terraform *t, const struct platform_variable *v, const char *text)
{
        if (v->type == VARIABLE_NUMBER)
                return json_integer(strtoll(text, NULL, 10));
        if (v->type != VARIABLE_LIST)
                return json_string(text);
        struct strings words = platform_list(t->arena, text);
        return list_value(&words);
}

static json_t *declaration(const struct terraform *t, const struct platform_variable *v)
{
        static const char *const types[] = { "string", "list(string)", "number" };
        json_t *d = json_pack("{s:s, s:s}", "description", v->help, "type", types[v->type]);
        if (v->def)
                json_object_set_new(d, "default", variable_value(t, v, v->def));
        else if (!v->required)
                json_object_set_new(d, "default", json_null());
        return d;
}

json_t *terraform_declarations(const struct terraform *t)
{
        json_t *all = json_object(), *used;
        const char *name;
        for (size_t i = 0; i < ARRAY_SIZE(given_variables); i++)
                if (json_object_get(t->variables, given_variables[i].name))
                        json_object_set_new(all, given_variables[i].name,
                                json_pack("{s:s}", "description", given_variables[i].help));
        json_object_foreach(t->variables, name, used)
        {
                const struct platform_variable *v = platform_variable(t->platform, name);
                if (v && !json_object_get(all, name))
                        json_object_set_new(all, name, declaration(t, v));
        }
        return json_pack("{s:o}", "variable", all);
}

json_t *terraform_values(const struct terraform *t)
{
        json_t *all = json_object(), *used;
        const char *name;
        for (size_t i = 0; i < ARRAY_SIZE(given_variables); i++)
                if (json_object_get(t->variables, given_variables[i].name))
                        json_object_set_new(
                                all, given_variables[i].name, given_variables[i].value(t));
        json_object_foreach(t->variables, name, used)
        {
                const struct platform_variable *v = platform_variable(t->platform, name);
                /* the rules have the range of the network too: both must be the same */
                const char *said = streq(name, "cidr") ? variable_text(t, name)
                                                       : terraform_variable(t->cluster, name);
                if (v && said && !json_object_get(all, name))
                        json_object_set_new(all, name, variable_value(t, v, said));
        }
        return all;
}

bool terraform_unset(const struct terraform *t, const char *name)
{
        const struct platform_variable *v = platform_variable(t->platform, name);
        return v && v->required && !terraform_variable(t->cluster, name);
}

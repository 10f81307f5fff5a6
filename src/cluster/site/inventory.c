#include "base/file.h"
#include "base/quote.h"
#include "cluster/site/inventory.h"
#include "cluster/site/site.h"

/* Paths in the output must be valid from any directory. */
static const char *inventory_path(struct arena *a, const char *path)
{
        char *here CLEANUP(free_p) = *path == '/' ? NULL : getcwd(NULL, 0);
        return here ? arena_printf(a, "%s/%s", here, path) : path;
}

/* The address for ssh, from the record if the file has none. */
static const char *inventory_address(const struct member *m)
{
        const struct host_record *h = records_find(&m->site->found.record, m->node->name);
        return m->machine->target.host ? m->machine->target.host : h ? h->address : NULL;
}

/* ---- OpenSSH ---- */

/* A quoted value; `token`: the option expands %, so % is doubled. */
static void config_line(struct str *out, const char *option, const char *value, bool token)
{
        str_addf(out, "  %s \"", option);
        for (; *value; value++) {
                if (*value == '"' || *value == '\\')
                        str_addc(out, '\\');
                str_addc(out, *value);
                if (token && *value == '%')
                        str_addc(out, '%');
        }
        str_add(out, "\"\n");
}

static void config_own(const struct link_target *t, struct arena *a, struct str *out)
{
        str_add(out, "  IdentitiesOnly yes\n");
        config_line(out, "UserKnownHostsFile", inventory_path(a, t->known_hosts), true);
        str_add(out, "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking accept-new\n");
}

/* ssh uses the first value of an option, so the user's own options come first, as
 * in `slipway ssh`. */
static void config_host(const struct member *m, struct arena *a, struct str *out)
{
        const struct link_target *t = &m->machine->target;
        const char *address = inventory_address(m);
        if (!address) {
                str_addf(out, "# %s has no address yet\n", m->node->name);
                return;
        }
        str_addf(out, "Host %s\n", m->node->name);
        config_line(out, "HostName", address, true);
        for (size_t i = 0; t->options && i < t->options->n; i++)
                str_addf(out, "  %s\n", t->options->v[i]);
        if (t->port)
                str_addf(out, "  Port %ld\n", t->port);
        if (t->user)
                config_line(out, "User", t->user, false);
        if (t->key) {
                config_line(out, "IdentityFile", inventory_path(a, t->key), true);
                str_add(out, "  IdentitiesOnly yes\n");
        }
        if (t->known_hosts) {
                config_line(out, "UserKnownHostsFile", inventory_path(a, t->known_hosts), true);
                str_add(out, "  GlobalKnownHostsFile /dev/null\n");
        }
        if (t->bastion) /* this option has no quoting */
                str_addf(out, "  ProxyJump %s\n", t->bastion);
        if (t->accept_new)
                str_add(out, "  StrictHostKeyChecking accept-new\n");
}

/* "ssh://ops@jump:22" → "jump" */
static const char *jump_host(struct arena *a, const char *word, size_t n)
{
        const char *text = arena_strndup(a, word, n), *at;
        text += has_prefix(text, "ssh://") ? strlen("ssh://") : 0;
        if ((at = strrchr(text, '@')))
                text = at + 1;
        if (*text == '[')
                return arena_strndup(a, text + 1, strcspn(text + 1, "]"));
        const char *colon = strchr(text, ':');
        return colon && !strchr(colon + 1, ':') ? arena_strndup(a, text, (size_t)(colon - text))
                                                : text;
}

/* slipway uses its key for the jump host too. ssh does so only if the jump host has an
 * entry with it. */
static void config_jumps(const struct member *m, struct arena *a, struct str *out)
{
        const struct link_target *t = &m->machine->target;
        for (const char *word = t->bastion && t->key ? t->bastion : ""; *word;) {
                size_t n = strcspn(word, ",");
                str_addf(out, "Host %s\n", jump_host(a, word, n));
                config_line(out, "IdentityFile", inventory_path(a, t->key), true);
                if (t->own_bastion)
                        config_own(t, a, out);
                word += n + (word[n] == ',');
        }
}

void site_inventory_ssh(const struct site *s, struct str *out)
{
        str_addf(out, "# Nodes of the cluster %s, written by `slipway inventory --ssh-config`.\n",
                s->cluster->name);
        for (size_t i = 0; i < s->count; i++)
                config_host(&s->members[i], s->arena, out);
        if (s->count)
                config_jumps(&s->members[0], s->arena, out);
}

/* ---- Ansible ---- */

static void ansible_text(json_t *vars, const char *key, const char *value)
{
        if (value)
                json_object_set_new(vars, key, json_string(value));
}

/* Additional ssh arguments as one line that Ansible splits into words. */
static const char *ansible_ssh_args(const struct link_target *given, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct link_target t = *given;
        t.key = t.key ? inventory_path(a, t.key) : NULL;
        t.known_hosts = t.known_hosts ? inventory_path(a, t.known_hosts) : NULL;
        const char *const words[] = { !t.bastion ? NULL
                                      : t.key    ? link_jump(&t, a)
                                                 : arena_printf(a, "ProxyJump=%s", t.bastion),
                t.known_hosts ? arena_printf(a, "UserKnownHostsFile=%s", t.known_hosts) : NULL,
                t.accept_new ? "StrictHostKeyChecking=accept-new" : NULL };
        for (size_t i = 0; t.options && i < t.options->n; i++) {
                str_add(&s, " -o ");
                quote_shell(&s, t.options->v[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (words[i]) {
                        str_add(&s, " -o ");
                        quote_shell(&s, words[i]);
                }
        return s.len ? arena_strdup(a, s.data + 1) : NULL;
}

static json_t *ansible_vars(const struct member *m, struct arena *a)
{
        const struct link_target *t = &m->machine->target;
        const struct node *n = m->node;
        char ip[IP_TEXT];
        json_t *vars = json_object();
        ansible_text(vars, "ansible_host", inventory_address(m));
        if (t->port)
                json_object_set_new(vars, "ansible_port", json_integer(t->port));
        ansible_text(vars, "ansible_user", t->user);
        ansible_text(
                vars, "ansible_ssh_private_key_file", t->key ? inventory_path(a, t->key) : NULL);
        ansible_text(vars, "ansible_ssh_common_args", ansible_ssh_args(t, a));
        if (t->sudo)
                json_object_set_new(vars, "ansible_become", json_true());
        if (n->ip[0].family)
                ansible_text(vars, "ip", ip_format(&n->ip[0], ip));
        if (n->pool->roles & ROLE_ETCD)
                ansible_text(vars, "etcd_member_name", n->name);
        return vars;
}

/* Ansible's group names may have only letters, digits and _. */
static const char *pool_group(const struct pool *p, struct arena *a)
{
        char *name = arena_printf(a, "pool_%s", p->name);
        for (char *c = name; *c; c++)
                *c = *c == '-' ? '_' : *c;
        return name;
}

static void group_add(json_t *inventory, const char *group, const char *node)
{
        json_t *g = json_object_get(inventory, group);
        if (!g)
                json_object_set_new(inventory, group, g = json_pack("{s:[]}", "hosts"));
        json_array_append_new(json_object_get(g, "hosts"), json_string(node));
}

json_t *site_inventory(const struct site *s)
{
        static const struct {
                unsigned role;
                const char *group;
        } roles[] = { { ROLE_CONTROL_PLANE, "kube_control_plane" }, { ROLE_ETCD, "etcd" },
                { ROLE_WORKER, "kube_node" } };
        json_t *all = json_object(), *vars = json_object(), *members = json_array();
        for (size_t i = 0; i < s->count; i++) {
                const struct node *n = s->members[i].node;
                json_object_set_new(vars, n->name, ansible_vars(&s->members[i], s->arena));
                for (size_t k = 0; k < ARRAY_SIZE(roles); k++)
                        if (n->pool->roles & roles[k].role)
                                group_add(all, roles[k].group, n->name);
        }
        for (size_t k = 0; k < ARRAY_SIZE(roles); k++)
                if (roles[k].role != ROLE_ETCD && json_object_get(all, roles[k].group))
                        json_array_append_new(members, json_string(roles[k].group));
        json_object_set_new(all, "k8s_cluster", json_pack("{s:o}", "children", members));
        for (size_t i = 0; i < s->count; i++)
                group_add(all, pool_group(s->members[i].node->pool, s->arena),
                        s->members[i].node->name);
        json_object_set_new(all, "_meta", json_pack("{s:o}", "hostvars", vars));
        return all;
}

/* Ansible treats {{ and {% as templates, except in marked values. */
static void ansible_value(struct str *out, const json_t *v)
{
        const char *text = json_string_value(v);
        if (!text) {
                str_addf(out, json_is_true(v) ? "true" : "%" JSON_INTEGER_FORMAT,
                        json_integer_value(v));
                return;
        }
        str_add(out,
                strstr(text, "{{") || strstr(text, "{%") || strstr(text, "{#") ? "!unsafe " : "");
        quote_json(out, text);
}

static void ansible_names(struct str *out, const char *key, const json_t *list)
{
        const json_t *v;
        size_t i;
        if (!list)
                return;
        str_addf(out, "      %s:\n", key);
        json_array_foreach(list, i, v)
        {
                str_add(out, "        ");
                quote_json(out, json_string_value(v));
                str_add(out, ": {}\n");
        }
}

void site_inventory_yaml(const struct site *s, json_t *inventory, struct str *out)
{
        const char *name, *key;
        json_t *vars, *v, *group,
                *hosts = json_object_get(json_object_get(inventory, "_meta"), "hostvars");
        str_addf(out,
                "# Nodes of the cluster %s, written by `slipway inventory --ansible`.\nall:\n  hosts:\n",
                s->cluster->name);
        json_object_foreach(hosts, name, vars)
        {
                str_add(out, "    ");
                quote_json(out, name);
                str_add(out, ":\n");
                json_object_foreach(vars, key, v)
                {
                        str_addf(out, "      %s: ", key);
                        ansible_value(out, v);
                        str_addc(out, '\n');
                }
        }
        str_add(out, "  children:\n");
        json_object_foreach(inventory, name, group)
        {
                if (streq(name, "_meta"))
                        continue;
                str_addf(out, "    %s:\n", name);
                ansible_names(out, "hosts", json_object_get(group, "hosts"));
                ansible_names(out, "children", json_object_get(group, "children"));
        }
}

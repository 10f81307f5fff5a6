#include "base/file.h"
#include "node/os.h"

#define FACTS_MAX_FILE ((size_t)64 << 20)

/* The entry of one machine; unset: NULL or 0, for tri-states -1. */
struct facts_entry {
        const char *name;
        const char *address, *os_id, *os_version, *arch, *interface, *init;
        struct ip ip[2];
        int cgroup, capabilities, ipvs, kernel_defaults;
};

struct facts_file {
        const char *path;
        size_t count;
        struct facts_entry *entries;
        struct facts_entry def;
};

struct reader {
        const char *path, *node;
        struct arena *arena;
        struct error *err;
};

static int facts_bad(const struct reader *r, const char *key, const char *why)
{
        return error_set(r->err, EINVAL, EXIT_CONFIG, "%s: %s: %s: %s", r->path, r->node, key, why);
}

static int facts_read_text(
        const struct reader *r, const char *key, const json_t *v, const char **out)
{
        if (!json_is_string(v) || !*json_string_value(v))
                return facts_bad(r, key, "must be a text");
        *out = arena_strdup(r->arena, json_string_value(v));
        return 0;
}

static int facts_read_bool(const struct reader *r, const char *key, const json_t *v, int *out)
{
        if (!json_is_boolean(v))
                return facts_bad(r, key, "must be true or false");
        *out = json_is_true(v);
        return 0;
}

static int facts_read_cgroup(const struct reader *r, const json_t *v, int *out)
{
        if (!json_is_integer(v) || (json_integer_value(v) != 1 && json_integer_value(v) != 2))
                return facts_bad(r, "cgroup", "must be 1 or 2");
        *out = (int)json_integer_value(v);
        return 0;
}

static int facts_read_ips(const struct reader *r, json_t *v, struct ip out[2])
{
        size_t n = json_is_array(v) ? json_array_size(v) : 1;
        if (n > 2)
                return facts_bad(r, "ip", "must have at most one address of each family");
        for (size_t i = 0; i < n; i++) {
                const char *text = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);
                if (!text || !ip_parse(text, &out[i]))
                        return facts_bad(r, "ip", "must be an address or a list of addresses");
        }
        if (n == 2 && out[0].family == out[1].family)
                return facts_bad(r, "ip", "must have at most one address of each family");
        return 0;
}

enum { CAN_NICE = 1, CAN_OOM = 2 };

static int facts_read_capabilities(const struct reader *r, json_t *v, int *out)
{
        size_t i;
        json_t *c;
        if (!json_is_array(v))
                return facts_bad(r, "capabilities", "must be a list of names");
        *out = 0;
        json_array_foreach(v, i, c)
        {
                const char *name = json_string_value(c);
                if (!name)
                        return facts_bad(r, "capabilities", "must be a list of names");
                if (!strncasecmp(name, "cap_", 4))
                        name += 4;
                *out |= !strcasecmp(name, "sys_nice")       ? CAN_NICE
                        : !strcasecmp(name, "sys_resource") ? CAN_OOM
                                                            : 0;
        }
        return 0;
}

static int facts_read_os(const struct reader *r, json_t *v, struct facts_entry *e)
{
        const char *key;
        json_t *value;
        if (json_is_string(v))
                return facts_read_text(r, "os", v, &e->os_id);
        if (!json_is_object(v))
                return facts_bad(r, "os", "must be {\"id\": …, \"version\": …}");
        json_object_foreach(v, key, value)
        {
                int rc = streq(key, "id") ? facts_read_text(r, "os.id", value, &e->os_id)
                         : streq(key, "version")
                                 ? facts_read_text(r, "os.version", value, &e->os_version)
                                 : 0;
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int facts_unknown_key(const struct reader *r, const char *key)
{
        static const char *const keys[] = { "address", "arch", "capabilities", "cgroup", "init",
                "interface", "ip", "ipvs", "kernelDefaults", "os" };
        const char *near = nearest(key, keys, ARRAY_SIZE(keys));
        facts_bad(r, key, "unknown fact");
        return near ? error_hint(r->err, "did you mean %s?", near) : -EINVAL;
}

static int facts_read_fact(
        const struct reader *r, const char *key, json_t *v, struct facts_entry *e)
{
        const struct {
                const char *key, **to;
        } texts[] = { { "address", &e->address }, { "arch", &e->arch },
                { "interface", &e->interface }, { "init", &e->init } };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (streq(key, texts[i].key))
                        return facts_read_text(r, key, v, texts[i].to);
        if (streq(key, "os"))
                return facts_read_os(r, v, e);
        if (streq(key, "ip"))
                return facts_read_ips(r, v, e->ip);
        if (streq(key, "cgroup"))
                return facts_read_cgroup(r, v, &e->cgroup);
        if (streq(key, "capabilities"))
                return facts_read_capabilities(r, v, &e->capabilities);
        if (streq(key, "ipvs"))
                return facts_read_bool(r, key, v, &e->ipvs);
        if (streq(key, "kernelDefaults"))
                return facts_read_bool(r, key, v, &e->kernel_defaults);
        return facts_unknown_key(r, key);
}

static int facts_read_entry(struct reader *r, const char *name, json_t *v, struct facts_entry *e)
{
        const char *key;
        json_t *value;
        *e = (struct facts_entry){ .name = arena_strdup(r->arena, name),
                .capabilities = -1,
                .ipvs = -1,
                .kernel_defaults = -1 };
        r->node = e->name;
        if (!json_is_object(v))
                return error_set(r->err, EINVAL, EXIT_CONFIG, "%s: %s: must be an object of facts",
                        r->path, name);
        json_object_foreach(v, key, value)
        {
                int rc = facts_read_fact(r, key, value, e);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int compare_entries(const void *a, const void *b)
{
        return strcmp(((const struct facts_entry *)a)->name, ((const struct facts_entry *)b)->name);
}

static int facts_read_nodes(struct reader *r, json_t *nodes, struct facts_file *f)
{
        const char *name;
        json_t *v;
        if (nodes && !json_is_object(nodes))
                return error_set(r->err, EINVAL, EXIT_CONFIG,
                        "%s: nodes: must be an object with one entry per node", r->path);
        f->entries = arena_array(r->arena, struct facts_entry, json_object_size(nodes));
        json_object_foreach(nodes, name, v)
        {
                int rc = facts_read_entry(r, name, v, &f->entries[f->count++]);
                if (rc < 0)
                        return rc;
        }
        if (f->count)
                qsort(f->entries, f->count, sizeof(*f->entries), compare_entries);
        return 0;
}

static void json_free(json_t **j) { json_decref(*j); }

int facts_load(const char *path, struct arena *a, struct facts_file **out, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        json_error_t je;
        int rc = file_read(path, FACTS_MAX_FILE, &text, err);
        if (rc < 0)
                return rc;
        json_t *root CLEANUP(json_free) =
                json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, &je);
        if (!json_is_object(root))
                return error_set(err, EINVAL, EXIT_CONFIG, "%s:%d:%d: %s", path, root ? 1 : je.line,
                        root ? 1 : je.column, root ? "must be an object" : je.text);
        struct reader r = { .path = arena_strdup(a, path), .arena = a, .err = err };
        struct facts_file *f = arena_new(a, struct facts_file);
        f->path = r.path;
        f->def = (struct facts_entry){
                .name = "default", .capabilities = -1, .ipvs = -1, .kernel_defaults = -1
        };
        json_t *def = json_object_get(root, "default");
        if (def && (rc = facts_read_entry(&r, "default", def, &f->def)) < 0)
                return rc;
        if ((rc = facts_read_nodes(&r, json_object_get(root, "nodes"), f)) < 0)
                return rc;
        *out = f;
        return 0;
}

static const struct facts_entry *facts_find_entry(const struct facts_file *f, const char *name)
{
        struct facts_entry key = { .name = name };
        return f && f->count ? bsearch(&key, f->entries, f->count, sizeof(key), compare_entries)
                             : NULL;
}

void facts_addresses(const struct facts_file *f, struct cluster *c)
{
        for (size_t i = 0; f && i < c->node_count; i++) {
                struct node *n = &c->nodes[i];
                const struct facts_entry *e = facts_find_entry(f, n->name);
                if (e && e->address) {
                        n->address = e->address;
                        if (!e->ip[0].family && !n->ip[0].family)
                                ip_parse(e->address, &n->ip[0]);
                }
                if (!e || !e->ip[0].family)
                        continue;
                /* the cluster's first family first */
                bool other = c->network.pods.n && e->ip[1].family == c->network.pods.v[0].ip.family;
                n->ip[0] = e->ip[other];
                n->ip[1] = e->ip[!other];
        }
}

/* Of the node's entry, or of the file's default. */
#define FACT(field, unset) \
        (e && e->field != (unset)              ? e->field \
                : f && f->def.field != (unset) ? f->def.field \
                                               : (unset))

static int facts_os_unfit(const struct node *n, const char *id, struct error *err)
{
        struct str known CLEANUP(str_release) = { 0 };
        if (!strncasecmp(id, "windows", 7)) {
                error_set(
                        err, ENOTSUP, EXIT_PREFLIGHT, "node %s: Windows is not supported", n->name);
                return error_hint(err, "use Linux on this node, or join it with kubeadm yourself");
        }
        os_names(&known);
        error_set(err, ENOTSUP, EXIT_PREFLIGHT, "node %s: the operating system %s is not supported",
                n->name, id);
        return error_hint(err, "supported are %s", str_text(&known));
}

/* Names of kernels and distributions for the supported architectures. */
static const char *canonical_arch(const char *arch)
{
        static const char *const names[][2] = { { "x86_64", "amd64" }, { "amd64", "amd64" },
                { "aarch64", "arm64" }, { "arm64", "arm64" } };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(names[i][0], arch))
                        return names[i][1];
        return NULL;
}

int facts_for(
        const struct facts_file *f, const struct node *n, struct facts *out, struct error *err)
{
        const struct facts_entry *e = facts_find_entry(f, n->name);
        const char *id = FACT(os_id, NULL), *version = id ? FACT(os_version, NULL) : NULL,
                   *arch = FACT(arch, NULL), *init = FACT(init, NULL),
                   *interface = FACT(interface, NULL);
        if (!id)
                id = n->pool && n->pool->os ? n->pool->os : "debian";
        const struct os_id *os = os_find(id);
        if (!os)
                return facts_os_unfit(n, id, err);
        if (arch && !canonical_arch(arch)) {
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "node %s: the processor architecture %s is not supported", n->name, arch);
                return error_hint(err, "supported are amd64 and arm64");
        }
        if (init && !streq(init, "systemd")) {
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "node %s: the init system is %s, but slipway needs systemd", n->name, init);
                return error_hint(err, "boot the machine with systemd, or use another image");
        }
        *out = (struct facts){
                .os_id = os->id,
                .os_version = version ? version : os->version,
                .family = os->family,
                .arch = arch ? canonical_arch(arch) : "amd64",
                .cgroup = FACT(cgroup, 0) ? FACT(cgroup, 0) : 2,
                .systemd = true,
                .sys_nice = FACT(capabilities, -1) & CAN_NICE,
                .sys_resource = FACT(capabilities, -1) & CAN_OOM,
                .ipvs = FACT(ipvs, -1) != 0,
                .kernel_defaults = FACT(kernel_defaults, -1) != 0,
                .interface = interface ? interface : "eth0",
        };
        return 0;
}

/* The interface with the node's address: the agent's `interface` is that of the default route. */
static const char *interface_of(json_t *interfaces, const struct ip *ip)
{
        size_t i, j;
        json_t *one, *address;
        json_array_foreach(interfaces, i, one)
        {
                json_array_foreach(json_object_get(one, "addresses"), j, address)
                {
                        struct cidr c;
                        char text[IP_TEXT] = "";
                        struct ip held;
                        const char *full =
                                json_string_value(address) ? json_string_value(address) : "";
                        snprintf(text, sizeof(text), "%.*s", (int)strcspn(full, "/"), full);
                        if (cidr_parse(full, &c, NULL) && ip_parse(text, &held) &&
                                ip_equal(&held, ip))
                                return json_string_value(json_object_get(one, "name"));
                }
        }
        return NULL;
}

int facts_from_agent(
        json_t *said, const struct node *n, struct arena *a, struct facts *out, struct error *err)
{
        static const char *const wanted[] = { "os", "arch", "cgroup", "capabilities", "init",
                "ipvs", "kernelDefaults", "interface" };
        struct reader r = { .path = n->name, .node = n->name, .arena = a, .err = err };
        struct facts_entry entry = {
                .name = n->name, .capabilities = -1, .ipvs = -1, .kernel_defaults = -1
        };
        struct facts_file one = { .path = n->name,
                .count = 1,
                .entries = &entry,
                .def = { .capabilities = -1, .ipvs = -1, .kernel_defaults = -1 } };
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                json_t *v = json_object_get(said, wanted[i]);
                int rc = v ? facts_read_fact(&r, wanted[i], v, &entry) : 0;
                if (rc < 0)
                        return rc;
        }
        const char *interface =
                n->ip[0].family ? interface_of(json_object_get(said, "interfaces"), &n->ip[0])
                                : NULL;
        if (interface)
                entry.interface = arena_strdup(a, interface);
        int rc = facts_for(&one, n, out, err);
        json_t *etcd = json_object_get(said, "etcd");
        const char *initial = json_string_value(json_object_get(etcd, "initial")),
                   *state = json_string_value(json_object_get(etcd, "state"));
        if (rc == 0 && initial && state) {
                out->etcd_initial = arena_strdup(a, initial);
                out->etcd_state = arena_strdup(a, state);
        }
        return rc;
}

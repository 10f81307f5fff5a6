/* Networks that are known by their names: the machines' own, the external one and those of `ports`.
 * One list has all of them, because a plan makes few calls. */
#include "provider/openstack/openstack.h"

static bool look_needs_external(const struct os *os)
{
        const char *external = os->options->external_network;
        return os_wants_credential(os) && external && !os_is_id(external);
}

/* Networks beside the machines' own. */
bool os_has_names(const struct os *os)
{
        const struct strings *further = &os->options->ports.networks;
        for (size_t i = 0; i < further->n; i++)
                if (!os_is_id(further->v[i]))
                        return true;
        return look_needs_external(os);
}

/* All networks that are known by their names: one list. False: there are none. */
bool os_look_named(struct os_job *j)
{
        struct os *os = j->os;
        const struct provider_openstack *o = os->options;
        const struct strings *further = &o->ports.networks;
        const char *names[] = { o->network.name,
                look_needs_external(os) ? o->external_network : NULL,
                os_managed(os) && os_has_names(os) ? os->name : NULL };
        size_t n = 0, most = ARRAY_SIZE(names) + further->n;
        struct pair *args = arena_array(os->run->arena, struct pair, most + 1);
        for (size_t i = 0; i < most; i++) {
                const char *name =
                        i < ARRAY_SIZE(names) ? names[i] : further->v[i - ARRAY_SIZE(names)];
                if (name && !os_is_id(name))
                        args[n++] = (struct pair){ "?name", name };
        }
        if (n)
                job_list(j, OS_LIST_NETWORKS, args, &os->found.named);
        return n;
}

static size_t named_count(const struct os *os, const char *name, const struct os_network **one)
{
        const struct os_network *all = os->found.named.v;
        size_t n = 0;
        for (size_t i = 0; i < os->found.named.n; i++)
                if (all[i].name && streq(all[i].name, name)) {
                        *one = &all[i];
                        n++;
                }
        return n;
}

const char *os_network_id(const struct os *os, const char *word)
{
        const struct os_network *one = NULL;
        return os_is_id(word) ? word : named_count(os, word, &one) == 1 ? one->id : NULL;
}

int os_look_network(struct os *os, struct error *err)
{
        const char *name = os->options->network.name;
        const struct os_network *one = NULL;
        if (os_managed(os))
                return 0;
        size_t n = os_is_id(name) ? 1 : named_count(os, name, &one);
        if (!one) { /* its id is all that is needed */
                struct os_network *given = arena_new(&os->found.arena, struct os_network);
                given->id = name;
                one = given;
        }
        if (n == 1) {
                os->found.network = one;
                return 0;
        }
        error_set(err, ENOENT, EXIT_PREFLIGHT,
                n ? "provider.openstack.network: there are %zu networks called %s"
                  : "provider.openstack.network: there is no network%.0zu %s",
                n, name);
        return error_hint(
                err, n ? "give its id"
                       : "see `openstack network list`, or leave it out: slipway creates one");
}

/* Our own network among the named ones; somebody may have given it another name, or it is new: then
 * its subnet is looked for by the mark. */
void stage_look_own(struct os_job *j)
{
        struct os *os = j->os;
        struct os_found *f = &os->found;
        const struct os_network *all = f->named.v;
        struct pair mark[] = { { "mark", os->mark }, { 0 } };
        if (!os_managed(os) || !os->mark || !os_has_names(os))
                return;
        for (size_t i = f->named.n; i-- > 0;)
                if (os_marked(os, all[i].description))
                        f->network = &all[i];
        if (!f->network)
                job_list(j, OS_LIST_SUBNETS, mark, &f->subnets);
}

/* Where all ports are, one of them says which subnet it is. */
const struct os_subnet *os_subnet_of_ports(struct os *os)
{
        const struct os_port *all = os->found.ports.v;
        struct os_subnet *s = arena_new(&os->found.arena, struct os_subnet);
        s->network = os->found.network->id;
        for (size_t i = 0; i < os->found.ports.n && !s->id; i++)
                if (os_marked(os, all[i].description) && all[i].addresses.n &&
                        os_is_main_port(os, &all[i]))
                        s->id = ((const struct os_fixed_ip *)all[i].addresses.v)->subnet;
        return s->id ? s : NULL;
}

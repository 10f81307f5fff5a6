#include "cluster/plan/replaced.h"
#include "cluster/plan/plan.h"
#include "kube/wait.h"

/* Two kubelets with the same name would overwrite each other's Node. That the old one is still
 * running is reported by the API, so it only leads to a refusal. */
static int still_serves(const struct member *m, const struct host_record *h, struct error *err)
{
        if (!m->seen.object || !node_ready(m->seen.object) || member_is(m, m->seen.object))
                return 0;
        error_set(err, EBUSY, EXIT_PREFLIGHT,
                "node %s: it is another host now (%s), and the old one (%s) is still Ready in the API under the same name",
                m->node->name, m->node->address, h->address);
        return error_hint(err,
                "switch the old host off and run again in a minute; or put its address back, run 'slipway reset %s', and then change the address; nothing was changed",
                m->node->name);
}

/* The other members would continue to use the known address. */
static int same_host(const struct member *m, const struct host_record *h, struct error *err)
{
        const char *id = member_machine_id(m);
        struct ip was;
        if (!(m->node->pool->roles & ROLE_ETCD) || !member_has_etcd(m) || !id || !h->machine_id ||
                !streq(id, h->machine_id) || !h->ip || !ip_parse(h->ip, &was) ||
                ip_equal(&was, &m->node->ip[0]))
                return 0;
        error_set(err, EBUSY, EXIT_PREFLIGHT,
                "node %s: the same host has the address %s now, but its etcd member has %s",
                m->node->name, m->node->address, h->ip);
        return error_hint(err,
                "give the host its old address back and run 'slipway reset %s'; then change the address in the file and on the host, and run 'slipway up'; nothing was changed",
                m->node->name);
}

int replaced_check(const struct site *s, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && s->found.live && i < s->count; i++) {
                const struct member *m = &s->members[i];
                const struct host_record *h = member_moved(m);
                if (!h || !m->seen.said)
                        continue;
                r = same_host(m, h, err);
                if (r == 0)
                        r = still_serves(m, h, err);
        }
        return r;
}

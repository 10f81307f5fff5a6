/* Checks the identity of the host. The host at an address of the file must be the expected node,
 * and a host that is no longer in the file must be the recorded one. What the host says about
 * itself can only lead to a refusal; the proof is its host key, which ssh checks. */
#include "deliver/link/state.h"

static bool who_refuse(struct link *l, const char *hint, const char *fmt, ...) PRINTF(3, 4);

static bool who_refuse(struct link *l, const char *hint, const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        va_list ap;
        if (l->err.code)
                return false;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        error_set(&l->err, EREMCHG, EXIT_STATE, "node %s: %s", l->target.name, str_text(&s));
        error_hint(&l->err, "%s", hint);
        link_failed(l);
        return false;
}

#define WHO_ANOTHER \
        "nothing was sent to it; if the machine was reinstalled, remove its node by hand: slipway does not touch it"

#define WHO_RENAMED \
        "check its address in cluster.yaml; to rename a node, first remove it under its old name (slipway remove-node OLD), " \
        "then add it under the new name"

const char *link_host_key(const struct link *l) { return l->talk.host_key; }

bool link_who_key(struct link *l)
{
        const char *want = l->target.host_key, *is = l->talk.host_key;
        if (!want || !is || streq(want, is))
                return true;
        return who_refuse(l, WHO_ANOTHER,
                "the host key of %s is %.200s and not the recorded %.200s", l->target.host, is,
                want);
}

/* ssh reports the key before the shell's first word, but the two come through different pipes. */
bool link_who_said(struct link *l)
{
        if (l->target.host_key && !l->talk.host_key && l->proc)
                proc_errors(l->proc);
        if (l->dead || l->err.code || !link_who_key(l))
                return false;
        if (!l->target.host_key || l->talk.host_key)
                return true;
        return who_refuse(l, WHO_ANOTHER, "ssh does not tell the host key of %s", l->target.host);
}

void link_who_other(struct link *l, const char *rest)
{
        who_refuse(l, WHO_ANOTHER, "%s is another machine: its machine-id is not the recorded %s",
                l->target.host, l->target.machine_id ? l->target.machine_id : "one");
}

static const char *who_text(const json_t *facts, const char *key)
{
        const char *text = json_string_value(json_object_get(facts, key));
        return text ? text : "";
}

bool link_who_hello(struct link *l, const json_t *facts, const char *digest)
{
        const struct link_target *t = &l->target;
        const char *cluster = who_text(facts, "cluster"), *node = who_text(facts, "node");
        bool ours = t->cluster && streq(cluster, t->cluster);
        if (t->machine_id && !streq(who_text(facts, "machineId"), t->machine_id)) {
                link_who_other(l, NULL);
                return false;
        }
        if (t->digest && !streq(digest, t->digest))
                return who_refuse(l,
                        "another run changes it, or a person did; run again when that is over",
                        "what is applied there is not what it was when this run looked at it");
        if (t->strict && *cluster && !ours)
                return who_refuse(l,
                        "to use it here, first reset it from the cluster that it belongs to",
                        "%s belongs to another cluster now (%.64s)", t->host, cluster);
        if (!ours || !*node || streq(node, t->name))
                return true;
        return who_refuse(l, WHO_RENAMED,
                "the host at %s is node %.64s of this cluster, by its own record", t->host, node);
}

/* Options whose default depends on `hardening`. What the file says itself always counts, also where
 * it is the looser. */
#include "config/cluster.h"

/* `encryption: none` and `encryption: {provider: none}` say it; `encryption: {resources: [..]}`
 * does not. */
static bool hardening_said(const struct tree *section, const char *field)
{
        return section && (section->kind == TREE_MAP ? tree_get(section, field) != NULL
                                                     : section->kind == TREE_SCALAR);
}

/* A list that is being complained about may have holes. */
static bool names(const struct strings *s, const char *v)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i] && streq(s->v[i], v))
                        return true;
        return false;
}

void cluster_harden(struct cluster *c)
{
        bool cis = c->hardening == HARDENING_CIS;
        if (cis && !hardening_said(c->encryption.src, "provider"))
                c->encryption.provider = ENCRYPTION_SECRETBOX;
        if (cis && !hardening_said(c->audit.src, "level") && !c->audit.policy_file)
                c->audit.level = AUDIT_METADATA;
        bool loose = hardening_said(c->admission.src, "podSecurity") || !cis ||
                     names(&c->admission.disable, "PodSecurity");
        c->admission.pod_warning = loose ? c->admission.pod_security : POD_SECURITY_BASELINE;
}

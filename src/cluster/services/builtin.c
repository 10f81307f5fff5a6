/* Built-in services: their objects, as if a manifest had them. */
#include "addon/addon.h"
#include "cluster/services/services.h"
#include "config/dex.h"
#include "kube/documents.h"

/* Whoever runs DNS has to know where the name must lead. */
static const char *dex_note(const struct site *s)
{
        const struct cluster *c = s->cluster;
        struct str nodes CLEANUP(str_release) = { 0 };
        size_t i = 0;
        char text[IP_TEXT];
        for (const struct node *n; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));)
                if (n->ip[0].family)
                        str_addf(&nodes, "%s%s", nodes.len ? ", " : "", ip_format(&n->ip[0], text));
        if (c->services.dex.expose == DEX_LOAD_BALANCER)
                return arena_printf(s->arena,
                        "%s must lead to the address of the Service " DEX_NAMESPACE "/dex",
                        c->auth.oidc.issuer);
        return arena_printf(s->arena, "%s must lead to control-plane nodes: %s%s%s",
                c->auth.oidc.issuer, c->api.vip ? c->api.vip : "",
                c->api.vip && nodes.len ? ", " : "", str_text(&nodes));
}

int builtin_dex(struct site *site, struct service *s, struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        s->ns = DEX_NAMESPACE;
        s->action = SERVICE_INSTALL;
        s->note = dex_note(site);
        addon_dex(site->cluster, &site->identity, &text);
        sha256_hex(str_text(&text), text.len, s->digest);
        return documents_read(str_text(&text), &s->objects, err);
}

/* The name of the API in Route 53. */
#include <strings.h>

#include "base/quote.h"
#include "provider/aws/kinds.h"

#define NAMESPACE "https://route53.amazonaws.com/doc/2013-04-01/"
#define TTL       60

static bool dns_same(const char *a, const char *b)
{
        size_t n = strlen(a), m = strlen(b);
        n -= n && a[n - 1] == '.';
        m -= m && b[m - 1] == '.';
        return n == m && strncasecmp(a, b, n) == 0;
}

const char *dns_zone_id(const struct aws_run *w)
{
        const struct aws_hosted_zone *z;
        for (size_t i = 0; w->zone && (z = list_row(w, LIST_ZONES, i)); i++)
                if (dns_same(z->name, w->zone) && z->private == w->config->dns.private)
                        return has_prefix(z->id, "/hostedzone/") ? z->id + 12 : z->id;
        return NULL;
}

const char *dns_record_name(const struct aws_run *w)
{
        return arena_printf(
                (struct arena *)(uintptr_t)&w->arena, "%s.%s", w->run->cluster->name, w->zone);
}

/* Names of AWS and of the file are letters, digits, dots and dashes (T_HOST, RFC 1123 names). */
static bool dns_plain(const char *s)
{
        return s &&
               s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:")] ==
                       0;
}

static void zone_vpc_put(struct aws_run *w, const char *what, const char *vpc, struct args *a)
{
        arg_put(a, "zone", dns_zone_id(w));
        a->text = arena_printf(a->arena,
                "<?xml version=\"1.0\"?><%sRequest xmlns=\"" NAMESPACE
                "\"><VPC><VPCRegion>%s</VPCRegion><VPCId>%s</VPCId></VPC><Comment>%s</Comment>"
                "</%sRequest>",
                what, aws_session_region(w->sync.session), vpc, w->mark, what);
}

void zone_vpc_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        zone_vpc_put(w, "AssociateVPCWithHostedZone", vpc_id(w), a);
}

bool removal_zone_vpc(struct aws_run *w, const char *vpc, struct args *a)
{
        if (!w->config->dns.private || !dns_zone_id(w) || !dns_plain(vpc))
                return false;
        zone_vpc_put(w, "DisassociateVPCFromHostedZone", vpc, a);
        return true;
}

static void record_values(struct aws_run *w, const struct thing *t, struct str *s)
{
        const struct aws_balancer *b = t->needs[0]->kind == KIND_BALANCER ? t->needs[0]->is : NULL;
        if (b && dns_plain(b->dns) && dns_plain(b->zone)) {
                str_addf(s,
                        "<AliasTarget><HostedZoneId>%s</HostedZoneId><DNSName>%s</DNSName>"
                        "<EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget>",
                        b->zone, b->dns);
                return;
        }
        str_addf(s, "<TTL>%d</TTL><ResourceRecords>", TTL);
        for (size_t i = 0; i < t->need_count; i++) {
                const struct aws_interface *e = t->needs[i]->is;
                if (t->needs[i]->kind == KIND_INTERFACE && e && dns_plain(e->address))
                        str_addf(s, "<ResourceRecord><Value>%s</Value></ResourceRecord>",
                                e->address);
        }
        str_add(s, "</ResourceRecords>");
}

const char *record_change(struct aws_run *w, const char *action, const char *values)
{
        return arena_printf(&w->arena,
                "<?xml version=\"1.0\"?><ChangeResourceRecordSetsRequest xmlns=\"" NAMESPACE
                "\"><ChangeBatch><Comment>%s</Comment><Changes><Change><Action>%s</Action>"
                "<ResourceRecordSet><Name>%s</Name><Type>A</Type>%s</ResourceRecordSet></Change>"
                "</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>",
                w->mark, action, dns_record_name(w), values);
}

void record_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        record_values(w, t, &s);
        arg_put(a, "zone", dns_zone_id(w));
        a->text = record_change(w, "UPSERT", str_text(&s));
}

static bool record_has(const struct aws_record *r, const char *address)
{
        const struct aws_value *v = r->values.v;
        for (size_t i = 0; i < r->values.n; i++)
                if (v[i].value && streq(v[i].value, address))
                        return true;
        return false;
}

const struct aws_record *record_row(struct aws_run *w)
{
        const struct aws_record *r = list_row(w, LIST_RECORD, 0);
        return r && dns_same(r->name, dns_record_name(w)) && streq(r->type, "A") ? r : NULL;
}

bool record_found(struct aws_run *w, struct thing *t)
{
        const struct aws_record *r = record_row(w);
        const struct aws_balancer *b = t->needs[0]->kind == KIND_BALANCER ? t->needs[0]->is : NULL;
        if (!r)
                return false;
        if (t->needs[0]->kind == KIND_BALANCER)
                return b && b->dns && r->alias && dns_same(r->alias, b->dns);
        for (size_t i = 0; i < t->need_count; i++) {
                const struct aws_interface *e = t->needs[i]->is;
                if (t->needs[i]->kind == KIND_INTERFACE &&
                        (!e || !e->address || !record_has(r, e->address)))
                        return false;
        }
        return true;
}

/* The record exactly as it is, or Route 53 refuses to delete it. */
void removal_record(struct aws_run *w, struct args *a)
{
        const struct aws_record *r = record_row(w);
        const struct aws_value *v = r ? r->values.v : NULL;
        struct str s CLEANUP(str_release) = { 0 };
        if (r && r->alias && dns_plain(r->alias) && dns_plain(r->alias_zone))
                str_addf(&s,
                        "<AliasTarget><HostedZoneId>%s</HostedZoneId><DNSName>%s</DNSName>"
                        "<EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget>",
                        r->alias_zone, r->alias);
        else if (r)
                str_addf(&s, "<TTL>%" PRId64 "</TTL><ResourceRecords>", r->ttl);
        for (size_t i = 0; r && !r->alias && i < r->values.n; i++)
                if (dns_plain(v[i].value))
                        str_addf(&s, "<ResourceRecord><Value>%s</Value></ResourceRecord>",
                                v[i].value);
        if (r && !r->alias)
                str_add(&s, "</ResourceRecords>");
        arg_put(a, "zone", dns_zone_id(w));
        a->text = record_change(w, "DELETE", str_text(&s));
}

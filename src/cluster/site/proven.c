#include "cluster/site/proven.h"
#include "cluster/site/removed.h"

/* The node's row, unless it is about another machine or without a version. */
static struct host_record *proven_row(const struct member *m)
{
        struct host_record *h = records_find(&m->site->found.record, m->node->name);
        return h && h->healthy && !member_replaced(m) ? h : NULL;
}

const char *member_healthy_version(const struct member *m)
{
        const struct host_record *h = proven_row(m);
        return h ? h->healthy : NULL;
}

bool member_unproven(const struct member *m)
{
        const struct host_record *h = proven_row(m);
        return h && h->unproven;
}

bool member_unproven_wanted(const struct member *m)
{
        const struct host_record *h = proven_row(m);
        const char *wanted = m->site->cluster->kubernetes.text;
        return h && h->unproven && streq(h->unproven, wanted) && !streq(h->healthy, wanted);
}

void proven_begin(struct member *m, const char *before)
{
        struct site *s = m->site;
        struct host_record *h = records_find(&s->found.record, m->node->name);
        struct version v;
        if (!h || !version_parse(before, &v))
                return;
        if (!h->unproven || !h->healthy)
                h->healthy = arena_strdup(s->arena, before);
        h->unproven = s->cluster->kubernetes.text;
        site_record_save(s);
}

void proven_healthy(struct member *m)
{
        struct host_record *h = records_find(&m->site->found.record, m->node->name);
        if (!h)
                return;
        h->healthy = m->site->cluster->kubernetes.text;
        if (h->unproven) {
                h->unproven = NULL;
                site_record_save(m->site);
        }
}

void proven_back(struct member *m)
{
        struct host_record *h = records_find(&m->site->found.record, m->node->name);
        if (h && h->unproven) {
                h->unproven = NULL;
                site_record_save(m->site);
        }
}

/* Names for a first cluster.yaml: of what the account has in its region, what fits best. */
#include <event2/event.h>

#include "cloud/aws/source.h"
#include "provider/aws/impl.h"
#include "provider/aws/suggest.h"

#define LIST_MAX    10000
#define PATIENCE_MS 15000 /* of a person who waits for a file */
#define ZONES_MOST  3
#define WORD        "abcdefghijklmnopqrstuvwxyz0123456789-"

struct asking {
        struct arena *arena;
        struct event_base *base;
        struct cloud *cloud;
        struct aws_session *session;
};

static void aws_asking_release(struct asking *q)
{
        aws_free(q->session);
        cloud_free(q->cloud);
        if (q->base)
                event_base_free(q->base);
}

static int aws_suggest_list(struct asking *q, enum aws_call call, const struct pair *args,
        struct answers *out, struct error *err)
{
        json_t *list = NULL;
        struct fault f = { 0 };
        int r = call_do(aws_session(q->session), &aws_calls[call],
                &(struct call_args){ .args = args, .timeout_ms = PATIENCE_MS }, &list, &f);
        if (r < 0)
                r = fault_error(&f, err);
        else
                r = answer_read_list(aws_calls[call].answer, list, LIST_MAX, q->arena, out, err);
        fault_release(&f);
        json_decref(list);
        return r;
}

/* "[a, b]" of words that are nothing but names; NULL: none. */
static const char *suggest_words(struct asking *q, const char *const *words, size_t n)
{
        struct str s CLEANUP(str_release) = { 0 };
        size_t good = 0;
        for (size_t i = 0; i < n; i++)
                if (words[i] && *words[i] && !words[i][strspn(words[i], WORD)])
                        str_addf(&s, "%s%s", good++ ? ", " : "[", words[i]);
        str_add(&s, "]");
        return good ? arena_strdup(q->arena, str_text(&s)) : NULL;
}

static int suggest_zones(struct asking *q, struct suggestions *out, struct error *err)
{
        struct answers all = { 0 };
        int r = aws_suggest_list(q, AWS_LIST_ZONES, NULL, &all, err);
        const struct aws_zone *v = all.v;
        const char *names[ZONES_MOST];
        size_t n = 0;
        for (size_t i = 0; i < all.n && n < ZONES_MOST; i++)
                if (!v[i].state || streq(v[i].state, "available"))
                        names[n++] = v[i].name;
        suggest_put(out, "zones", suggest_words(q, names, n));
        return r;
}

/* Images of their distributions' own accounts, the best one first. */
static int aws_suggest_image(struct asking *q, struct suggestions *out, struct error *err)
{
        static const struct {
                const char *name, *owner;
        } rows[] = { { "debian-13-amd64-*", "136693071363" },
                { "debian-12-amd64-*", "136693071363" },
                { "ubuntu/images/hvm-ssd*/ubuntu-noble-24.04-amd64-server-*", "099720109477" },
                { "ubuntu/images/hvm-ssd*/ubuntu-jammy-22.04-amd64-server-*", "099720109477" } };
        int r = 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++) {
                struct answers found = { 0 };
                struct pair args[] = { { "Owner.1", rows[i].owner }, { "Filter.1.Name", "name" },
                        { "Filter.1.Value.1", rows[i].name }, { 0 } };
                r = aws_suggest_list(q, AWS_LIST_IMAGES, args, &found, err);
                if (r < 0 || !found.n)
                        continue;
                suggest_put(out, "image", rows[i].name);
                suggest_put(out, "owner", rows[i].owner);
                break;
        }
        return r;
}

static bool suggest_offers(const struct answers *all, const char *type)
{
        const struct aws_offering *v = all->v;
        for (size_t i = 0; i < all->n; i++)
                if (v[i].type && streq(v[i].type, type))
                        return true;
        return false;
}

/* Two vCPUs and eight GiB: what a control plane runs well on. */
static int suggest_type(struct asking *q, struct suggestions *out, struct error *err)
{
        static const char *const types[] = { "m7i.large", "m6i.large", "m5.large", "t3.large" };
        struct answers all = { 0 };
        struct pair args[] = { { "LocationType", "region" }, { "Filter.1.Name", "instance-type" },
                { "Filter.1.Value.1", types[0] }, { "Filter.1.Value.2", types[1] },
                { "Filter.1.Value.3", types[2] }, { "Filter.1.Value.4", types[3] }, { 0 } };
        int r = aws_suggest_list(q, AWS_LIST_OFFERINGS, args, &all, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(types); i++)
                if (suggest_offers(&all, types[i])) {
                        suggest_put(out, "type", types[i]);
                        break;
                }
        return r;
}

/* A VPC with subnets, one of each zone. */
static int suggest_vpc(struct asking *q, struct suggestions *out, struct error *err)
{
        struct answers all = { 0 };
        int r = aws_suggest_list(q, AWS_LIST_SUBNETS, NULL, &all, err);
        const struct aws_subnet *v = all.v;
        const char *ids[ZONES_MOST], *zones[ZONES_MOST];
        size_t n = 0;
        for (size_t i = 0; i < all.n && n < ZONES_MOST; i++) {
                bool again = !v[i].vpc || !v[i].zone || !streq(v[i].vpc, v[0].vpc ? v[0].vpc : "");
                for (size_t k = 0; k < n; k++)
                        again |= v[i].zone && streq(zones[k], v[i].zone);
                if (again)
                        continue;
                zones[n] = v[i].zone;
                ids[n++] = v[i].id;
        }
        const char *subnets = suggest_words(q, ids, n);
        suggest_put(out, "vpc", subnets ? v[0].vpc : NULL);
        suggest_put(out, "subnets", subnets);
        return r;
}

/* Whether keys are at hand: a computer that is no instance would wait long for the metadata
 * service. */
static bool suggest_can_ask(void)
{
        struct aws_files files = { 0 };
        const struct source *source = NULL;
        struct error none CLEANUP(error_release) = { 0 };
        bool can = aws_files_load(&files, NULL, &none) == 0 &&
                   aws_source_find(&files, &source, &none) == 0 && source->kind != SOURCE_NONE &&
                   source->kind != SOURCE_INSTANCE && aws_region(&files);
        aws_files_release(&files);
        return can;
}

int aws_suggest(struct arena *a, struct suggestions *out, struct error *err)
{
        static int (*const parts[])(
                struct asking * q, struct suggestions * out, struct error * err) = { suggest_zones,
                aws_suggest_image, suggest_type, suggest_vpc };
        struct asking q CLEANUP(aws_asking_release) = { .arena = a };
        if (!suggest_can_ask())
                return 0;
        q.base = event_base_new();
        int r = cloud_open(q.base, NULL, &q.cloud, err);
        if (r == 0)
                r = aws_open(q.cloud, &(struct aws_options){ 0 }, &q.session, err);
        if (r == 0)
                suggest_put(out, "region", arena_strdup(a, aws_session_region(q.session)));
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
                r = parts[i](&q, out, err);
        return r;
}

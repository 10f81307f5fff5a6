/* Before the first creating call: whether types, zones and quotas allow what is missing, and what
 * it will cost. */
#include "provider/aws/impl.h"

/* ---- types and zones ---- */

static void types_put(struct aws_run *w, struct ask *ask, const char *key)
{
        const struct pool *p;
        size_t n = 0;
        for (size_t i = 0; (p = aws_pool(w, i)); i++) {
                bool again = false;
                for (size_t k = 0; k < i; k++)
                        again |= streq(aws_pool(w, k)->instance_type, p->instance_type);
                if (!again)
                        arg_putf(&ask->args, p->instance_type, "%s%zu", key, ++n);
        }
}

static const struct aws_type *type_row(const struct ask *types, const char *name)
{
        const struct aws_type *t = types->rows.v;
        for (size_t i = 0; i < types->rows.n; i++)
                if (streq(t[i].name, name))
                        return &t[i];
        return NULL;
}

static bool type_is_offered(const struct ask *offerings, const char *type, const char *zone)
{
        const struct aws_offering *o = offerings->rows.v;
        for (size_t i = 0; i < offerings->rows.n; i++)
                if (streq(o[i].type, type) && o[i].zone && streq(o[i].zone, zone))
                        return true;
        return false;
}

static void type_check(
        struct aws_run *w, const struct pool *p, const struct ask *types, struct survey *out)
{
        const struct aws_type *t = type_row(types, p->instance_type);
        const struct aws_image *image = image_of(w, p);
        if (!t)
                survey_problem(w->run, out, "see `aws ec2 describe-instance-types`",
                        "%s: AWS has no instance type %s in %s", aws_pool_words(w, p),
                        p->instance_type, w->config->region);
        else if (image && image->architecture && t->architectures.n &&
                 !strings_contain(&t->architectures, image->architecture))
                survey_problem(w->run, out, "use an AMI of the type's architecture",
                        "%s: the AMI %s is for %s, which instances of type %s do not run",
                        aws_pool_words(w, p), image->id, image->architecture, p->instance_type);
}

static void zone_check(
        struct aws_run *w, const struct pool *p, const struct ask *offerings, struct survey *out)
{
        const struct strings *zones = p->zones.n ? &p->zones : &w->config->zones;
        for (size_t i = 0; i < zones->n; i++)
                if (!type_is_offered(offerings, p->instance_type, zones->v[i]))
                        survey_problem(w->run, out,
                                "use another type, or list zones in the pool that have it",
                                "%s: %s is not offered in the zone %s", aws_pool_words(w, p),
                                p->instance_type, zones->v[i]);
}

static void subnet_check(struct aws_run *w, const struct pool *p, struct survey *out)
{
        const struct strings *zones = p->zones.n ? &p->zones : &w->config->zones;
        for (size_t i = 0; w->config->vpc.id && i < zones->n; i++) {
                char role[300];
                snprintf(role, sizeof(role), "%s/%s", p->public_ip ? "public" : "private",
                        zones->v[i]);
                if (!thing_of(w, KIND_SUBNET, role))
                        survey_problem(w->run, out,
                                "list a subnet of each zone in vpc.subnets, or fewer zones",
                                "%s: none of the subnets is in the zone %s", aws_pool_words(w, p),
                                zones->v[i]);
        }
}

/* ---- quotas ---- */

enum need {
        NEED_CPUS,
        NEED_SPOT_CPUS,
        NEED_VPCS,
        NEED_ADDRESSES,
        NEED_GATEWAYS,
        NEED_BALANCERS,
        NEED_INTERFACES,
        NEED_KINDS
};

static const struct {
        const char *service, *code, *what;
        enum aws_call list; /* what is used: all of the region */
        enum kind_id kind;
} quota_rows[NEED_KINDS] = {
        [NEED_CPUS] = { "ec2", "L-1216C47A", "vCPUs of on-demand instances", AWS_LIST_INSTANCES,
                KINDS },
        [NEED_SPOT_CPUS] = { "ec2", "L-34B43A08", "vCPUs of spot instances", AWS_LIST_INSTANCES,
                KINDS },
        [NEED_VPCS] = { "vpc", "L-F678F1CE", "VPCs", AWS_LIST_VPCS, KIND_VPC },
        [NEED_ADDRESSES] = { "ec2", "L-0263D0A3", "Elastic IP addresses", AWS_LIST_ADDRESSES,
                KIND_ADDRESS },
        [NEED_GATEWAYS] = { "vpc", "L-A4707A72", "internet gateways", AWS_LIST_GATEWAYS,
                KIND_GATEWAY },
        [NEED_BALANCERS] = { "elasticloadbalancing", "L-69A177A2", "network load balancers",
                AWS_LIST_BALANCERS, KIND_BALANCER },
        [NEED_INTERFACES] = { "vpc", "L-DF5E4CA3", "network interfaces", AWS_LIST_INTERFACES,
                KIND_INTERFACE },
};

/* Families that share the quota of standard instances: A, C, D, H, I, M, R, T and Z. */
static bool type_is_standard(const char *type)
{
        static const char *const others[] = { "inf", "trn", "dl", "hpc", "mac" };
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (has_prefix(type, others[i]))
                        return false;
        return strchr("acdhimrtz", *type) != NULL;
}

/* 0: AWS does not say it. */
static int64_t instance_cpus(const struct aws_instance *i)
{
        int64_t n = 0;
        return __builtin_mul_overflow(i->cores, i->threads ? i->threads : 1, &n) ? 0 : n;
}

/* Of a machine that is made anew with a larger type: the old one goes first. */
static int64_t more_cpus(const struct aws_run *w, const struct node *n, const struct aws_type *t)
{
        const struct aws_instance *i = node_instance(w, n);
        int64_t had = i ? instance_cpus(i) : 0;
        return had && outdated_text(w, n) && t->cpus > had ? t->cpus - had : 0;
}

static void needs_count(struct aws_run *w, const struct ask *types, int64_t needs[NEED_KINDS])
{
        const struct node *node;
        for (size_t i = 0; (node = aws_node(w, i)); i++) {
                const struct pool *p = node->pool;
                const struct aws_type *t = type_row(types, p->instance_type);
                if (machine_is_missing(w, node) && t && type_is_standard(t->name))
                        needs[p->spot ? NEED_SPOT_CPUS : NEED_CPUS] += t->cpus;
                else if (t && p->roles && type_is_standard(t->name))
                        needs[p->spot ? NEED_SPOT_CPUS : NEED_CPUS] += more_cpus(w, node, t);
        }
        for (size_t i = 0; i < w->count; i++)
                for (enum need k = NEED_VPCS; k < NEED_KINDS; k++)
                        needs[k] +=
                                w->things[i]->kind == quota_rows[k].kind && !w->things[i]->there;
}

static int64_t cpus_used(
        struct aws_run *w, const struct ask *ask, const struct ask *types, bool spot)
{
        struct answers all = instances_flat(w, &ask->rows);
        const struct aws_instance *v = all.v;
        int64_t sum = 0;
        for (size_t i = 0; i < all.n; i++) {
                const struct aws_type *t = v[i].type ? type_row(types, v[i].type) : NULL;
                bool runs = v[i].state &&
                            (streq(v[i].state, "running") || streq(v[i].state, "pending"));
                if (!runs || !v[i].type || !type_is_standard(v[i].type) ||
                        spot != (v[i].lifecycle && streq(v[i].lifecycle, "spot")))
                        continue;
                int64_t cpus = instance_cpus(&v[i]);
                sum += cpus ? cpus : t ? t->cpus : 1;
        }
        return sum;
}

static void quota_check(struct aws_run *w, enum need k, int64_t need, const struct ask *quota,
        int64_t used, struct survey *out)
{
        const json_t *value = answer_at(quota->answer, "Quota.Value");
        if (!json_is_number(value)) {
                survey_line(w->run, out, "quota of %s: unknown (%s)", quota_rows[k].what,
                        quota->fault.code ? quota->fault.code : "AWS does not say it");
                return;
        }
        double most = json_number_value(value);
        int64_t limit = most > INT32_MAX ? INT32_MAX : most < 0 ? -1 : (int64_t)most;
        if (limit >= 0 && used + need > limit)
                survey_problem(w->run, out,
                        "ask for a larger quota (`aws service-quotas request-service-quota-increase`), or remove what is not needed",
                        "quota: %" PRId64 " %s are needed, but only %" PRId64 " of %" PRId64
                        " are free in %s",
                        need, quota_rows[k].what, limit > used ? limit - used : 0, limit,
                        w->config->region);
}

static void quotas_check(struct aws_run *w, const struct ask *types, struct survey *out)
{
        int64_t needs[NEED_KINDS] = { 0 };
        size_t at[NEED_KINDS] = { 0 }, n = 0;
        struct ask *all = NULL;
        needs_count(w, types, needs);
        for (enum need k = 0; k < NEED_KINDS; k++) {
                if (!needs[k])
                        continue;
                at[k] = n;
                ask_new(w, &all, &n, AWS_GET_QUOTA)->args.body = json_pack("{s:s, s:s}",
                        "ServiceCode", quota_rows[k].service, "QuotaCode", quota_rows[k].code);
                ask_new(w, &all, &n, quota_rows[k].list);
        }
        asks_run(w, all, n);
        for (enum need k = 0; k < NEED_KINDS; k++) {
                const struct ask *quota = &all[at[k]], *used = &all[at[k] + 1];
                if (needs[k])
                        quota_check(w, k, needs[k], quota,
                                k <= NEED_SPOT_CPUS ? cpus_used(w, used, types, k == NEED_SPOT_CPUS)
                                                    : (int64_t)used->rows.n,
                                out);
        }
        asks_release(all, n);
}

/* ---- what is made ---- */

static void line_machines(struct aws_run *w, const struct pool *p, const struct aws_type *t,
        size_t n, const char *how, struct survey *out)
{
        survey_line(w->run, out,
                "machines of pool %s%s: %zu × %s%s (%" PRId64 " vCPUs, %" PRId64 " MiB)", p->name,
                how, n, p->instance_type, p->spot ? " spot" : "", t->cpus, t->memory);
}

static void line_bastion(struct aws_run *w, const struct aws_type *t, struct survey *out)
{
        if (t)
                survey_line(w->run, out, "bastion: %s (%" PRId64 " vCPUs, %" PRId64 " MiB)",
                        t->name, t->cpus, t->memory);
}

static void lines_machines(struct aws_run *w, const struct ask *types, struct survey *out)
{
        const struct cluster *c = w->run->cluster;
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *p = &c->pools.v[i];
                const struct aws_type *t = type_row(types, p->instance_type);
                size_t n = 0, anew = 0;
                for (size_t k = 0; k < c->node_count; k++) {
                        n += c->nodes[k].pool == p && machine_is_missing(w, &c->nodes[k]);
                        anew += c->nodes[k].pool == p && outdated_text(w, &c->nodes[k]);
                }
                if (n && t)
                        line_machines(w, p, t, n, "", out);
                if (anew && t)
                        line_machines(w, p, t, anew, ", made anew one after the other", out);
        }
        if (aws_bastion_node(w) && machine_is_missing(w, aws_bastion_node(w)))
                line_bastion(w, type_row(types, w->bastion.pool.instance_type), out);
}

/* Rules of a new group go without saying. */
static bool thing_is_said(const struct aws_run *w, const struct thing *t)
{
        if (t->kind == KIND_RULES || t->kind == KIND_RULES_GONE)
                return thing_of(w, KIND_GROUP, t->role)->there;
        return kinds[t->kind].tagged && t->kind != KIND_INSTANCE;
}

static void lines_things(struct aws_run *w, struct survey *out)
{
        for (enum kind_id k = 0; k < KINDS; k++) {
                size_t n = 0;
                for (size_t i = 0; i < w->count; i++)
                        n += w->things[i]->kind == k && !w->things[i]->there &&
                             thing_is_said(w, w->things[i]);
                if (n)
                        survey_line(w->run, out, "%s: %zu", kinds[k].word, n);
        }
}

static bool survey_missing(const struct aws_run *w)
{
        const struct node *n;
        for (size_t i = 0; (n = aws_node(w, i)); i++)
                if (machine_is_missing(w, n) || (n->pool->roles && may_be_outdated(w, n)))
                        return true;
        return false;
}

static int survey_machines(struct aws_run *w, struct survey *out, struct error *err)
{
        const struct pool *p;
        struct ask *all = NULL;
        size_t n = 0;
        int r = images_find(w, out, err);
        if (r < 0)
                return r;
        types_put(w, ask_new(w, &all, &n, AWS_LIST_TYPES), "InstanceType.");
        struct ask *offered = ask_new(w, &all, &n, AWS_LIST_OFFERINGS);
        arg_put(&offered->args, "LocationType", "availability-zone");
        arg_put(&offered->args, "Filter.1.Name", "instance-type");
        types_put(w, offered, "Filter.1.Value.");
        asks_run(w, all, n);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (all[i].fault.kind && all[i].fault.kind != FAULT_WRONG)
                        r = fault_error(&all[i].fault, err);
        for (size_t i = 0; r == 0 && (p = aws_pool(w, i)); i++) {
                type_check(w, p, &all[0], out);
                zone_check(w, p, &all[1], out);
                subnet_check(w, p, out);
        }
        if (r == 0) {
                lines_machines(w, &all[0], out);
                quotas_check(w, &all[0], out);
        }
        asks_release(all, n);
        return r;
}

static int other_among(const struct aws_run *w, const struct answers *groups, struct error *err)
{
        const struct aws_group *g = groups->v;
        for (size_t i = 0; i < groups->n; i++) {
                const char *mark = tag_of(&g[i].tags, TAG_MARK);
                if (!*mark || (w->mark && streq(mark, w->mark)) ||
                        !streq(tag_of(&g[i].tags, TAG_CLUSTER), w->run->cluster->name))
                        continue;
                error_set(err, EEXIST, EXIT_STATE,
                        "another cluster is called %s in %s: security group %s has the mark %s",
                        w->run->cluster->name, w->config->region, g[i].id, mark);
                return error_hint(err,
                        "give its state directory with --state, choose another metadata.name, or delete it with 'slipway leaks --prefix %s --delete'",
                        has_prefix(mark, AWS_MARK) ? mark + strlen(AWS_MARK) : mark);
        }
        return 0;
}

/* Another operator's cluster of the same name would be extended by this one, or the reverse. */
static int survey_other(struct aws_run *w, struct error *err)
{
        struct ask *all = NULL;
        size_t n = 0;
        if (w->mark)
                return other_among(w, &w->lists[LIST_GROUPS].v, err);
        list_by_name(w, &ask_new(w, &all, &n, AWS_LIST_GROUPS)->args);
        asks_run(w, all, n);
        int r = all[0].fault.kind ? fault_error(&all[0].fault, err)
                                  : other_among(w, &all[0].rows, err);
        asks_release(all, n);
        return r;
}

int survey_check(struct aws_run *w, struct machine *machines, struct survey *out, struct error *err)
{
        const struct provider_aws *c = w->config;
        int r = survey_other(w, err);
        if (w->zone && !dns_zone_id(w))
                survey_problem(w->run, out, "create it, or set dns.private to the kind it has",
                        "Route 53 has no %s hosted zone %s", c->dns.private ? "private" : "public",
                        w->zone);
        if (c->vpc.id && !list_row(w, LIST_VPCS, 0))
                survey_problem(w->run, out, "see `aws ec2 describe-vpcs`",
                        "there is no VPC %s in %s", c->vpc.id, c->region);
        if (r == 0 && survey_missing(w))
                r = survey_machines(w, out, err);
        for (size_t i = 0; r == 0 && i < w->run->cluster->node_count; i++)
                machines[i].outdated = outdated_text(w, &w->run->cluster->nodes[i]);
        lines_things(w, out);
        if (balancer_unguarded(w))
                survey_line(w->run, out,
                        "load balancer %s was made without a security group: access.api has no effect on it",
                        balancer_unguarded(w)->name);
        for (size_t i = 0; i < w->count; i++)
                out->changes |=
                        !w->things[i]->there && (w->things[i]->kind != KIND_INSTANCE ||
                                                        w->things[i]->node == &w->bastion.node);
        survey_bastion(w, out);
        return r;
}

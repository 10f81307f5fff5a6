/* The network load balancer in front of the API servers, with their addresses as targets. */
#include "provider/aws/kinds.h"

/* At most 32 characters, whatever the cluster is called. */
const char *balancer_name(const struct aws_run *w) { return w->mark; }

bool api_is_open(const struct aws_run *w)
{
        const struct cidrs *api = &w->config->access.api;
        for (size_t i = 0; i < api->n; i++)
                if (api->v[i].ip.family == 4 && !api->v[i].bits)
                        return true;
        return false;
}

const struct aws_balancer *balancer_unguarded(const struct aws_run *w)
{
        const struct aws_balancer *b = list_row(w, LIST_BALANCERS, 0);
        return b && !b->groups.n && !api_is_open(w) ? b : NULL;
}

/* A load balancer that has no security group cannot get one: AWS refuses. A group that is there has
 * rules as long as it is there. */
bool balancer_group_wanted(const struct aws_run *w)
{
        const struct aws_balancer *b = list_row(w, LIST_BALANCERS, 0);
        return index_get(&w->lists[LIST_GROUPS].by_role, AWS_BALANCE) ||
               (w->config->load_balancer != AWS_LB_NONE && (!b || b->groups.n));
}

/* An internet-facing one is reached through the internet gateway: from the addresses of the NAT
 * gateways and the bastion, and from those of nodes that use the endpoint themselves. */
bool balancer_client(const struct aws_run *w, const struct thing *t)
{
        return t->kind == KIND_ADDRESS && w->config->load_balancer == AWS_LB_NLB &&
               !api_is_open(w) &&
               (!t->node || t->node == &w->bastion.node || !w->run->cluster->api.local_balancer);
}

void target_group_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "Name", balancer_name(w));
        arg_put(a, "Protocol", "TCP");
        arg_number(a, "Port", w->run->cluster->api.port);
        arg_put(a, "VpcId", vpc_id(w));
        arg_put(a, "TargetType", "ip");
        arg_put(a, "HealthCheckProtocol", "HTTPS");
        arg_put(a, "HealthCheckPath", "/readyz");
        arg_put(a, "HealthCheckIntervalSeconds", "10");
        arg_put(a, "HealthyThresholdCount", "2");
        arg_put(a, "UnhealthyThresholdCount", "2");
}

/* With preserved addresses a control-plane node could not reach itself through the balancer. */
void target_settings_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "TargetGroupArn", t->needs[0]->id);
        arg_put(a, "Attributes.member.1.Key", "preserve_client_ip.enabled");
        arg_put(a, "Attributes.member.1.Value", "false");
        arg_put(a, "Attributes.member.2.Key", "deregistration_delay.timeout_seconds");
        arg_put(a, "Attributes.member.2.Value", "30");
}

void balancer_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        size_t n = 0;
        arg_put(a, "Name", balancer_name(w));
        arg_put(a, "Type", "network");
        arg_put(a, "Scheme",
                w->config->load_balancer == AWS_LB_NLB ? "internet-facing" : "internal");
        for (size_t i = 0; i < t->need_count; i++)
                if (t->needs[i]->kind == KIND_SUBNET)
                        arg_putf(a, t->needs[i]->id, "Subnets.member.%zu", ++n);
                else if (t->needs[i]->kind == KIND_GROUP)
                        arg_put(a, "SecurityGroups.member.1", t->needs[i]->id);
}

bool first_found(struct aws_run *w, struct thing *t)
{
        const void *row = list_row(w, kinds[t->kind].list, 0);
        if (!row)
                return false;
        t->is = row;
        t->id = *(const char *const *)row;
        return true;
}

void listener_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "LoadBalancerArn", t->needs[0]->id);
        arg_put(a, "Protocol", "TCP");
        arg_number(a, "Port", w->run->cluster->api.port);
        arg_put(a, "DefaultActions.member.1.Type", "forward");
        arg_put(a, "DefaultActions.member.1.TargetGroupArn", t->needs[1]->id);
}

/* A target group names the load balancers whose listeners send to it. */
bool listener_found(struct aws_run *w, struct thing *t)
{
        const struct aws_target_group *g = list_row(w, LIST_TARGET_GROUPS, 0);
        const char *balancer = t->needs[0]->id;
        return g && balancer && strings_contain(&g->balancers, balancer);
}

bool target_is_there(const struct aws_run *w, const char *address)
{
        const struct aws_health *h;
        for (size_t i = 0; (h = list_row(w, LIST_HEALTH, i)); i++)
                if (streq(h->target, address) && !(h->state && streq(h->state, "draining")))
                        return true;
        return false;
}

static size_t targets_missing(const struct aws_run *w, const struct thing *t, struct args *a)
{
        size_t n = 0;
        for (size_t i = 0; i < t->need_count; i++) {
                const struct aws_interface *e =
                        t->needs[i]->kind == KIND_INTERFACE ? t->needs[i]->is : NULL;
                if (t->needs[i]->kind != KIND_INTERFACE ||
                        (e && e->address && target_is_there(w, e->address)))
                        continue;
                n++;
                if (a && e)
                        arg_putf(a, e->address, "Targets.member.%zu.Id", n);
        }
        return n;
}

void targets_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "TargetGroupArn", t->needs[0]->id);
        targets_missing(w, t, a);
}

bool targets_found(struct aws_run *w, struct thing *t) { return !targets_missing(w, t, NULL); }

/* The network load balancer in front of the API servers, with their addresses as targets. */
#include "provider/aws/kinds.h"

/* At most 32 characters, whatever the cluster is called. */
const char *balancer_name(const struct aws_run *w) { return w->mark; }

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

/* The VPC: subnets, gateways and routes. */
#include "provider/aws/kinds.h"

#define ANYWHERE "0.0.0.0/0"

const char *vpc_id(const struct aws_run *w)
{
        const struct thing *t = thing_of(w, KIND_VPC, "vpc");
        return t ? t->id : NULL;
}

void vpc_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        char text[IP_TEXT + 4];
        arg_put(a, "CidrBlock", arena_strdup(a->arena, cidr_format(&w->config->vpc.cidr, text)));
}

/* Load balancers and private zones need them. */
void vpc_names_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "VpcId", vpc_id(w));
        arg_put(a, "EnableDnsHostnames.Value", "true");
}

void gateway_on_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "VpcId", vpc_id(w));
        arg_put(a, "InternetGatewayId", thing_of(w, KIND_GATEWAY, "gateway")->id);
}

bool gateway_on_found(struct aws_run *w, struct thing *t)
{
        const struct aws_gateway *g = index_get(&w->lists[LIST_GATEWAYS].by_role, "gateway");
        return g && g->vpc;
}

void subnet_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "VpcId", vpc_id(w));
        arg_put(a, "CidrBlock", t->with);
        arg_put(a, "AvailabilityZone", t->zone);
}

void table_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "VpcId", vpc_id(w));
}

/* The last need of a route is where it leads to. */
static const struct thing *route_target(const struct thing *t)
{
        return t->needs[t->need_count - 1];
}

static const struct aws_route *route_now(struct aws_run *w, const struct thing *t)
{
        const struct aws_route_table *table = index_get(&w->lists[LIST_TABLES].by_role, t->role);
        const struct aws_route *r = table ? table->routes.v : NULL;
        for (size_t i = 0; table && i < table->routes.n; i++)
                if (r[i].cidr && streq(r[i].cidr, ANYWHERE))
                        return &r[i];
        return NULL;
}

void route_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        const struct thing *to = route_target(t);
        arg_put(a, "RouteTableId", thing_of(w, KIND_TABLE, t->role)->id);
        arg_put(a, "DestinationCidrBlock", ANYWHERE);
        if (to->kind == KIND_NAT)
                arg_put(a, "NatGatewayId", to->id);
        else
                arg_put(a, "GatewayId", thing_of(w, KIND_GATEWAY, "gateway")->id);
}

/* A route to a gateway that was deleted is replaced (job.c asks whether there is one). */
bool route_found(struct aws_run *w, struct thing *t)
{
        const struct thing *to = route_target(t);
        const struct aws_route *r = route_now(w, t);
        const char *leads = !r ? NULL : to->kind == KIND_NAT ? r->nat : r->gateway;
        const char *wanted =
                to->kind == KIND_NAT ? to->id : thing_of(w, KIND_GATEWAY, "gateway")->id;
        t->generation = r != NULL;
        return leads && wanted && streq(leads, wanted);
}

static const struct thing *table_of(struct aws_run *w, const struct thing *t)
{
        return t->needs[0];
}

void table_on_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "RouteTableId", table_of(w, t)->id);
        arg_put(a, "SubnetId", t->needs[1]->id);
}

bool table_on_found(struct aws_run *w, struct thing *t)
{
        const struct aws_route_table *table =
                index_get(&w->lists[LIST_TABLES].by_role, table_of(w, t)->role);
        const struct aws_association *on = table ? table->associations.v : NULL;
        const char *subnet = t->needs[1]->id;
        for (size_t i = 0; table && subnet && i < table->associations.n; i++)
                if (on[i].subnet && streq(on[i].subnet, subnet))
                        return true;
        return false;
}

void address_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "Domain", "vpc");
}

void nat_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "AllocationId", t->needs[0]->id);
        arg_put(a, "SubnetId", t->needs[1]->id);
}

bool nat_ready(const struct thing *t)
{
        const struct aws_nat *n = t->is;
        return n && n->state && streq(n->state, "available");
}

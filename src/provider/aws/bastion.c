/* The bastion that slipway makes: a machine like a node's, in a public subnet, with an Elastic IP
 * address and a security group of its own. Its things have the role of a node called "bastion", a
 * name that no node has; the group has the role "bastion". */
#include "provider/aws/ops.h"

void aws_bastion_begin(struct aws_run *w)
{
        struct bastion_machine *b = &w->bastion;
        bastion_begin(b, w->run, &w->config->bastion, AWS_BASTION);
        if (w->config->zones.n)
                b->pool.zones = (struct strings){ 1, w->config->zones.v };
}

const struct node *aws_bastion_node(const struct aws_run *w)
{
        return w->bastion.wanted ? &w->bastion.node : NULL;
}

const struct machine *aws_bastion(struct provider_run *run)
{
        const struct aws_run *w = run->own;
        return w && w->bastion.wanted ? &w->bastion.machine : NULL;
}

const struct pool *aws_pool(const struct aws_run *w, size_t i)
{
        const struct pools *p = &w->run->cluster->pools;
        return i < p->n ? &p->v[i] : i == p->n && w->bastion.wanted ? &w->bastion.pool : NULL;
}

const struct node *aws_node(const struct aws_run *w, size_t i)
{
        const struct cluster *c = w->run->cluster;
        return i < c->node_count ? &c->nodes[i] : i == c->node_count ? aws_bastion_node(w) : NULL;
}

const char *aws_pool_words(const struct aws_run *w, const struct pool *p)
{
        return p == &w->bastion.pool ? p->name : arena_printf(w->run->arena, "pool %s", p->name);
}

/* A group of one that the file does not want. */
const struct aws_group *bastion_group_left(struct aws_run *w)
{
        return w->bastion.wanted ? NULL : index_get(&w->lists[LIST_GROUPS].by_role, AWS_BASTION);
}

bool bastion_is_left(struct aws_run *w)
{
        static const enum list_id lists[] = { LIST_INSTANCES, LIST_INTERFACES, LIST_ADDRESSES };
        for (size_t i = 0; !w->bastion.wanted && i < ARRAY_SIZE(lists); i++) {
                const void *row = index_get(&w->lists[lists[i]].by_role, "node/" AWS_BASTION);
                if (row && !(lists[i] == LIST_INSTANCES && instance_is_dead(row)))
                        return true;
        }
        return bastion_group_left(w) != NULL;
}

/* Its address of today had another key, whatever had it before. */
int bastion_forget(struct aws_run *w, struct error *err)
{
        const struct thing *t = node_thing(w, KIND_ADDRESS, &w->bastion.node);
        const struct aws_address *e = t ? t->is : NULL;
        return login_forget(w->run, e ? e->address : NULL, err);
}

void survey_bastion(struct aws_run *w, struct survey *out)
{
        const struct machine *m = &w->bastion.machine;
        if (bastion_is_left(w))
                survey_line(w->run, out, "delete the bastion");
        else if (w->bastion.wanted && m->state == MACHINE_STOPPED)
                survey_line(w->run, out, "start the bastion");
        else
                return;
        out->changes = true;
}

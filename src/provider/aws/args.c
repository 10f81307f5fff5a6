/* Parameters of calls, names and tags. */
#include "provider/aws/impl.h"

void arg_put(struct args *a, const char *key, const char *value)
{
        if (!value)
                return;
        if (a->n + 2 > a->cap) {
                size_t cap = a->cap ? 2 * a->cap : 32;
                struct pair *v = arena_array(a->arena, struct pair, cap);
                if (a->n)
                        memcpy(v, a->v, a->n * sizeof(*v));
                a->v = v;
                a->cap = cap;
        }
        a->v[a->n++] = (struct pair){ key, value };
        a->v[a->n] = (struct pair){ 0 };
}

void arg_putf(struct args *a, const char *value, const char *key, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, key);
        str_vaddf(&s, key, ap);
        va_end(ap);
        arg_put(a, arena_strdup(a->arena, str_text(&s)), value);
}

void arg_number(struct args *a, const char *key, int64_t value)
{
        arg_put(a, key, arena_printf(a->arena, "%" PRId64, value));
}

struct call_args arg_call(struct args *a, const char *resource)
{
        return (struct call_args){
                .args = a->v, .text = a->text, .body = a->body, .resource = resource
        };
}

const char *tag_of(const struct pairs *tags, const char *key)
{
        for (size_t i = 0; tags && i < tags->n; i++)
                if (streq(tags->v[i].key, key))
                        return tags->v[i].value;
        return "";
}

/* What slipway made has its mark too, and goes by that. */
bool tags_of_service(const struct aws_run *w, const struct pairs *tags)
{
        return w->full && !*tag_of(tags, TAG_MARK) &&
               (streq(tag_of(tags, w->owner), "owned") ||
                       streq(tag_of(tags, TAG_BALANCERS), w->full));
}

/* ---- tags of what is made ---- */

static bool tag_kubernetes(const struct thing *t)
{
        return (t->kind == KIND_INSTANCE && t->node->pool->roles) || t->kind == KIND_SUBNET ||
               t->kind == KIND_VPC || (t->kind == KIND_GROUP && streq(t->role, "nodes"));
}

static void tag_put(
        struct args *a, const char *prefix, size_t *n, const char *key, const char *value)
{
        arg_putf(a, key, "%s%zu.Key", prefix, ++*n);
        arg_putf(a, value, "%s%zu.Value", prefix, *n);
}

/* Only one group may have Kubernetes' tag: the cloud controller takes the group that has it. */
void tags_put(struct aws_run *w, const struct thing *t, const char *prefix, struct args *a)
{
        const struct pairs *own = &w->config->tags;
        size_t n = 0;
        tag_put(a, prefix, &n, TAG_MARK, w->mark);
        tag_put(a, prefix, &n, TAG_CLUSTER, w->run->cluster->name);
        tag_put(a, prefix, &n, TAG_ROLE, t->role);
        tag_put(a, prefix, &n, "Name", thing_name(w, t));
        if (tag_kubernetes(t))
                tag_put(a, prefix, &n, w->owner, "owned");
        if (t->kind == KIND_SUBNET)
                tag_put(a, prefix, &n,
                        has_prefix(t->role, "public/") ? "kubernetes.io/role/elb"
                                                       : "kubernetes.io/role/internal-elb",
                        "1");
        if (t->kind == KIND_INSTANCE) {
                tag_put(a, prefix, &n, TAG_IMAGE, image_text(w, t->node->pool));
                tag_put(a, prefix, &n, TAG_ROOT, root_text(w, t->node->pool));
        }
        for (size_t i = 0; i < own->n; i++)
                tag_put(a, prefix, &n, own->v[i].key, own->v[i].value);
}

const char *thing_name(struct aws_run *w, const struct thing *t)
{
        char *role = arena_strdup(&w->arena, has_prefix(t->role, "node/") ? t->role + 5 : t->role);
        for (char *p = role; *p; p++)
                if (*p == '/')
                        *p = '-';
        return arena_printf(&w->arena, "%s-%s", w->full, role);
}

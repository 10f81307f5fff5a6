/* The proof by listing that nothing is left. */
#include "provider/aws/impl.h"

/* What the lists by mark would show, by its id: implementations of the API differ in the resource
 * type of a tag. */
static bool tag_is_of_a_list(const char *id)
{
        static const char *const prefixes[] = { "i-", "eni-", "vol-", "eipalloc-", "nat-", "sg-",
                "subnet-", "rtb-", "igw-", "vpc-" };
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (has_prefix(id, prefixes[i]))
                        return true;
        return false;
}

static bool proof_is_listed(const struct aws_run *w, const char *id)
{
        for (enum list_id l = 1; l < LISTS; l++)
                if (list_has(w, l, id))
                        return true;
        return false;
}

/* Tags of what ended stay for a while, an instance's for an hour: the lists by mark are newer. */
static bool tag_is_stale(const struct aws_run *w, const struct aws_tag *t)
{
        const struct aws_instance *i;
        for (size_t k = 0; (i = list_row(w, LIST_INSTANCES, k)); k++)
                if (streq(i->id, t->resource))
                        return instance_is_dead(i);
        return tag_is_of_a_list(t->resource) && !proof_is_listed(w, t->resource);
}

static void ask_tags(
        struct aws_run *w, struct ask **all, size_t *n, const char *key, const char *value)
{
        struct ask *a = ask_new(w, all, n, AWS_LIST_TAGS);
        arg_put(&a->args, "Filter.1.Name", "key");
        arg_put(&a->args, "Filter.1.Value.1", key);
        arg_put(&a->args, "Filter.2.Name", "value");
        arg_put(&a->args, "Filter.2.Value.1", value);
}

static void proof_names(struct aws_run *w, struct str *left)
{
        static const enum list_id named[] = { LIST_BALANCERS, LIST_TARGET_GROUPS, LIST_PROFILES,
                LIST_ROLES, LIST_SERVICE_BALANCERS, LIST_SERVICE_CLASSICS, LIST_SERVICE_TARGETS };
        for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
                const void *row;
                for (size_t k = 0; (row = list_row(w, named[i], k)); k++)
                        str_addf(left, "%s%s", left->len ? ", " : "", *(const char *const *)row);
        }
}

/* What has our mark too is judged by that. */
static bool tags_name(const struct ask *ask, const char *id)
{
        const struct aws_tag *t = ask->rows.v;
        for (size_t i = 0; i < ask->rows.n; i++)
                if (streq(t[i].resource, id) && streq(t[i].key, TAG_MARK))
                        return true;
        return false;
}

/* Of the controllers: groups and volumes have lists of their own, which are newer. */
static bool tag_is_left(const struct aws_run *w, const struct ask *marks, const struct aws_tag *t)
{
        return streq(t->key, w->owner) && t->value && streq(t->value, "owned") &&
               !has_prefix(t->resource, "vol-") && !tags_name(marks, t->resource) &&
               (!has_prefix(t->resource, "sg-") || list_has(w, LIST_SERVICE_GROUPS, t->resource));
}

static bool tag_is_ours(const struct aws_run *w, const struct aws_tag *t)
{
        return streq(t->key, TAG_MARK) && t->value && streq(t->value, w->mark) &&
               !tag_is_stale(w, t);
}

/* Volumes have data: which of them a claim's policy keeps, only the API knew. */
static void proof_keep(struct aws_run *w, const struct ask *volumes)
{
        struct str ids CLEANUP(str_release) = { 0 };
        const struct aws_volume *v = volumes->rows.v;
        size_t n = 0;
        for (size_t i = 0; i < volumes->rows.n; i++)
                if (tags_of_service(w, &v[i].tags) && !row_is_gone(LIST_VOLUMES, &v[i]))
                        str_addf(&ids, "%s%s (%" PRId64 " GiB)", n++ ? ", " : "", v[i].id,
                                v[i].size);
        if (n)
                strings_add(w->run->arena, &w->run->kept,
                        arena_printf(w->run->arena,
                                "%zu volume%s of claims %s left in %s, with all data: %s", n,
                                n == 1 ? "" : "s", n == 1 ? "is" : "are", w->config->region,
                                str_text(&ids)));
}

static void ask_volumes(struct aws_run *w, struct ask **all, size_t *n)
{
        struct ask *a = ask_new(w, all, n, AWS_LIST_VOLUMES);
        arg_put(&a->args, "Filter.1.Name", "tag-key");
        arg_put(&a->args, "Filter.1.Value.1", w->owner);
}

enum { PROOF_MARKS, PROOF_OWNED, PROOF_VOLUMES };

static void proof_tags(struct aws_run *w, const struct ask *all, struct str *left)
{
        for (size_t i = PROOF_MARKS; i <= PROOF_OWNED; i++) {
                const struct aws_tag *t = all[i].rows.v;
                for (size_t k = 0; k < all[i].rows.n; k++)
                        if (i == PROOF_OWNED ? tag_is_left(w, &all[PROOF_MARKS], &t[k])
                                             : tag_is_ours(w, &t[k]))
                                str_addf(left, "%s%s", left->len ? ", " : "", t[k].resource);
        }
}

/* By the mark, and by the tag that Kubernetes' controllers put on what they make. */
int removal_proof(struct aws_run *w, struct error *err)
{
        struct str left CLEANUP(str_release) = { 0 };
        struct ask *all = NULL;
        size_t n = 0;
        int r = 0;
        ask_tags(w, &all, &n, TAG_MARK, w->mark);
        ask_tags(w, &all, &n, w->owner, "owned");
        ask_volumes(w, &all, &n);
        asks_run(w, all, n);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (all[i].fault.kind)
                        r = fault_error(&all[i].fault, err);
        if (r == 0) {
                proof_tags(w, all, &left);
                proof_keep(w, &all[PROOF_VOLUMES]);
        }
        proof_names(w, &left);
        asks_release(all, n);
        if (r == 0 && left.len) {
                r = error_set(err, EBUSY, EXIT_STEP,
                        "aws: resources of the cluster are left in %s: %s", w->config->region,
                        str_text(&left));
                error_hint(err, "run the command again, or remove them by hand");
        }
        return r;
}

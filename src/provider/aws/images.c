/* The AMIs of the pools: by id, by name and owner, or from a parameter. */
#include "provider/aws/impl.h"

static const struct aws_image **image_place(const struct aws_run *w, const struct pool *p)
{
        const struct pools *all = &w->run->cluster->pools;
        return &w->images[p == &w->bastion.pool ? all->n : (size_t)(p - all->v)];
}

const struct aws_image *image_of(const struct aws_run *w, const struct pool *p)
{
        return w->images ? *image_place(w, p) : NULL;
}

bool machine_is_missing(const struct aws_run *w, const struct node *n)
{
        return !node_thing(w, KIND_INSTANCE, n)->there;
}

static bool pool_is_missing(const struct aws_run *w, const struct pool *p)
{
        const struct node *n;
        for (size_t i = 0; (n = aws_node(w, i)); i++)
                if (n->pool == p &&
                        (machine_is_missing(w, n) || (p->roles && may_be_outdated(w, n))))
                        return true;
        return false;
}

/* A pool's own image is an id, or a name of the provider's owner. */
static struct aws_ami image_choice(const struct aws_run *w, const struct pool *p)
{
        struct aws_ami a = w->config->image;
        if (p->image)
                a = (struct aws_ami){ .id = has_prefix(p->image, "ami-") ? p->image : NULL,
                        .name = has_prefix(p->image, "ami-") ? NULL : p->image,
                        .owner = a.owner ? a.owner : "self" };
        return a;
}

static const char *image_word(const struct aws_ami *a)
{
        return a->id ? a->id : a->name ? a->name : a->ssm ? a->ssm : "(none)";
}

/* An id comes first, as in image_ask. */
const char *image_text(const struct aws_run *w, const struct pool *p)
{
        struct aws_ami a = image_choice(w, p);
        /* a tag has at most 256 characters */
        return a.name && !a.id ? arena_printf(w->run->arena, "%.200s of %.50s", a.name,
                                         a.owner ? a.owner : "")
                               : arena_printf(w->run->arena, "%.250s", image_word(&a));
}

/* Reads the parameter and takes the id in it. */
static int image_parameter(struct aws_run *w, struct aws_ami *a, struct survey *out)
{
        struct ask *all = NULL;
        size_t n = 0;
        ask_new(w, &all, &n, AWS_GET_PARAMETER)->args.body = json_pack("{s:s}", "Name", a->ssm);
        asks_run(w, all, n);
        const char *id = json_string_value(answer_at(all[0].answer, "Parameter.Value"));
        if (id && has_prefix(id, "ami-"))
                a->id = arena_strdup(&w->arena, id);
        else
                survey_problem(w->run, out, "see `aws ssm get-parameters-by-path`",
                        "the parameter %s has no id of an AMI%s%s", a->ssm,
                        all[0].fault.cause ? ": " : "",
                        all[0].fault.cause ? all[0].fault.cause : "");
        asks_release(all, n);
        return a->id ? 0 : -ENOENT;
}

static struct ask *image_ask(
        struct aws_run *w, struct ask **all, size_t *n, const struct aws_ami *a)
{
        struct ask *ask = ask_new(w, all, n, AWS_LIST_IMAGES);
        if (a->id) {
                arg_put(&ask->args, "ImageId.1", a->id);
                return ask;
        }
        arg_put(&ask->args, "Owner.1", a->owner);
        arg_put(&ask->args, "Filter.1.Name", "name");
        arg_put(&ask->args, "Filter.1.Value.1", a->name);
        return ask;
}

static const struct aws_image *image_newest(const struct ask *ask)
{
        const struct aws_image *v = ask->rows.v, *best = NULL;
        for (size_t i = 0; i < ask->rows.n; i++) {
                const char *created = v[i].created ? v[i].created : "";
                if (v[i].state && !streq(v[i].state, "available"))
                        continue;
                if (!best || strcmp(created, best->created ? best->created : "") > 0)
                        best = &v[i];
        }
        return best;
}

static int image_find(
        struct aws_run *w, const struct pool *p, struct survey *out, struct error *err)
{
        struct aws_ami a = image_choice(w, p);
        struct ask *all = NULL;
        size_t n = 0;
        if (!a.id && !a.name && a.ssm && image_parameter(w, &a, out) < 0)
                return 0;
        image_ask(w, &all, &n, &a);
        asks_run(w, all, n);
        const struct aws_image *found = image_newest(&all[0]);
        int r = 0;
        if (all[0].fault.kind && all[0].fault.kind != FAULT_ABSENT &&
                all[0].fault.kind != FAULT_WRONG)
                r = fault_error(&all[0].fault, err);
        else if (!found)
                survey_problem(w->run, out,
                        a.id ? "see `aws ec2 describe-images`"
                             : "an AMI is found by its exact name (with * for any text) and its owner",
                        "%s: there is no available AMI %s%s%s in %s", aws_pool_words(w, p),
                        image_word(&a), a.name ? " of owner " : "", a.name ? a.owner : "",
                        w->config->region);
        *image_place(w, p) = found;
        asks_release(all, n);
        return r;
}

int images_find(struct aws_run *w, struct survey *out, struct error *err)
{
        const struct pool *p;
        int r = 0;
        if (!w->images)
                w->images = arena_array(
                        &w->arena, const struct aws_image *, w->run->cluster->pools.n + 1);
        for (size_t i = 0; r == 0 && (p = aws_pool(w, i)); i++) {
                struct aws_ami a = image_choice(w, p);
                if (w->images[i] || !pool_is_missing(w, p))
                        continue;
                for (size_t k = 0; k < i && !w->images[i]; k++) {
                        struct aws_ami b = image_choice(w, aws_pool(w, k));
                        if (streq(image_word(&a), image_word(&b)))
                                w->images[i] = w->images[k];
                }
                if (!w->images[i])
                        r = image_find(w, p, out, err);
        }
        return r;
}

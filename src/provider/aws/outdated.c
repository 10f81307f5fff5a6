/* Instances that were made from another type, AMI or system disk than the file asks for now.
 *
 * The type is in AWS's list. Of the AMI and the disk, a tag has what the file said when the
 * instance was made. As long as it still says the same, the instance is as wanted, also if an AMI
 * of that name is another one today: publishing an AMI must not replace a cluster. If the file says
 * something else, the id of the AMI decides. */
#include "provider/aws/impl.h"

#define GIB      ((int64_t)1 << 30)
#define TEXT_MAX 200 /* a tag has at most 256 characters */

/* With the defaults, so that writing them down changes nothing. */
const char *root_text(const struct aws_run *w, const struct pool *p)
{
        const struct root_volume *v = &p->root_volume;
        const char *size =
                v->size ? arena_printf(w->run->arena, "%" PRId64 " GiB", (v->size + GIB - 1) / GIB)
                        : "as the AMI";
        return arena_printf(w->run->arena, "%s, %s%s%s%.*s%s%.0ld", size, v->type ? v->type : "gp3",
                v->encrypted ? ", encrypted" : "", v->kms_key ? " with " : "", TEXT_MAX,
                v->kms_key ? v->kms_key : "", v->iops ? ", IOPS " : "", v->iops);
}

const struct aws_instance *node_instance(const struct aws_run *w, const struct node *n)
{
        const struct thing *t = node_thing(w, KIND_INSTANCE, n);
        return t && t->there ? t->is : NULL;
}

static bool same_type(const struct aws_instance *i, const struct pool *p)
{
        return !i->type || !p->instance_type || streq(i->type, p->instance_type);
}

/* Without the tag only an id can be compared. */
static bool same_image(const struct aws_run *w, const struct aws_instance *i, const struct pool *p)
{
        const char *from = tag_of(&i->tags, TAG_IMAGE), *wanted = image_text(w, p);
        if (!i->image || streq(i->image, wanted))
                return true;
        return *from ? streq(from, wanted) : !has_prefix(wanted, "ami-");
}

static bool same_root(const struct aws_run *w, const struct aws_instance *i, const struct pool *p)
{
        const char *from = tag_of(&i->tags, TAG_ROOT);
        return !*from || streq(from, root_text(w, p));
}

bool may_be_outdated(const struct aws_run *w, const struct node *n)
{
        const struct aws_instance *i = node_instance(w, n);
        return i &&
               (!same_type(i, n->pool) || !same_image(w, i, n->pool) || !same_root(w, i, n->pool));
}

const char *outdated_text(const struct aws_run *w, const struct node *n)
{
        const struct aws_instance *i = node_instance(w, n);
        const struct aws_image *image = image_of(w, n->pool);
        struct str out CLEANUP(str_release) = { 0 };
        if (!i || !image || !may_be_outdated(w, n))
                return NULL;
        if (!same_type(i, n->pool))
                str_addf(&out, "type %s instead of %s", n->pool->instance_type, i->type);
        if (!same_image(w, i, n->pool) && !streq(image->id, i->image)) {
                const char *from = tag_of(&i->tags, TAG_IMAGE);
                str_addf(&out, "%sAMI %s instead of %s", out.len ? ", " : "",
                        image_text(w, n->pool), *from ? from : i->image);
        }
        if (!same_root(w, i, n->pool))
                str_addf(&out, "%ssystem disk of %s instead of %s", out.len ? ", " : "",
                        root_text(w, n->pool), tag_of(&i->tags, TAG_ROOT));
        return out.len ? arena_strdup(w->run->arena, str_text(&out)) : NULL;
}

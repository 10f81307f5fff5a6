/* Which objects of the cloud are this cluster's. The lists are asked for by the mark, but a service
 * that does not know a filter ignores it and answers with everything: so each object shows its mark
 * itself before it counts as ours, and before anything is deleted. */
#include "provider/openstack/openstack.h"

bool os_marked(const struct os *os, const char *description)
{
        return os->mark && description && streq(description, os->mark);
}

static const char *mark_in(const struct strings *tags)
{
        for (size_t i = 0; i < tags->n; i++)
                if (has_prefix(tags->v[i], OS_MARK))
                        return tags->v[i];
        return NULL;
}

/* Neutron's objects and credentials have the mark as their description, those of nova and octavia
 * as a tag, those of cinder in their metadata, and images as a property: glance stores tags after
 * the image, so that one could be left without. Nova and cinder copy an image's properties to
 * images that users make from machines and volumes: those have another id than they were made with,
 * and are nobody's of ours. */
const char *os_mark_of(enum os_call call, const void *object)
{
        const struct call_row *row = &os_calls[call];
        const struct os_image *image = streq(row->service, "image") ? object : NULL;
        bool described = streq(row->service, "network") || streq(row->service, "identity");
        const char *wanted = described                              ? "description"
                             : streq(row->service, "block-storage") ? "metadata"
                             : image                                ? OS_META_MARK
                                                                    : "tags";
        if (image && image->made_as && !streq(image->made_as, image->id))
                return NULL;
        for (size_t i = 0; i < row->answer->count; i++) {
                const struct answer_field *f = &row->answer->fields[i];
                const void *value = (const char *)object + f->offset;
                if (!streq(f->path, wanted))
                        continue;
                const char *text = f->type == A_TEXTS   ? mark_in(value)
                                   : f->type == A_PAIRS ? os_pair(value, OS_META_MARK)
                                                        : *(const char *const *)value;
                return text && has_prefix(text, OS_MARK) ? text : NULL;
        }
        return NULL;
}

int os_read_ours(const struct os *os, enum os_call call, const struct call_reply *reply,
        struct arena *a, struct answers *out, struct error *err)
{
        const struct call_row *row = &os_calls[call];
        size_t size = row->answer->size, kept = 0;
        int r = call_read_list(row, reply, a, out, err);
        if (r < 0)
                return r;
        char *all = out->v;
        for (size_t i = 0; i < out->n; i++)
                if (os_marked(os, os_mark_of(call, all + i * size)))
                        memmove(all + kept++ * size, all + i * size, size);
        out->n = kept;
        return 0;
}

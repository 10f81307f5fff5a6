/* Which objects of the cloud are this cluster's. The lists are asked for by the mark, but a service
 * that does not know a filter ignores it and answers with everything: so each object shows its mark
 * itself before it counts as ours, and before anything is deleted. */
#include "provider/openstack/openstack.h"

bool os_marked(const struct os *os, const char *description)
{
        return os->mark && description && streq(description, os->mark);
}

/* Neutron's objects have the mark as their description, those of nova and octavia as a tag. */
static bool marked_object(const struct os *os, const struct call_row *row, const void *object)
{
        const char *wanted = streq(row->service, "network") ? "description" : "tags";
        for (size_t i = 0; i < row->answer->count; i++) {
                const struct answer_field *f = &row->answer->fields[i];
                const void *value = (const char *)object + f->offset;
                if (!streq(f->path, wanted))
                        continue;
                return f->type == A_TEXTS ? os->mark && strings_contain(value, os->mark)
                                          : os_marked(os, *(const char *const *)value);
        }
        return false;
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
                if (marked_object(os, row, all + i * size))
                        memmove(all + kept++ * size, all + i * size, size);
        out->n = kept;
        return 0;
}

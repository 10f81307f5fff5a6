#include <zlib.h>

#include "base/base.h"
#include "base/embed.h"

const char *embed_text(struct embed *e, const struct embed_file *f)
{
        if (!e->text) {
                uLongf size = e->size;
                e->text = xmalloc(e->size);
                if (uncompress((Bytef *)e->text, &size, e->packed, e->packed_size) != Z_OK ||
                        size != e->size)
                        abort();
        }
        return e->text + f->at;
}

const struct embed_file *embed_find(const struct embed *e, const char *name)
{
        for (size_t i = 0; i < e->count; i++)
                if (streq(e->files[i].name, name))
                        return &e->files[i];
        return NULL;
}

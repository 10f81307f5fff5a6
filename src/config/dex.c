#include "config/dex.h"

static const struct dex_file dex_files[] = {
        { "clientSecretFile", "clientSecret", true },
        { "bindPWFile", "bindPW", true },
        { "keystonePasswordFile", "keystonePassword", true },
        { "passwordFile", "password", true },
        { "secretFile", "secret", true },
        { "rootCAFile", "rootCAData", false },
        { "caFile", "caData", false },
};

const struct dex_file *dex_file_of(const char *key)
{
        for (size_t i = 0; key && i < ARRAY_SIZE(dex_files); i++)
                if (streq(dex_files[i].key, key))
                        return &dex_files[i];
        return NULL;
}

const struct dex_file *dex_secret_of(const char *field)
{
        for (size_t i = 0; field && i < ARRAY_SIZE(dex_files); i++)
                if (dex_files[i].secret && streq(dex_files[i].field, field))
                        return &dex_files[i];
        return NULL;
}

const char *dex_text(const struct dex *d, const struct tree *at)
{
        for (size_t i = 0; i < d->text_count; i++)
                if (d->texts[i].at == at)
                        return d->texts[i].text;
        return NULL;
}

void dex_each(const struct tree *t, void (*fn)(const struct tree *at, void *arg), void *arg)
{
        tree_each (c, t) {
                if (t->kind == TREE_MAP)
                        fn(c, arg);
                dex_each(c, fn, arg);
        }
}

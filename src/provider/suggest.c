#include "provider/suggest.h"
#include "provider/aws/suggest.h"
#include "provider/openstack/suggest.h"

void suggest_put(struct suggestions *s, const char *key, const char *value)
{
        if (value && s->n < SUGGEST_MAX)
                s->v[s->n++] = (struct pair){ .key = key, .value = value };
}

const char *suggest_get(const struct suggestions *s, const char *key)
{
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->v[i].key, key))
                        return s->v[i].value;
        return NULL;
}

int provider_suggest(
        const char *provider, struct arena *a, struct suggestions *out, struct error *err)
{
        *out = (struct suggestions){ 0 };
        return streq(provider, "openstack") ? openstack_suggest(a, out, err)
               : streq(provider, "aws")     ? aws_suggest(a, out, err)
                                            : 0;
}

#include "config/platform.h"
#include "deliver/encode.h"
#include "deliver/userdata.h"

struct limits {
        const char *name;
        size_t limit; /* 0: none */
        bool base64;  /* counted as encoded */
};

static const struct limits all_limits[] = {
        [PROVIDER_LOCAL] = { "this computer", 0, false },
        [PROVIDER_SSH] = { "ssh", 0, false },
        [PROVIDER_OPENSTACK] = { "OpenStack", USERDATA_LIMIT_OPENSTACK, true },
        [PROVIDER_AWS] = { "AWS", USERDATA_LIMIT_AWS, false },
};

static struct limits userdata_limits(const struct cluster *c, enum provider_kind provider)
{
        const struct platform *p = platform_row((enum platform_kind)c->provider.terraform.platform);
        return provider == PROVIDER_TERRAFORM ? (struct limits){ p->label, p->userdata_limit, true }
                                              : all_limits[provider];
}

/* NULL: the provider gives its machines none. */
static const enum user_data *userdata_given(const struct cluster *c)
{
        const struct provider *p = &c->provider;
        return p->kind == PROVIDER_OPENSTACK   ? &p->openstack.user_data
               : p->kind == PROVIDER_AWS       ? &p->aws.user_data
               : p->kind == PROVIDER_TERRAFORM ? &p->terraform.user_data
                                               : NULL;
}

bool userdata_is_given(const struct cluster *c, enum user_data format)
{
        const enum user_data *given = userdata_given(c);
        return given && *given == format;
}

enum user_data userdata_format(const struct cluster *c, const struct node *n)
{
        const enum user_data *given = userdata_given(c);
        bool flatcar = n->pool->os && streq(n->pool->os, "flatcar");
        return given ? *given : flatcar ? USER_DATA_IGNITION : USER_DATA_CLOUD_INIT;
}

static size_t userdata_size(const struct limits *p, size_t n)
{
        return p->base64 ? (n + 2) / 3 * 4 : n;
}

static bool userdata_fits(const struct limits *p, const struct str *data)
{
        return !p->limit || userdata_size(p, data->len) <= p->limit;
}

static void userdata_compress(const struct cluster *c, const struct nodespec *s,
        enum user_data format, const struct str *plain, struct str *out)
{
        if (format == USER_DATA_CLOUD_INIT) {
                gzip_add(out, plain->data, plain->len);
                return;
        }
        struct str inner CLEANUP(str_release) = { 0 }, packed CLEANUP(str_release) = { 0 };
        ignition_text(c, s, false, &inner);
        gzip_add(&packed, inner.data, inner.len);
        str_add(out,
                "{\"ignition\":{\"version\":\"3.4.0\",\"config\":{\"replace\":{\"compression\":\"gzip\",\"source\":\"");
        data_url_add(out, packed.data, packed.len);
        str_add(out, "\"}}}}\n");
}

struct size {
        const char *name;
        size_t n;
};

static int by_size(const void *a, const void *b)
{
        const struct size *x = a, *y = b;
        return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->name, y->name);
}

static int userdata_too_big(const struct cluster *c, const struct nodespec *s,
        const struct limits *p, size_t n, struct error *err)
{
        struct size *all CLEANUP(free_p) = xcalloc(s->count + 1, sizeof(*all));
        struct str biggest CLEANUP(str_release) = { 0 };
        size_t count = 0;
        for (size_t i = 0; i < s->count; i++)
                if (s->entries[i].kind == SPEC_FILE)
                        all[count++] = (struct size){ s->entries[i].path, s->entries[i].len };
        for (size_t i = 0; i < c->os.authorized_keys.n; i++)
                all[count].n += strlen(c->os.authorized_keys.v[i]);
        if (all[count].n)
                all[count++].name = "os.authorizedKeys";
        qsort(all, count, sizeof(*all), by_size);
        for (size_t i = 0; i < count && i < 3; i++)
                str_addf(&biggest, "%s%s (%zu bytes)",
                        i ? ", " : "; the biggest entries: ", all[i].name, all[i].n);
        error_set(err, E2BIG, EXIT_CONFIG,
                "node %s: the user-data is %zu bytes%s after compression, but %s takes at most %zu%s",
                s->node->name, userdata_size(p, n), p->base64 ? " of base64" : "", p->name,
                p->limit, str_text(&biggest));
        return error_hint(err,
                "make these entries smaller, or put them into the machine image instead of cluster.yaml");
}

int userdata_fit(const struct cluster *c, const struct nodespec *s, enum user_data format,
        enum provider_kind provider, struct str *data, struct error *err)
{
        const struct limits limits = userdata_limits(c, provider), *p = &limits;
        struct str plain CLEANUP(str_release) = { 0 }, packed CLEANUP(str_release) = { 0 };
        if (format == USER_DATA_CLOUD_INIT)
                cloudinit_write(c, s, &plain);
        else
                ignition_write(c, s, &plain);
        if (userdata_fits(p, &plain)) {
                str_addn(data, plain.data, plain.len);
                return 0;
        }
        userdata_compress(c, s, format, &plain, &packed);
        if (!userdata_fits(p, &packed))
                return userdata_too_big(c, s, p, packed.len, err);
        str_addn(data, packed.data, packed.len);
        return 0;
}

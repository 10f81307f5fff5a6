#include "artifact/catalogue.h"
#include "cluster/upgrade/version.h"
#include "config/edit.h"
#include "config/minors.h"

int upgrade_parse(const char *text, struct arena *a, struct version *out, struct error *err)
{
        struct catalogue known;
        text += *text == 'v';
        if (!version_parse(text, out)) {
                error_set(err, EINVAL, EXIT_USAGE, "'%s' is not a version of Kubernetes", text);
                return error_hint(err, "write it as " KUBERNETES_NEWEST "; nothing was changed");
        }
        if (!catalogue_for(a, out, &known)) {
                error_set(err, EINVAL, EXIT_USAGE, "slipway does not know Kubernetes %u.%u",
                        out->major, out->minor);
                return error_hint(err, "it knows %s; nothing was changed", catalogue_minors());
        }
        out->text = arena_strdup(a, text);
        return 0;
}

/* Checks the whole edited file, because the new version may not know some options. */
static int upgrade_set(struct edit *e, struct cluster **c, const char *key, const char *inner,
        const char *value, struct error *err)
{
        struct problems problems = { .arena = e->arena };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        int r = edit_value(*c, key, inner, value, &file, &text, err);
        if (r < 0)
                return r;
        edit_keep(e, file, &text);
        return edit_load(e, false, c, &problems, err) < 0 ? edit_refused(&problems, err) : 0;
}

/* Images in the file. kube-proxy must match the version; a newer etcd or CoreDNS is kept when the
 * cluster returns to an older version. */
static const struct {
        const char *key, *inner;
        enum image_id id;
        bool down;
} upgrade_images[] = {
        { "etcd", "image", IMG_ETCD, false },
        { "network", "proxyImage", IMG_KUBE_PROXY, true },
        { "network", "dnsImage", IMG_COREDNS, false },
};

static const char *upgrade_image_now(const struct cluster *c, enum image_id id)
{
        return id == IMG_ETCD         ? c->etcd.image
               : id == IMG_KUBE_PROXY ? c->network.proxy_image
                                      : c->network.dns_image;
}

int upgrade_edit(
        struct edit *e, const struct version *to, bool down, struct cluster **c, struct error *err)
{
        struct catalogue known;
        int r = 0;
        if (!streq((*c)->kubernetes.text, to->text))
                r = upgrade_set(e, c, "kubernetes", NULL, to->text, err);
        catalogue_for(e->arena, to, &known);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(upgrade_images); i++) {
                const char *now = upgrade_image_now(*c, upgrade_images[i].id);
                const char *wanted = now && (upgrade_images[i].down || !down)
                                             ? image_follow(e->arena, now,
                                                       known.images[upgrade_images[i].id].name,
                                                       upgrade_images[i].down)
                                             : now;
                if (wanted != now)
                        r = upgrade_set(
                                e, c, upgrade_images[i].key, upgrade_images[i].inner, wanted, err);
        }
        return r;
}

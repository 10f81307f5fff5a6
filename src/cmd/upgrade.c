/* upgrade: an edit of the version in the file, and what up does then. */
#include "artifact/catalogue.h"
#include "cmd/upgrade.h"
#include "config/edit.h"

int upgrade_parse(const char *text, struct arena *a, struct version *out, struct error *err)
{
        struct catalogue known;
        text += *text == 'v';
        if (!version_parse(text, out)) {
                error_set(err, EINVAL, EXIT_USAGE, "'%s' is not a version of Kubernetes", text);
                return error_hint(err, "write it as 1.36.3; nothing was changed");
        }
        if (!catalogue_for(a, out, &known)) {
                error_set(err, EINVAL, EXIT_USAGE, "slipway does not know Kubernetes %u.%u", out->major, out->minor);
                return error_hint(err, "it knows %s; nothing was changed", catalogue_minors());
        }
        out->text = arena_strdup(a, text);
        return 0;
}

/* The file as it will be is checked whole: what the cluster is told may not be known to the new version. */
static int set(struct edit *e, struct cluster **c, const char *key, const char *inner, const char *value, struct error *err)
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

/* Images that the file names. kube-proxy is as old as the rest; a newer etcd or CoreDNS stays when the cluster goes back. */
static const struct {
        const char *key, *inner;
        enum image_id id;
        bool down;
} images[] = {
        { "etcd", "image", IMG_ETCD, false },
        { "network", "proxyImage", IMG_KUBE_PROXY, true },
        { "network", "dnsImage", IMG_COREDNS, false },
};

static const char *image_now(const struct cluster *c, enum image_id id)
{
        return id == IMG_ETCD ? c->etcd.image : id == IMG_KUBE_PROXY ? c->network.proxy_image : c->network.dns_image;
}

int upgrade_edit(struct edit *e, const struct version *to, bool down, struct cluster **c, struct error *err)
{
        struct catalogue known;
        int r = edit_before(e, c, err);
        if (r == 0 && !streq((*c)->kubernetes.text, to->text))
                r = set(e, c, "kubernetes", NULL, to->text, err);
        catalogue_for(e->arena, to, &known);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(images); i++) {
                const char *now = image_now(*c, images[i].id);
                const char *wanted = now && (images[i].down || !down) ? image_follow(e->arena, now, known.images[images[i].id].name, images[i].down) : now;
                if (wanted != now)
                        r = set(e, c, images[i].key, images[i].inner, wanted, err);
        }
        return r;
}

int cmd_upgrade(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct edit e;
        struct cluster *c;
        struct version to;
        edit_begin(&e, o, &a);
        int r = upgrade_parse(o->args.v[0], &a, &to, err);
        if (r == 0)
                r = upgrade_edit(&e, &to, false, &c, err);
        struct up_call call = { .verb = "upgrade", .accepted = edit_accepted, .arg = &e, .force = o->force, .only_stage = o->stage };
        return r < 0 ? r : cmd_up_cluster(o, &call, &a, c, err);
}

/* Values of the addons that a provider's section asks for: the cloud's controller and its CSI
 * driver. What they make in the cloud is marked with the cluster's full name. */
#include "addon/addon.h"
#include "addon/impl.h"
#include "base/sha256.h"
#include "node/context.h"
#include "node/os.h"

static void trust_add(json_t *list, const char *path)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o)
        {
                if (streq(json_string_value(json_object_get(o, "path")), path))
                        return;
        }
        char *name CLEANUP(free_p) = xstrdup(path + 1);
        for (char *p = name; *p; p++)
                *p = *p == '/' ? '-' : *p;
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "path", path));
}

/* Directories with certificate authorities on control-plane nodes. If the file does not say which
 * operating system they have: those of all. */
static json_t *trust_paths(const struct cluster *c)
{
        json_t *list = json_array();
        trust_add(list, "/etc/ssl/certs");
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *p = &c->pools.v[i];
                const struct os_id *os = p->os ? os_find(p->os) : NULL;
                for (enum os_family f = 0; p->roles & ROLE_CONTROL_PLANE && f < OS_FAMILY_COUNT;
                        f++)
                        for (size_t k = 0;
                                (!os || os->family == f) && k < ARRAY_SIZE(os_info(f)->ca_paths) &&
                                os_info(f)->ca_paths[k];
                                k++)
                                trust_add(list, os_info(f)->ca_paths[k]);
        }
        return list;
}

/* Pods are made anew when what they read at their start changes. */
static void cloud_digest(const struct cluster *c, json_t *v)
{
        const char *const parts[] = { c->cloud_config, c->cloud_ca };
        char digest[SHA256_HEX];
        struct sha256 sum;
        sha256_init(&sum);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                sha256_add(&sum, parts[i] ? parts[i] : "", parts[i] ? strlen(parts[i]) + 1 : 1);
        sha256_end(&sum, digest);
        digest[16] = 0;
        json_put(v, "digest", digest);
}

void addon_cloud_values(
        const struct cluster *c, enum addon_id id, const struct catalogue *catalogue, json_t *v)
{
        static const struct {
                const char *name;
                enum image_id image;
        } sidecars[] = { { "provisioner", IMG_CSI_PROVISIONER }, { "attacher", IMG_CSI_ATTACHER },
                { "resizer", IMG_CSI_RESIZER }, { "registrar", IMG_CSI_REGISTRAR },
                { "liveness", IMG_CSI_LIVENESS } };
        const char *name = c->cloud_name ? c->cloud_name : c->name;
        size_t planes = cluster_count(c, ROLE_CONTROL_PLANE);
        for (size_t i = 0; i < ARRAY_SIZE(sidecars); i++)
                json_put(v, sidecars[i].name, catalogue->images[sidecars[i].image].name);
        json_object_set_new(v, "clusterFlag", json_sprintf("--cluster-name=%s", name));
        json_object_set_new(v, "driverFlag",
                json_sprintf(
                        id == ADDON_EBS_CSI ? "--k8s-tag-cluster-id=%s" : "--cluster=%s", name));
        json_put(v, "config", c->cloud_config ? c->cloud_config : "");
        if (c->cloud_ca)
                json_put(v, "ca", c->cloud_ca);
        else
                json_object_set_new(v, "ca", json_false());
        json_put(v, "region", c->provider.aws.region ? c->provider.aws.region : "");
        json_object_set_new(v, "replicas", json_integer(planes > 1 ? 2 : 1));
        /* only one class may be the default */
        json_put(v, "default", cluster_addon(c, ADDON_LOCAL_PATH) ? "false" : "true");
        json_object_set_new(v, "trust", trust_paths(c));
        cloud_digest(c, v);
}

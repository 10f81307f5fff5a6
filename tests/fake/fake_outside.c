/* What a cluster has outside itself, played: a Service of type LoadBalancer whose finalizer stays
 * for a while, and a volume of a StatefulSet's pod. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "cluster/site/removed.h"
#include "fake.h"

void fake_outside(struct site *s, int64_t takes)
{
        static const char *after[] = { "driver" };
        static struct chart charts[] = {
                { .name = "web",
                        .chart = "./web",
                        .namespace = "shop",
                        .timeout = 60,
                        .after = { 1, after } },
                { .name = "driver", .chart = "./driver", .namespace = "shop", .timeout = 60 },
        };
        static const struct fake_release releases[] = {
                { "driver", "deployed", "old", 1, 1, 1 },
                { "web", "deployed", "old", 2, 2, 2 },
                { "theirs", "deployed", "", 7, 7, 0 },
        };
        s->cluster->services.charts = (struct charts){ ARRAY_SIZE(charts), charts };
        memcpy(world.releases, releases, sizeof(releases));
        world.balancer = world.volume = (struct fake_thing){ .there = true, .takes = takes };
        world.workload = true;
        s->found.record.existed = true;
        s->cleanup = 300;
}

static void thing_ordered(struct fake_thing *t)
{
        if (t->there && !t->ordered)
                t->until = t->takes < 0 ? INT64_MAX : fake_now() + t->takes;
        t->ordered = true;
}

static bool thing_there(struct fake_thing *t)
{
        if (t->ordered && fake_now() >= t->until)
                t->there = false;
        return t->there;
}

bool fake_outside_there(void)
{
        bool balancer = thing_there(&world.balancer);
        return thing_there(&world.volume) || balancer;
}

/* The volume goes when its claim is to go and nobody makes the pod again. */
void fake_deleted(const char *documents)
{
        if (strstr(documents, "\"StatefulSet\""))
                world.workload = false;
        if (strstr(documents, "\"Service\""))
                thing_ordered(&world.balancer);
        if (strstr(documents, "\"PersistentVolumeClaim\"") && !world.workload)
                thing_ordered(&world.volume);
}

static json_t *owned(const char *uid, const char *owner, const char *kind)
{
        return json_pack("{s:s, s:s, s:s, s:{s:s, s:s}, s:[{s:s, s:s, s:s, s:b}]}", "name", uid,
                "namespace", "shop", "uid", uid, "annotations", "meta.helm.sh/release-name", "web",
                "meta.helm.sh/release-namespace", "shop", "ownerReferences", "kind", kind,
                "apiVersion", "apps/v1", "uid", owner, "controller", true);
}

static json_t *service_item(void)
{
        json_t *meta = owned("front", "", "");
        json_object_set_new(meta, "finalizers", json_pack("[s]", "example.net/cleanup"));
        if (world.balancer.ordered)
                json_object_set_new(meta, "deletionTimestamp", json_string("now"));
        return json_pack("{s:o}", "metadata", meta);
}

static json_t *volume_item(const char *name, const char *policy, const char *source)
{
        return json_pack("{s:{s:s}, s:{s:s, s:{}, s:{s:s, s:s}}}", "metadata", "name", name, "spec",
                "persistentVolumeReclaimPolicy", policy, source, "claimRef", "namespace", "shop",
                "name", "data");
}

json_t *fake_list(const char *path)
{
        json_t *list = json_array();
        if (streq(path, "/api/v1/namespaces") && world.ending)
                json_array_append_new(list, json_pack("{s:{s:s, s:s}}", "metadata", "name",
                                                    world.ending, "deletionTimestamp", "now"));
        if (strstr(path, "/services") && thing_there(&world.balancer))
                json_array_append_new(list, service_item());
        if (strstr(path, "/persistentvolumes") && thing_there(&world.volume))
                json_array_append_new(list, volume_item("outside", "Delete", "csi"));
        if (strstr(path, "/persistentvolumes") && world.releases[0].revision) {
                json_array_append_new(list, volume_item("kept", "Retain", "csi"));
                json_array_append_new(list, volume_item("local", "Delete", "hostPath"));
        }
        if (strstr(path, "/pods") && world.workload)
                json_array_append_new(
                        list, json_pack("{s:o, s:{s:[{s:s, s:{s:s}}]}}", "metadata",
                                      owned("db-0", "db", "StatefulSet"), "spec", "volumes", "name",
                                      "data", "persistentVolumeClaim", "claimName", "data"));
        if (strstr(path, "/statefulsets") && world.workload)
                json_array_append_new(list, json_pack("{s:o}", "metadata", owned("db", "", "")));
        return list;
}

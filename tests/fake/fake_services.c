/* helm and its releases, played. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/file.h"
#include "cluster/services/services.h"
#include "fake.h"

#define CRD \
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.test}\n"
#define MANIFEST "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: shop}\n"

void __wrap_package_find(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg);
int __wrap_helm_file(
        struct site *s, const char *name, const char *text, const char **path, struct error *err);

void __wrap_package_find(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        service->package = "chart";
        snprintf(service->inputs, sizeof(service->inputs), "wanted-%s", service->name);
        fn(NULL, arg);
}

int __wrap_helm_file(
        struct site *s, const char *name, const char *text, const char **path, struct error *err)
{
        *path = "values";
        return 0;
}

void fake_services(struct site *s, const char *dir)
{
        static const char *namespaces[] = { "shop" }, *after[] = { "web" };
        static struct chart charts[] = {
                { .name = "web", .chart = "./web", .namespace = "shop", .timeout = 60 },
                { .name = "new",
                        .chart = "./new",
                        .namespace = "shop",
                        .timeout = 60,
                        .after = { 1, after } },
        };
        static const struct fake_release releases[] = {
                { "web", "pending-upgrade", "old", 2, 1, 2 },
                { "new" },
                { "gone", "deployed", "old", 3, 3, 3 },
                { "theirs", "deployed", "", 7, 7, 0 },
        };
        struct error err CLEANUP(error_release) = { 0 };
        const char **files = arena_array(s->arena, const char *, 1);
        files[0] = arena_printf(s->arena, "%s/objects.yaml", dir);
        assert_int_equal(file_write(files[0], MANIFEST, strlen(MANIFEST), 0600, 0, NULL, &err), 0);
        s->cluster->services = (struct services){ .namespaces = { 1, namespaces },
                .manifests = { 1, files },
                .charts = { ARRAY_SIZE(charts), charts } };
        memcpy(world.releases, releases, sizeof(releases));
        world.manifest = files[0];
}

static json_t *secret(const struct fake_release *r, long n, const char *state)
{
        json_t *labels = json_pack("{s:s, s:s, s:o}", "name", r->name, "status", state, "version",
                json_sprintf("%ld", n));
        if (*r->inputs) {
                json_object_set_new(labels, SERVICE_LABEL_INPUTS, json_string(r->inputs));
                json_object_set_new(labels, SERVICE_LABEL_REVISION, json_sprintf("%ld", r->made));
        }
        return json_pack("{s:{s:s, s:o}}", "metadata", "namespace", "shop", "labels", labels);
}

json_t *fake_metadata(const char *path)
{
        json_t *list = json_array();
        for (size_t i = 0; strstr(path, "/secrets") && i < ARRAY_SIZE(world.releases); i++) {
                const struct fake_release *r = &world.releases[i];
                if (r->deployed && r->deployed < r->revision)
                        json_array_append_new(list, secret(r, r->deployed, "deployed"));
                if (r->revision)
                        json_array_append_new(list, secret(r, r->revision, r->state));
        }
        return list;
}

static void deployed(struct fake_release *r, const char *labels)
{
        const char *inputs = strstr(labels, SERVICE_LABEL_INPUTS "="),
                   *made = strstr(labels, SERVICE_LABEL_REVISION "=");
        r->deployed = ++r->revision;
        snprintf(r->state, sizeof(r->state), "deployed");
        if (!inputs || !made) /* a rollback has the labels of what it goes back to */
                return;
        inputs += strlen(SERVICE_LABEL_INPUTS "=");
        snprintf(r->inputs, sizeof(r->inputs), "%.*s", (int)strcspn(inputs, ","), inputs);
        r->made = strtol(made + strlen(SERVICE_LABEL_REVISION "="), NULL, 10);
}

static int helm_changes(struct fake_release *r, const struct helm_call *call)
{
        const char *verb = call->args[0], *labels = "";
        for (size_t i = 0; call->args[i]; i++)
                if (streq(call->args[i], "--labels"))
                        labels = call->args[i + 1];
        if (streq(verb, "uninstall")) {
                if (streq(r->name, "driver") && fake_outside_there())
                        world.wrong = "the driver went before what it serves";
                *r = (struct fake_release){ .name = "" };
                snprintf(r->name, sizeof(r->name), "%s", call->args[1]);
                return 0;
        }
        if (streq(verb, "upgrade") && has_prefix(r->state, "pending-"))
                return 1; /* another operation is in progress */
        deployed(r, labels);
        return 0;
}

int fake_helm(const struct helm_call *call, enum how how, struct str *out)
{
        const char *verb = call->args[0];
        if (how == HOW_REFUSED || how == HOW_NOT_YET)
                return 1;
        if (streq(verb, "template") || streq(verb, "get"))
                str_add(out, MANIFEST);
        if (streq(verb, "show"))
                str_add(out, CRD);
        for (size_t i = 0; i < ARRAY_SIZE(world.releases); i++)
                if (strstr("upgrade rollback uninstall", verb) &&
                        streq(world.releases[i].name, call->args[1]) &&
                        helm_changes(&world.releases[i], call))
                        return 1;
        return how == HOW_LOST ? 1 : 0;
}

void fake_services_check(struct site *s, int result)
{
        assert_int_equal(result, 0);
        static const struct {
                const char *name;
                long revision;
        } wanted[] = { { "web", 4 }, { "new", 1 }, { "gone", 0 }, { "theirs", 7 } };
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                const struct fake_release *r = &world.releases[i];
                assert_string_equal(r->name, wanted[i].name);
                assert_int_equal(r->revision, wanted[i].revision);
                assert_string_equal(r->state, r->revision ? "deployed" : "");
        }
        assert_string_equal(world.releases[0].inputs, "wanted-web");
        assert_int_equal(world.releases[0].made, 4);
}

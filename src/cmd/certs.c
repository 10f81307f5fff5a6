/* certs: lists and renews the cluster's certificates, and replaces its certificate authorities. */
#include <event2/event.h>

#include "cluster/certs/certs.h"
#include "cluster/certs/rotate.h"
#include "cmd/operate.h"
#include "cmd/reach.h"

/* ---- list ---- */

static const char *certs_text_of(const json_t *o, const char *key)
{
        const char *s = json_string_value(json_object_get(o, key));
        return s ? s : "";
}

static const char *left_text(const json_t *c, char out[32])
{
        long long s = json_integer_value(json_object_get(c, "secondsLeft"));
        if (s <= 0)
                return "expired";
        snprintf(out, 32, "%lld%s",
                s >= 172800 ? s / 86400
                : s >= 7200 ? s / 3600
                            : s / 60,
                s >= 172800 ? "d"
                : s >= 7200 ? "h"
                            : "m");
        return out;
}

static void print_list(const json_t *answer)
{
        const json_t *all = json_object_get(answer, "certificates"), *c;
        const char *node = NULL;
        size_t i;
        char left[32];
        json_array_foreach(all, i, c)
        {
                const char *of = json_string_value(json_object_get(c, "node"));
                /* copies in kubeconfigs are only in -o json */
                if (has_suffix(certs_text_of(c, "file"), "#certificate-authority"))
                        continue;
                if (i == 0 || (of ? !node || !streq(of, node) : node != NULL))
                        print(i ? "\n%s\n  %-52s %-46s %-16s %-10s %-8s %s\n"
                                : "%s\n  %-52s %-46s %-16s %-10s %-8s %s\n",
                                of ? of : "state directory", "FILE", "SUBJECT", "ISSUER", "EXPIRES",
                                "LEFT", "USED BY");
                node = of;
                print("  %-52.*s %-46s %-16s %-10.10s %-8s %s%s\n",
                        (int)strcspn(certs_text_of(c, "file"), "#"), certs_text_of(c, "file"),
                        certs_text_of(c, "subject"), certs_text_of(c, "issuer"),
                        certs_text_of(c, "expires"), left_text(c, left), certs_text_of(c, "usedBy"),
                        streq(certs_text_of(c, "state"), "due") ? " (due)" : "");
        }
        json_array_foreach(json_object_get(answer, "unreachable"), i, c)
                print_err("%s: its certificates are not listed: %s\n", certs_text_of(c, "node"),
                        certs_text_of(c, "why"));
}

static size_t count_state(const json_t *answer, const char *state)
{
        const json_t *c;
        size_t i, n = 0;
        json_array_foreach(json_object_get(answer, "certificates"), i, c) n +=
                streq(certs_text_of(c, "state"), state);
        return n;
}

/* Status 7 if one has expired. A certificate that is due is no problem: `up` renews it, and
 * kubelets renew theirs. */
static int cmd_certs_list(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        json_t *answer = NULL;
        int e = reach_open(&r, o, err);
        if (e == 0)
                e = certs_list(&r.site, &answer, err);
        if (e < 0) {
                json_decref(answer);
                return e;
        }
        size_t expired = count_state(answer, "expired"), due = count_state(answer, "due"),
               silent = json_array_size(json_object_get(answer, "unreachable"));
        if (cmd_json(o)) {
                print_json(answer, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        } else {
                print_list(answer);
                if (expired || due)
                        print("\n%zu expired, %zu due (less than a third of their life is left): slipway up renews them.\n",
                                expired, due);
        }
        json_decref(answer);
        return expired ? EXIT_UNHEALTHY : silent ? EXIT_UNREACHABLE : EXIT_OK;
}

/* ---- renew ---- */

static int renew(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct strings nodes = { .n = o->args.n - 1, .v = o->args.v + 1 };
        struct cluster *c;
        struct site s = { .identity.lock = -1 };
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        r = site_open(&s, base, &a, c, operate_state(o), "certs renew", err);
        if (r == 0)
                r = certs_renew_begin(&s, &nodes, err);
        if (r == 0)
                r = cmd_plan_and_apply(o, &s, NULL, err);
        site_release(&s);
        if (r == 0 && !cmd_json(o))
                print(nodes.n ? "The certificates were renewed.\n"
                              : "All certificates were renewed. Kubeconfigs that users already have work until their certificates expire; 'slipway kubeconfig' "
                                "prints new ones.\n");
        return r;
}

/* ---- rotate-ca ---- */

static int rotate_ca(const struct options *o, struct error *err)
{
        unsigned set;
        if (rotate_parse((const char *const *)o->args.v + 1, o->args.n - 1, &set, err) < 0)
                return -err->code;
        int r = cmd_rotate(o, "certs rotate-ca", set, err);
        if (r == 0 && !cmd_json(o))
                print("The rotation is finished. If the cluster CA was replaced, kubeconfigs that users already have no longer work: "
                      "'slipway kubeconfig' prints new ones.\n");
        return r;
}

int cmd_certs(const struct options *o, struct error *err)
{
        static const struct {
                const char *name;
                int (*run)(const struct options *o, struct error *err);
        } actions[] = { { "list", cmd_certs_list }, { "renew", renew }, { "rotate-ca", rotate_ca },
                { "approve", certs_approve } };
        for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
                if (streq(actions[i].name, o->args.v[0]))
                        return actions[i].run(o, err);
        return -EINVAL; /* options_parse refused every other word */
}

/* NetworkPolicies, where the fabric enforces them. First a policy that lets nothing connect to the
 * probes: soon no probe reaches the one on the next node. Then a second policy that lets the probes
 * connect: soon they reach each other again. So every node is shown to block and to let through. */
#include "cluster/apply/verify.h"
#include "config/fabric.h"

#define AT_ONCE    8
#define OUTPUT_MAX (16 << 10)
/* The fabric puts a policy into effect a moment after the API has it. */
#define EFFECT_MS   60000 /* after a change of the cluster */
#define STEADY_MS   15000 /* without one */
#define ROUNDS      3     /* at least, if a round takes long */
#define ASK_SECONDS "1"   /* a packet that is dropped gets no answer */

#define POLICY \
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n" \
        "metadata: {name: %s, namespace: " VERIFY_NAMESPACE "}\n" \
        "spec: {podSelector: {matchLabels: {app: probe}}, policyTypes: [Ingress]%s}\n"
#define FROM_PROBES ", ingress: [{from: [{podSelector: {matchLabels: {app: probe}}}]}]"

static void policy_round(struct verify *v);

static const char *policy_node(const struct probe *p) { return p->member->node->name; }

static struct probe *policy_target(const struct probe *p)
{
        struct verify *v = p->verify;
        return &v->probes[((size_t)(p - v->probes) + 1) % v->count];
}

/* Not proven: why. */
static void policy_failed(struct probe *p)
{
        struct verify *v = p->verify;
        const char *to = policy_node(policy_target(p));
        const char *why = !p->asked   ? "the probe cannot be asked"
                          : v->allows ? "a NetworkPolicy allows it, and it fails"
                                      : "a NetworkPolicy denies it, and it works";
        const char *more = !p->asked || v->allows ? p->denied : NULL;
        verify_row(v, CHECK_POLICY, policy_node(p), to, why);
        verify_failed(v,
                p->asked
                        ? "see the fabric's log on the second node: slipway logs NODE calico-node, or its pods in kube-system"
                        : "see the kubelet's log on the first node, and run again",
                "from a pod on %s to the pod on %s: %s%s%s", policy_node(p), to, why,
                more ? ": " : "", more ? more : "");
}

/* Every address must be reached, or none. `errors`: what kubectl said. */
static void policy_read(struct probe *p, const char *out, const char *errors)
{
        size_t reached = 0, blocked = 0;
        char *text CLEANUP(free_p) = xstrdup(out ? out : ""), *rest = text;
        char *last CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        const char *why = NULL;
        for (char *line; (line = strsep(&rest, "\n"));) {
                reached += has_prefix(line, "ok ");
                blocked += has_prefix(line, "failed ");
                why = has_prefix(line, "failed ") ? strstr(line, ": ") : why;
        }
        p->asked = reached + blocked;
        why = !p->asked ? last : why ? why + 2 : "";
        p->denied = *why ? arena_printf(p->verify->site->arena, "%.200s", why) : NULL;
        p->proven = p->verify->allows ? reached && !blocked : blocked && !reached;
}

static void policy_begin(struct verify *v, bool allows);

static void on_policy_pause(evutil_socket_t fd, short what, void *arg) { policy_round(arg); }

static void policy_next(struct verify *v)
{
        size_t lacking = 0;
        for (size_t i = 0; i < v->count; i++)
                lacking += !v->probes[i].proven;
        if (lacking && (clock_ms() < v->deadline || v->rounds < ROUNDS)) {
                verify_later(v, on_policy_pause);
                return;
        }
        for (size_t i = 0; i < v->count; i++)
                if (!v->probes[i].proven)
                        policy_failed(&v->probes[i]);
                else if (v->allows)
                        verify_row(v, CHECK_POLICY, policy_node(&v->probes[i]),
                                policy_node(policy_target(&v->probes[i])), NULL);
        if (!lacking && !v->allows)
                policy_begin(v, true);
        else
                verify_kept(v);
}

static void policy_start(struct verify *v);

static void on_policy_asked(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct probe *p = arg;
        policy_read(p, out, errors);
        p->verify->open--;
        policy_start(p->verify);
}

static void policy_ask(struct probe *p)
{
        struct verify *v = p->verify;
        const struct probe *to = policy_target(p);
        const char *words[5] = { "ask", "-t", ASK_SECONDS };
        size_t n = 3;
        for (size_t k = 0; k < ARRAY_SIZE(to->ip) && to->ip[k]; k++)
                words[n++] = arena_printf(v->site->arena,
                        strchr(to->ip[k], ':') ? "http://[%s]:8080/" : "http://%s:8080/",
                        to->ip[k]);
        member_run(v->from, verify_exec(p, words, n), NULL, OUTPUT_MAX, on_policy_asked, p);
}

static void policy_start(struct verify *v)
{
        while (v->at < v->count && v->open < AT_ONCE) {
                struct probe *p = &v->probes[v->at++];
                if (p->proven)
                        continue;
                v->open++;
                policy_ask(p);
        }
        if (!v->open)
                policy_next(v);
}

static void policy_round(struct verify *v)
{
        v->at = 0;
        v->rounds++;
        policy_start(v);
}

static void on_policy_applied(const char *error, void *arg)
{
        struct verify *v = arg;
        if (!error) {
                policy_round(v);
                return;
        }
        verify_failed(v, "run again", "a NetworkPolicy cannot be created: %s", error);
        verify_kept(v);
}

static void policy_begin(struct verify *v, bool allows)
{
        char *text CLEANUP(free_p) =
                xasprintf(POLICY, allows ? "allow" : "deny", allows ? FROM_PROBES : "");
        v->allows = allows;
        v->rounds = 0;
        v->deadline = clock_ms() + (v->alone ? STEADY_MS : EFFECT_MS);
        for (size_t i = 0; i < v->count; i++)
                v->probes[i].proven = false;
        step_doing(v->step, -1,
                allows ? "a network policy lets the probes connect again"
                       : "a network policy blocks the probes");
        kube_apply(v->site->kube, text, on_policy_applied, v);
}

void verify_policy(struct verify *v)
{
        if (!cluster_fabric(v->site->cluster)->policy || v->count < 2 || v->failures)
                verify_kept(v);
        else
                policy_begin(v, false);
}

/* The answers as one JSON object:
 *
 *   cluster, healthy
 *   problems[]: sentences
 *   nodes[]: name, roles[], machine (absent, stopped, running, unreachable), ready, version, drift,
 *     drifted[], address, reboot (why it needs one, or null), trouble
 *   bastion, if slipway makes one: name, machine, address, cloud
 *   others[], nodes that are not in cluster.yaml (joined with kubeadm): name, ready, version,
 *     address, pool (slipway's label, or null), asksForCertificate, note
 *   api: server, ready, version, trouble, servers[] (one per control-plane node: node,
 *     ready, trouble)
 *   pods[], of the control plane and DNS that do not start: name, node, container, reason, restarts
 *   etcd[]: node, healthy, leader, version, dbSize, inUse, alarms[], defragment, trouble
 *   certificates: expires, what
 *   kubernetes: wanted, running (nodes that run it), nodes
 *   releases[], if the file has charts: name, namespace, chart, revision, state, ready, drift
 *   addons[], if the file has built-in ones: name, version, namespace, ready and wanted (pods),
 * works, drift (why it is not as wanted, or null) login, with services.dex: issuer, works, trouble
 *   run: who holds the lock, or null */
#include <sys/stat.h>
#include <time.h>

#include "base/print.h"
#include "base/file.h"
#include "cluster/etcd/etcd.h"
#include "cluster/plan/reboot.h"
#include "cluster/plan/serving.h"
#include "cluster/status/status.h"
#include "kube/wait.h"

#define ON_KUBE (ROLE_CONTROL_PLANE | ROLE_WORKER)

/* ---- nodes ---- */

static json_t *roles_json(unsigned roles)
{
        static const struct {
                unsigned role;
                const char *name;
        } names[] = { { ROLE_CONTROL_PLANE, "control-plane" }, { ROLE_ETCD, "etcd" },
                { ROLE_WORKER, "worker" } };
        json_t *list = json_array();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (roles & names[i].role)
                        json_array_append_new(list, json_string(names[i].name));
        return list;
}

static const char *const machine_words[] = {
        [MACHINE_ABSENT] = "absent", [MACHINE_STOPPED] = "stopped", [MACHINE_RUNNING] = "running"
};

static const char *machine_word(const struct status_node *n)
{
        return n->trouble ? "unreachable" : machine_words[n->member->machine->state];
}

static json_t *bastion_json(const struct machine *m, json_t *problems)
{
        json_t *o = json_object();
        if (m->state != MACHINE_RUNNING)
                status_problem(problems, "the bastion %s is %s: slipway up %s it", m->node->name,
                        machine_words[m->state],
                        m->state == MACHINE_STOPPED ? "starts" : "creates");
        status_text(o, "name", m->node->name);
        status_text(o, "machine", machine_words[m->state]);
        status_text(o, "address", m->target.host);
        status_text(o, "cloud", m->detail);
        return o;
}

static void status_json_node_problems(
        const struct status *st, const struct status_node *n, json_t *problems)
{
        const struct member *m = n->member;
        const char *name = m->node->name, *why = condition_why(m->seen.object, "Ready");
        static const struct {
                const char *type, *of;
        } pressures[] = { { "DiskPressure", "disk" }, { "MemoryPressure", "memory" },
                { "PIDPressure", "process ids" } };
        size_t drift = json_array_size(m->seen.drift);
        if (n->trouble)
                status_problem(problems, "node %s: %s", name, n->trouble);
        else if (m->machine->state != MACHINE_RUNNING)
                status_problem(problems, "node %s: its machine is %s: slipway up %s it", name,
                        machine_word(n),
                        m->machine->state == MACHINE_STOPPED ? "starts" : "creates");
        if (st->api_ready && m->node->pool->roles & ON_KUBE && !node_ready(m->seen.object))
                status_problem(problems, "node %s: %s%s", name,
                        m->seen.object ? "not Ready: " : "it has not registered",
                        m->seen.object ? (why ? why : "no reason is given") : "");
        for (size_t i = 0; st->api_ready && i < ARRAY_SIZE(pressures); i++)
                if (condition_true(m->seen.object, pressures[i].type))
                        status_problem(problems,
                                "node %s: it is short of %s, and pods are evicted: make room there",
                                name, pressures[i].of);
        if (drift)
                status_problem(problems,
                        "node %s: %zu %s drifted from what was applied: slipway up repairs it",
                        name, drift, drift == 1 ? "entry" : "entries");
}

static json_t *node_json(const struct status *st, const struct status_node *n, json_t *problems)
{
        const struct member *m = n->member;
        const json_t *info = json_object_get(json_object_get(m->seen.object, "status"), "nodeInfo");
        bool kube = m->node->pool->roles & ON_KUBE;
        char text[IP_TEXT];
        json_t *o = json_object();
        status_text(o, "name", m->node->name);
        json_object_set_new(o, "roles", roles_json(m->node->pool->roles));
        status_text(o, "machine", machine_word(n));
        json_object_set_new(o, "ready",
                !kube || !st->api_ready ? json_null() : json_boolean(node_ready(m->seen.object)));
        status_text(o, "version", json_string_value(json_object_get(info, "kubeletVersion")));
        json_object_set_new(o, "drift",
                m->seen.said ? json_integer((json_int_t)json_array_size(m->seen.drift))
                             : json_null());
        json_object_set_new(
                o, "drifted", m->seen.drift ? json_incref(m->seen.drift) : json_array());
        status_text(o, "address",
                m->node->ip[0].family ? ip_format(&m->node->ip[0], text) : m->node->address);
        if (m->machine->detail) /* the cloud's own word for its state */
                status_text(o, "cloud", m->machine->detail);
        status_text(o, "reboot", member_reboot_why(m));
        status_text(o, "trouble", n->trouble);
        status_json_node_problems(st, n, problems);
        return o;
}

/* Not managed by slipway, so it is shown but is not a problem. */
static json_t *other_json(const struct status *st, const json_t *node)
{
        const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels"),
                     *info = json_object_get(json_object_get(node, "status"), "nodeInfo");
        const char *pool = json_string_value(json_object_get(labels, POOL_LABEL));
        json_t *o = json_object();
        status_text(o, "name", object_name(node));
        json_object_set_new(o, "ready", json_boolean(node_ready(node)));
        status_text(o, "version", json_string_value(json_object_get(info, "kubeletVersion")));
        status_text(o, "address", node_internal_ip(node));
        status_text(o, "pool", pool);
        bool asks = serving_asks(st->requests, object_name(node));
        json_object_set_new(o, "asksForCertificate", json_boolean(asks));
        char *note CLEANUP(free_p) = xasprintf("%s%s%s",
                pool ? "no longer in cluster.yaml" : "joined from outside, not in cluster.yaml",
                asks ? "; its kubelet asks for a serving certificate: slipway certs approve " : "",
                asks ? object_name(node) : "");
        status_text(o, "note", note);
        return o;
}

/* ---- pods ---- */

static json_t *pod_json(const json_t *pod, json_t *problems)
{
        const json_t *c = pod_failing(pod),
                     *waiting = json_object_get(json_object_get(c, "state"), "waiting");
        const char *node =
                json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));
        const char *container = json_string_value(json_object_get(c, "name")),
                   *reason = json_string_value(json_object_get(waiting, "reason"));
        /* `slipway logs` can read it even without an API */
        bool ours = container && has_prefix(container, "kube-");
        json_int_t restarts = json_integer_value(json_object_get(c, "restartCount"));
        struct str ended CLEANUP(str_release) = { 0 };
        json_t *o = json_object();
        status_text(o, "name", object_name(pod));
        status_text(o, "node", node);
        status_text(o, "container", container);
        status_text(o, "reason", reason);
        json_object_set_new(o, "restarts", json_integer(restarts));
        if (restarts)
                str_addf(&ended, ", it ended %" JSON_INTEGER_FORMAT " times", restarts);
        if (ours && node)
                status_problem(problems, "pod %s: %s%s: slipway logs %s %s says why",
                        object_name(pod), reason, str_text(&ended), node,
                        container + strlen("kube-"));
        else
                status_problem(problems,
                        "pod %s on %s: %s%s: kubectl -n kube-system describe pod %s says why",
                        object_name(pod), node ? node : "no node", reason, str_text(&ended),
                        object_name(pod));
        return o;
}

static json_t *pods_json(const struct status *st, json_t *problems)
{
        json_t *list = json_array(), *pod;
        size_t i;
        for (size_t l = 0; l < ARRAY_SIZE(st->failing); l++)
                json_array_foreach(st->failing[l], i, pod)
                        json_array_append_new(list, pod_json(pod, problems));
        return list;
}

/* ---- API, etcd ---- */

/* An API server that is down while others answer is a problem of its own. If none answers, or the
 * machine is off, that was reported already. */
static json_t *servers_json(const struct status *st, json_t *problems)
{
        json_t *list = json_array();
        for (size_t i = 0; i < st->site->count; i++) {
                const struct status_node *n = &st->nodes[i];
                const char *off =
                        n->member->machine->state == MACHINE_RUNNING ? NULL : "its machine is off";
                const char *trouble = n->api_ready     ? NULL
                                      : off            ? off
                                      : !st->api_asked ? "the cluster does not exist yet"
                                      : n->api_trouble ? n->api_trouble
                                                       : "no answer";
                if (!(n->member->node->pool->roles & ROLE_CONTROL_PLANE))
                        continue;
                json_t *o = json_object();
                status_text(o, "node", n->member->node->name);
                json_object_set_new(o, "ready", json_boolean(n->api_ready));
                status_text(o, "trouble", trouble);
                json_array_append_new(list, o);
                if (trouble && st->api_ready && !off)
                        status_problem(
                                problems, "API server on %s: %s", n->member->node->name, trouble);
        }
        return list;
}

static json_t *api_json(const struct status *st, json_t *problems)
{
        const struct cluster *c = st->site->cluster;
        const char *host = cluster_endpoint_host(c);
        struct ip ip;
        char *server CLEANUP(free_p) =
                host && *host ? xasprintf(ip_parse(host, &ip) && ip.family == 6 ? "https://[%s]:%ld"
                                                                                : "https://%s:%ld",
                                        host, cluster_endpoint_port(c))
                              : NULL;
        const char *trouble = st->api_asked ? st->api_trouble : "the cluster does not exist yet";
        json_t *o = json_object();
        status_text(o, "server", server);
        json_object_set_new(o, "ready", json_boolean(st->api_ready));
        status_text(o, "version", st->api_version);
        status_text(o, "trouble", trouble);
        if (!st->api_ready)
                status_problem(problems, "the API is not ready: %s",
                        trouble ? trouble : "no reason is known");
        json_object_set_new(o, "servers", servers_json(st, problems));
        return o;
}

static json_t *status_json_member_json(const struct status_node *n, json_t *problems)
{
        struct etcd_state e;
        bool known = etcd_state(n->etcd, &e);
        const char *trouble = n->etcd_trouble ? n->etcd_trouble
                              : !known        ? "its machine could not be asked"
                              : json_array_size(e.errors)
                                      ? json_string_value(json_array_get(e.errors, 0))
                              : !e.leader ? "there is no leader"
                                          : NULL;
        json_t *o = json_object();
        status_text(o, "node", n->member->node->name);
        json_object_set_new(o, "healthy", json_boolean(!trouble));
        json_object_set_new(o, "leader", json_boolean(known && e.leader == e.id));
        status_text(o, "version", known ? e.version : NULL);
        json_object_set_new(o, "dbSize", json_integer(e.size));
        json_object_set_new(o, "inUse", json_integer(e.in_use));
        json_object_set_new(o, "alarms", etcd_alarms_json(&e));
        json_object_set_new(o, "defragment", json_boolean(known && etcd_wants_defrag(&e)));
        status_text(o, "trouble", trouble);
        if (trouble)
                status_problem(problems, "etcd on %s: %s", n->member->node->name, trouble);
        return o;
}

/* ---- certificates, versions, the lock ---- */

static json_t *certificates_json(const struct status *st, json_t *problems)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *what CLEANUP(free_p) = NULL, text[32];
        time_t when;
        struct tm tm;
        if (!st->site->identity.prefix ||
                identity_soonest(&st->site->identity, st->site->cluster, &when, &what, &err) < 0) {
                if (err.message)
                        status_problem(problems, "certificates: %s", err.message);
                return json_null();
        }
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &tm));
        if (when <= st->site->identity.now)
                status_problem(
                        problems, "the certificate of %s has expired: slipway up renews it", what);
        json_t *o = json_object();
        status_text(o, "expires", text);
        json_object_set_new(o, "days", json_integer((when - st->site->identity.now) / 86400));
        status_text(o, "what", what);
        return o;
}

static json_t *versions_json(const struct status *st)
{
        char *wanted CLEANUP(free_p) = xasprintf("v%s", st->site->cluster->kubernetes.text);
        size_t running = 0, nodes = 0;
        for (size_t i = 0; i < st->site->count; i++) {
                const struct member *m = st->nodes[i].member;
                const char *version = json_string_value(json_object_get(
                        json_object_get(json_object_get(m->seen.object, "status"), "nodeInfo"),
                        "kubeletVersion"));
                nodes += m->node->pool->roles & ON_KUBE ? 1 : 0;
                running += version && streq(version, wanted);
        }
        return json_pack("{s:s, s:o, s:I}", "wanted", wanted, "running",
                st->api_ready ? json_integer((json_int_t)running) : json_null(), "nodes",
                (json_int_t)nodes);
}

/* Who holds the lock of the state directory, from the kernel's list: trying to take the lock could
 * make a run fail that starts at this moment. */
static json_t *run_json(const struct status *st)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str holder CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(st->site->identity.dir, "lock"),
                   *line CLEANUP(free_p) = NULL;
        FILE *f CLEANUP(fclose_p) = fopen("/proc/locks", "re");
        struct stat file;
        size_t cap = 0;
        bool held = false;
        if (!f || stat(path, &file) < 0)
                return json_null();
        char *inode CLEANUP(free_p) = xasprintf(":%ju ", (uintmax_t)file.st_ino);
        while (!held && getline(&line, &cap, f) > 0)
                held = strstr(line, "FLOCK") && strstr(line, inode);
        if (!held || file_read(path, 1024, &holder, &ignored) < 0)
                return json_null();
        return json_stringn_nocheck(str_text(&holder), strcspn(str_text(&holder), "\n"));
}

json_t *status_json(const struct status *st, bool *healthy)
{
        json_t *problems = json_array(), *nodes = json_array(), *etcd = json_array(),
               *others = json_array(), *o = json_object();
        const struct machine *bastion = site_bastion(st->site);
        if (bastion)
                json_object_set_new(o, "bastion", bastion_json(bastion, problems));
        json_t *api = api_json(st, problems);
        for (size_t i = 0; i < st->site->count; i++) {
                json_array_append_new(nodes, node_json(st, &st->nodes[i], problems));
                if (st->nodes[i].member->node->pool->roles & ROLE_ETCD)
                        json_array_append_new(
                                etcd, status_json_member_json(&st->nodes[i], problems));
        }
        for (size_t i = 0; i < json_array_size(st->others); i++)
                json_array_append_new(others, other_json(st, json_array_get(st->others, i)));
        json_t *releases = status_releases_json(st, problems);
        json_t *addons = status_addons_json(st, problems);
        json_t *login = status_login_json(st, problems);
        json_t *pods = pods_json(st, problems), *certificates = certificates_json(st, problems);
        *healthy = !json_array_size(problems);
        status_text(o, "cluster", st->site->cluster->name);
        json_object_set_new(o, "healthy", json_boolean(*healthy));
        json_object_set_new(o, "problems", problems);
        json_object_set_new(o, "nodes", nodes);
        json_object_set_new(o, "others", others);
        json_object_set_new(o, "api", api);
        json_object_set_new(o, "pods", pods);
        json_object_set_new(o, "etcd", etcd);
        if (st->site->cluster->services.charts.n)
                json_object_set(o, "releases", releases);
        json_decref(releases);
        if (st->addon_count)
                json_object_set(o, "addons", addons);
        json_decref(addons);
        if (login)
                json_object_set_new(o, "login", login);
        json_object_set_new(o, "certificates", certificates);
        json_object_set_new(o, "kubernetes", versions_json(st));
        /* at least one machine has answered */
        if (st->hardening && json_array_size(json_object_get(st->hardening, "controls")))
                json_object_set(o, "hardening", st->hardening);
        json_object_set_new(o, "run", run_json(st));
        return o;
}

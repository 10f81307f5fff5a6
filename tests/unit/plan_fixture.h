/* A site of five nodes as it was observed: for tests of the plan. */
#ifndef SLIPWAY_PLAN_FIXTURE_H
#define SLIPWAY_PLAN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/plan/encrypt.h"
#include "cluster/etcd/etcd.h"
#include "cluster/leave/leave.h"
#include "cluster/plan/approval.h"
#include "cluster/plan/endpoint.h"
#include "cluster/up/up.h"

#define COUNT 5 /* c1 c2 c3 w1 w2; others are gone */

static struct pool control = { .name = "control", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD },
                   worker = { .name = "worker", .roles = ROLE_WORKER };
static struct node nodes[COUNT + 2];
static struct machine machines[COUNT + 2];
static struct member members[COUNT], gone[2], *gone_list[] = { &gone[0], &gone[1] };
static struct etcd_peer peers[6];
static const struct provider_ops makes = { .makes_machines = true };
static struct cluster cluster;
static struct site site;
static struct arena arena;
static struct step connected;
static char dir[] = "/tmp/slipway-plan-XXXXXX";

const void *agent_bytes(size_t *n)
{
        *n = 0;
        return "";
}

static void member_set(struct member *m, size_t i, const char *name, const struct pool *pool)
{
        nodes[i] = (struct node){ .name = name, .pool = pool };
        assert_true(ip_parse("192.0.2.1", &nodes[i].ip[0]));
        nodes[i].ip[0].b[3] = (uint8_t)(i + 1);
        machines[i] = (struct machine){ .state = MACHINE_RUNNING };
        *m = (struct member){ .site = &site,
                .node = &nodes[i],
                .machine = &machines[i],
                .run.connect = &connected,
                .run.link = (struct link *)&connected };
        m->seen.object =
                json_pack("{s:{s:{s:s}}}", "status", "nodeInfo", "kubeletVersion", "v1.26.3");
        m->seen.etcd_healthy = pool->roles & ROLE_ETCD;
        m->seen.said = pool->roles & ROLE_ETCD ? json_pack("{s:{}}", "etcd") : json_object();
}

/* etcd's own list: `n` control-plane nodes that have started. */
static void peers_set(size_t n)
{
        static const char *const names[] = { "c1", "c2", "c3", "g1", "g2" };
        for (size_t i = 0; i < n; i++)
                peers[i] = (struct etcd_peer){ .id = i + 1,
                        .name = names[i],
                        .peer = "https://192.0.2.99:2380",
                        .client = "https://192.0.2.99:2379" };
        site.found.peer_count = n;
}

/* A live cluster that is as the file says. */
static int setup(void **state)
{
        assert_non_null(mkdtemp(memcpy(dir, "/tmp/slipway-plan-XXXXXX", sizeof(dir))));
        cluster = (struct cluster){ .name = "demo", .nodes = nodes, .node_count = COUNT };
        assert_true(version_parse("1.26.3", &cluster.kubernetes));
        cluster.kubernetes.text = "1.26.3";
        site = (struct site){ .cluster = &cluster,
                .members = members,
                .count = COUNT,
                .found.removed = gone_list,
                .found.peers = peers,
                .ops = &makes,
                .found.live = true,
                .found.api_up = true };
        site.arena = &arena;
        site.identity.dir = dir;
        member_set(&members[0], 0, "c1", &control);
        member_set(&members[1], 1, "c2", &control);
        member_set(&members[2], 2, "c3", &control);
        member_set(&members[3], 3, "w1", &worker);
        member_set(&members[4], 4, "w2", &worker);
        peers_set(3);
        return 0;
}

static int teardown(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < COUNT + site.found.removed_count; i++) {
                struct member *m = i < COUNT ? &members[i] : &gone[i - COUNT];
                json_decref(m->seen.object);
                json_decref(m->seen.said);
        }
        free(site.found.version);
        arena_release(&arena);
        dir_remove(dir, &err);
        return 0;
}

static inline void no_etcd_data(struct member *m) { json_object_del(m->seen.said, "etcd"); }

static void planned(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (plan_make(&site, &err) < 0)
                fail_msg("%s", err.message);
}

/* Refused, with a sentence that says `part`, a hint that says nothing was changed, and this exit
 * status. */
static void refused(enum exit_status status, const char *part)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (plan_make(&site, &err) == 0)
                fail_msg("should be refused: %s", part);
        if (!strstr(err.message, part) || err.status != status || !err.hint ||
                !strstr(err.hint, "nothing was changed"))
                fail_msg("status %d, message \"%s\", hint \"%s\"; expected \"%s\"", err.status,
                        err.message, err.hint ? err.hint : "", part);
}

static void shows(const char *part)
{
        struct str text CLEANUP(str_release) = { 0 };
        plan_text(&site, true, &text);
        if (!strstr(str_text(&text), part))
                fail_msg("\"%s\" is not in:\n%s", part, str_text(&text));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif

/* Clusters from a few lines of YAML and an Identity of placeholders: enough to render NodeSpecs
 * without making a key. */
#ifndef NODE_FIXTURE_H
#define NODE_FIXTURE_H

#include "base/file.h"
#include "config/problem.h"
#include "node/nodespec.h"
#include "config/minors.h"

/* The beginning of a file; the fields of its spec come next. */
#define NODE_HEAD \
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: x}\nspec:\n  kubernetes: " KUBERNETES_NEWEST \
        "\n"

#define TEXT(s)   ((char *)(uintptr_t)(s)) /* the Identity owns its texts; here nobody does */
#define PEM(name) TEXT("-----BEGIN X-----\n" name "\n-----END X-----\n")

struct fixture {
        struct arena arena;
        struct cluster *cluster;
        struct identity identity;
        struct node_identity leaves[2]; /* of control-plane (and etcd) nodes, of workers */
        struct facts facts;
};

static const char ha_yaml[] =
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: ha}\nspec:\n  kubernetes: " KUBERNETES_NEWEST
        "\n  provider: {ssh: {user: root}}\n"
        "  api: {vip: 192.0.2.10}\n  encryption: secretbox\n  audit: metadata\n  admission: {podSecurity: baseline}\n  pools:\n"
        "    - {name: control, roles: [control-plane, etcd], hosts: [{name: c1, address: 192.0.2.11}, {name: c2, address: 192.0.2.12}, {name: c3, address: "
        "192.0.2.13}]}\n"
        "    - {name: worker, hosts: [{name: w1, address: 192.0.2.21, labels: {zone: a}}, {name: w2, address: 192.0.2.22}], disks: [{device: /dev/sdb, mount: "
        "/var/lib/containerd}]}\n";

static inline void fixture_init(struct fixture *f, const char *yaml)
{
        char path[] = "/tmp/slipway-node-XXXXXX";
        const char *files[] = { path };
        struct error err CLEANUP(error_release) = { 0 };
        *f = (struct fixture){ 0 };
        struct problems problems = { .arena = &f->arena };
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
        close(fd);
        int rc = cluster_load(&f->arena, files, 1, &f->cluster, &problems, &err);
        unlink(path);
        if (rc < 0) {
                struct str text CLEANUP(str_release) = { 0 };
                problems_text(&problems, 0, &text);
                fail_msg("%s\n%s", err.message, str_text(&text));
        }
        struct identity *id = &f->identity;
        for (size_t i = 0; i < CA_COUNT; i++)
                id->ca[i] = (struct authority){ .bundle = PEM("cert"),
                        .clients = PEM("cert"),
                        .cert = PEM("cert"),
                        .key = PEM("SECRET ca key"),
                        .chain = TEXT("") };
        id->sa_key = PEM("SECRET sa");
        id->sa_pub = PEM("sa");
        id->prefix = TEXT("ab12c");
        id->certificate_key =
                TEXT("5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2");
        id->encryption_key = TEXT("U0VDUkVU");
        id->encryption_key_name = TEXT("key1");
        id->vrrp_password = TEXT("secretpw");
        for (size_t k = 0; k < 2; k++)
                for (size_t i = 0; i < LEAF_COUNT; i++)
                        if (k == 0 || i >= LEAF_KUBELET_CLIENT)
                                f->leaves[k].leaf[i] = (struct leaf){ .cert = PEM("leaf"),
                                        .key = PEM("SECRET leaf") };
        for (size_t i = 0; i < f->cluster->node_count;
                i++) /* machines of a provider have no address yet */
                if (!f->cluster->nodes[i].ip[0].family) {
                        char text[IP_TEXT];
                        snprintf(text, sizeof(text), "10.9.%zu.%zu", i / 250, i % 250 + 1);
                        assert_true(ip_parse(text, &f->cluster->nodes[i].ip[0]));
                }
}

static inline struct spec_input fixture_input(struct fixture *f, const char *node)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct node *n = cluster_node(f->cluster, node);
        assert_non_null(n);
        if (!f->facts.os_id)
                assert_int_equal(facts_for(NULL, n, &f->facts, &err), 0);
        return (struct spec_input){ f->cluster, &f->identity,
                &f->leaves[!(n->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD))], n, &f->facts };
}

static inline void fixture_render(struct fixture *f, const char *node, struct nodespec *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct spec_input in = fixture_input(f, node);
        if (node_render(&in, s, &err) < 0)
                fail_msg("%s", err.message);
}

static inline void fixture_release(struct fixture *f) { arena_release(&f->arena); }

static inline const char *content(const struct nodespec *s, const char *path)
{
        const struct spec_entry *e = nodespec_find(s, SPEC_FILE, path);
        if (!e)
                fail_msg("there is no %s", path);
        assert_int_equal(strlen(e->content), e->len);
        return e->content;
}

static inline void has(const struct nodespec *s, const char *path, const char *text)
{
        if (!strstr(content(s, path), text))
                fail_msg("%s has no \"%s\":\n%s", path, text, content(s, path));
}

static inline void has_not(const struct nodespec *s, const char *path, const char *text)
{
        if (strstr(content(s, path), text))
                fail_msg("%s has \"%s\":\n%s", path, text, content(s, path));
}

#endif

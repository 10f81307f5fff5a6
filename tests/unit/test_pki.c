/* What the certificates say and for how long, own authorities, kubeconfigs. */
#include "pki_fixture.h"

#define NODE_SANS "c1 192.0.2.11 2001:db8::11"
static const struct leaf_expect {
        enum leaf_id id;
        const char *cn, *o;
        enum ca_id ca;
        unsigned usage;
        const char *sans;
} expected[] = {
        { LEAF_APISERVER, "kube-apiserver", "", CA_CLUSTER, USAGE_SERVER,
                "c1 kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local 10.96.0.1 fd00:96::1 192.0.2.11 2001:db8::11 "
                "localhost 127.0.0.1 ::1 192.0.2.10 k8s.example.net 203.0.113.7" },
        { LEAF_APISERVER_KUBELET_CLIENT, "kube-apiserver-kubelet-client", "", CA_CLUSTER,
                USAGE_CLIENT, "" },
        { LEAF_APISERVER_ETCD_CLIENT, "kube-apiserver-etcd-client", "", CA_ETCD, USAGE_CLIENT, "" },
        { LEAF_FRONT_PROXY_CLIENT, "front-proxy-client", "", CA_FRONT_PROXY, USAGE_CLIENT, "" },
        { LEAF_CONTROLLER_MANAGER, "system:kube-controller-manager", "", CA_CLUSTER, USAGE_CLIENT,
                "" },
        { LEAF_SCHEDULER, "system:kube-scheduler", "", CA_CLUSTER, USAGE_CLIENT, "" },
        { LEAF_ADMIN, "kubernetes-admin", "kubeadm:cluster-admins", CA_CLUSTER, USAGE_CLIENT, "" },
        { LEAF_SUPER_ADMIN, "kubernetes-super-admin", "system:masters", CA_CLUSTER, USAGE_CLIENT,
                "" },
        { LEAF_ETCD_SERVER, "c1", "", CA_ETCD, USAGE_SERVER | USAGE_CLIENT,
                NODE_SANS " localhost 127.0.0.1 ::1" },
        { LEAF_ETCD_PEER, "c1", "", CA_ETCD, USAGE_SERVER | USAGE_CLIENT,
                NODE_SANS " localhost 127.0.0.1 ::1" },
        { LEAF_ETCD_HEALTHCHECK, "kube-etcd-healthcheck-client", "", CA_ETCD, USAGE_CLIENT, "" },
        { LEAF_KUBELET_CLIENT, "system:node:c1", "system:nodes", CA_CLUSTER, USAGE_CLIENT, "" },
        { LEAF_KUBELET_SERVER, "system:node:c1", "system:nodes", CA_CLUSTER, USAGE_SERVER,
                NODE_SANS },
        { LEAF_KUBE_PROXY, "system:kube-proxy", "", CA_CLUSTER, USAGE_CLIENT, "" },
        { LEAF_FLANNEL, "slipway:flannel:c1", "slipway:flannel", CA_CLUSTER, USAGE_CLIENT, "" },
        { LEAF_CALICO, "slipway:calico:c1", "slipway:calico", CA_CLUSTER, USAGE_CLIENT, "" },
        { LEAF_MULTUS, "slipway:multus:c1", "slipway:multus", CA_CLUSTER, USAGE_CLIENT, "" },
};

static void test_table(void **unused)
{
        struct identity id;
        struct node_identity n;
        assert_int_equal(ARRAY_SIZE(expected), LEAF_COUNT);
        open_ok(&id, NOW);
        node_ok(&id, 0, &n);
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                const struct leaf_expect *e = &expected[i];
                X509 *x CLEANUP(x509_p) = parse(n.leaf[e->id].cert);
                char *cn CLEANUP(free_p) = subject(x, NID_commonName),
                         *o CLEANUP(free_p) = subject(x, NID_organizationName),
                         *names CLEANUP(free_p) = sans(x);
                assert_string_equal(cn, e->cn);
                assert_string_equal(o, e->o);
                assert_string_equal(names, e->sans);
                check_leaf(&n.leaf[e->id], &id.ca[e->ca], e->usage, NOW);
                assert_int_equal(asn1_time(X509_get0_notAfter(x)), NOW + YEAR);
        }
        node_identity_release(&n);
        identity_release(&id);
}

static void test_roles(void **unused)
{
        struct identity id;
        struct node_identity n;
        open_ok(&id, NOW);
        node_ok(&id, 1, &n); /* the second control-plane node */
        assert_null(n.leaf[LEAF_SUPER_ADMIN].cert);
        assert_non_null(n.leaf[LEAF_ADMIN].cert);
        node_identity_release(&n);
        node_ok(&id, 4, &n);
        for (int l = 0; l < LEAF_COUNT; l++)
                assert_true(
                        (n.leaf[l].cert != NULL) == (l == LEAF_ETCD_SERVER || l == LEAF_ETCD_PEER ||
                                                            l == LEAF_ETCD_HEALTHCHECK));
        node_identity_release(&n);
        cluster.network.fabric.kind = FABRIC_NONE;
        cluster.network.proxy_mode = PROXY_NONE;
        cluster.services.addons.n = 0;
        node_ok(&id, 2, &n);
        for (int l = 0; l < LEAF_COUNT; l++)
                assert_true((n.leaf[l].cert != NULL) ==
                            (l == LEAF_KUBELET_CLIENT || l == LEAF_KUBELET_SERVER));
        node_identity_release(&n);
        identity_release(&id);
}

static void test_old_kubernetes(void **unused)
{
        struct identity id;
        struct node_identity n;
        cluster.kubernetes = (struct version){ 1, 36, 0, "1.36.0" };
        open_ok(&id, NOW);
        node_ok(&id, 0, &n);
        X509 *x CLEANUP(x509_p) = parse(n.leaf[LEAF_APISERVER_KUBELET_CLIENT].cert);
        char *o CLEANUP(free_p) = subject(x, NID_organizationName);
        assert_string_equal(o, "kubeadm:cluster-admins");
        node_identity_release(&n);
        identity_release(&id);
}

static void test_no_address(void **unused)
{
        struct identity id;
        struct node_identity n;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, NOW);
        nodes[2].ip[0].family = 0;
        assert_true(identity_node(&id, &cluster, &nodes[2], &n, &err) < 0);
        assert_non_null(strstr(err.message, "w1"));
        identity_release(&id);
}

static void test_lb_and_dex(void **unused)
{
        struct identity id;
        cluster.services.dex.host = "dex.example.net";
        cluster.provider.kind = PROVIDER_AWS;
        open_ok(&id, NOW);
        check_leaf(&id.lb, &id.ca[CA_CLUSTER], USAGE_SERVER, NOW);
        check_leaf(&id.dex, &id.ca[CA_CLUSTER], USAGE_SERVER, NOW);
        X509 *lb CLEANUP(x509_p) = parse(id.lb.cert), *dex CLEANUP(x509_p) = parse(id.dex.cert);
        char *lb_names CLEANUP(free_p) = sans(lb), *dex_names CLEANUP(free_p) = sans(dex),
                       *before CLEANUP(free_p) = xstrdup(id.lb.cert);
        assert_string_equal(lb_names, "192.0.2.10 k8s.example.net 203.0.113.7");
        assert_string_equal(dex_names,
                "dex.example.net dex dex.slipway-dex dex.slipway-dex.svc dex.slipway-dex.svc.cluster.local");
        identity_release(&id);
        char *path CLEANUP(free_p) = path_join(dir, "pki/lb.key"),
                   *other CLEANUP(free_p) = path_join(dir, "pki/dex.key"),
                   *key CLEANUP(free_p) = get(other);
        put(path, key); /* not its own: made again */
        open_ok(&id, NOW);
        assert_string_not_equal(id.lb.cert, before);
        check_leaf(&id.lb, &id.ca[CA_CLUSTER], USAGE_SERVER, NOW);
        /* who only looks sees the same, also what will be renewed, and writes nothing */
        struct identity look;
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(identity_look(state, &cluster, NOW, &look, &err), 0);
        assert_string_equal(look.dex.cert, id.dex.cert);
        assert_string_equal(look.dex.key, id.dex.key);
        identity_release(&look);
        cluster.services.dex.host = "login.example.net";
        assert_int_equal(identity_look(state, &cluster, NOW, &look, &err), 0);
        assert_string_not_equal(look.dex.cert, id.dex.cert);
        identity_release(&look);
        char *same CLEANUP(free_p) = get(other);
        assert_string_equal(same, key);
        /* certs renew */
        cluster.services.dex.host = "dex.example.net";
        id.renew = true;
        assert_int_equal(identity_extras(&id, &cluster, &err), 0);
        check_leaf(&id.dex, &id.ca[CA_CLUSTER], USAGE_SERVER, NOW);
        assert_string_not_equal(id.dex.key, key);
        identity_release(&id);
}

static void test_users(void **unused)
{
        struct identity id;
        struct leaf l, again;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, NOW);
        assert_int_equal(identity_user(&id, &cluster, &users[0], &l, &err), 0);
        X509 *x CLEANUP(x509_p) = parse(l.cert);
        char *cn CLEANUP(free_p) = subject(x, NID_commonName),
                 *o CLEANUP(free_p) = subject(x, NID_organizationName);
        assert_string_equal(cn, "alice");
        assert_string_equal(o, "platform,ops");
        assert_int_equal(identity_user(&id, &cluster, &users[0], &again, &err), 0);
        assert_string_equal(l.key, again.key);
        leaf_release(&l);
        leaf_release(&again);
        assert_int_equal(identity_user(&id, &cluster, &users[1], &l, &err),
                0); /* a name that would leave the directory */
        X509 *y CLEANUP(x509_p) = parse(l.cert);
        char *o2 CLEANUP(free_p) = subject(y, NID_organizationName),
                 *path CLEANUP(free_p) = path_join(dir, "users/%2E.%2Froot%3A%20%23.pem");
        assert_string_equal(o2, ""); /* that it is an admin says a binding */
        assert_int_equal(asn1_time(X509_get0_notAfter(y)), NOW + 30 * DAY);
        assert_int_equal(access(path, F_OK), 0);
        leaf_release(&l);
        identity_release(&id);
}

static void test_algorithm(
        enum key_algorithm a, const char *type, int bits, int nid, const char *label)
{
        struct identity id;
        struct leaf l, again;
        struct error err CLEANUP(error_release) = { 0 };
        cluster.certificates.algorithm = a;
        open_ok(&id, NOW);
        assert_int_equal(identity_user(&id, &cluster, &users[0], &l, &err), 0);
        check_leaf(&l, &id.ca[CA_CLUSTER], USAGE_CLIENT, NOW);
        X509 *x CLEANUP(x509_p) = parse(l.cert);
        assert_true(EVP_PKEY_is_a(X509_get0_pubkey(x), type) &&
                    EVP_PKEY_get_bits(X509_get0_pubkey(x)) == bits &&
                    X509_get_signature_nid(x) == nid);
        assert_true(has_prefix(l.key, label) && has_prefix(id.ca[0].key, label) &&
                    has_prefix(id.sa_key, label));
        identity_release(&id);
        open_ok(&id, NOW);
        assert_int_equal(identity_user(&id, &cluster, &users[0], &again, &err), 0);
        assert_string_equal(l.cert, again.cert);
        leaf_release(&l);
        leaf_release(&again);
        identity_release(&id);
}

static void test_p384(void **unused)
{
        test_algorithm(KEY_ECDSA_P384, "EC", 384, NID_ecdsa_with_SHA384,
                "-----BEGIN EC PRIVATE KEY-----\n");
}
static void test_rsa_2048(void **unused)
{
        test_algorithm(KEY_RSA_2048, "RSA", 2048, NID_sha256WithRSAEncryption,
                "-----BEGIN RSA PRIVATE KEY-----\n");
}

/* The EC key encoded by hand is what OpenSSL itself would write. */
static void test_key_encoding(void **unused)
{
        struct pki *p = pki_new();
        struct error err CLEANUP(error_release) = { 0 };
        for (int a = KEY_ECDSA_P256; a <= KEY_RSA_4096; a++) {
                EVP_PKEY *k CLEANUP(pkey_p) = NULL;
                struct str ours CLEANUP(str_release) = { 0 }, theirs CLEANUP(str_release) = { 0 },
                                spki CLEANUP(str_release) = { 0 };
                unsigned char *der = NULL;
                assert_int_equal(key_generate(p, a, &k, &err), 0);
                assert_int_equal(key_pem(k, a, &ours, &err), 0);
                assert_int_equal(key_pem_any(k, &theirs, &err), 0);
                assert_string_equal(ours.data, theirs.data);
                assert_int_equal(key_spki(k, &spki, &err), 0);
                int n = i2d_PUBKEY(k, &der);
                assert_true((size_t)n == spki.len && memcmp(der, spki.data, spki.len) == 0 &&
                            spki.len == algorithm_table[a].spki_len);
                OPENSSL_free(der);
        }
        pki_free(p);
}

static bool same_leaf(time_t now, enum leaf_id l)
{
        struct identity id;
        struct node_identity n;
        static char *before;
        open_ok(&id, now);
        node_ok(&id, 0, &n);
        for (int i = 0; i < LEAF_COUNT; i++)
                check_leaf(&n.leaf[i], &id.ca[expected[i].ca], expected[i].usage, now);
        bool same = before && streq(before, n.leaf[l].cert);
        free(before);
        before = now ? xstrdup(n.leaf[l].cert) : NULL;
        node_identity_release(&n);
        identity_release(&id);
        return same;
}

static void test_renewal(void **unused)
{
        same_leaf(NOW, LEAF_ADMIN);
        assert_true(same_leaf(NOW + YEAR / 2, LEAF_ADMIN));
        assert_true(same_leaf(NOW + YEAR * 2 / 3 - DAY, LEAF_ADMIN));
        assert_false(same_leaf(NOW + YEAR * 2 / 3 + DAY, LEAF_ADMIN)); /* less than a third left */
        assert_true(same_leaf(NOW + YEAR * 2 / 3 + 2 * DAY, LEAF_ADMIN));
        assert_false(same_leaf(NOW + 4 * YEAR, LEAF_ADMIN)); /* expired */
        assert_false(
                same_leaf(NOW + 3 * YEAR, LEAF_ADMIN)); /* the clock went back: not yet valid */
        assert_false(same_leaf(NOW + 10 * YEAR - 90 * DAY, LEAF_ADMIN));
        assert_true(same_leaf(NOW + 10 * YEAR - DAY,
                LEAF_ADMIN)); /* a new one could not outlive the authority either */
        open_refused(NOW + 10 * YEAR, EXIT_STATE, "expired on 2037-01-12");
        open_refused(NOW - DAY, EXIT_STATE, "is not valid before");
}

static void test_beyond_2049(void **unused)
{
        struct identity id;
        cluster.certificates.ca_lifetime = 100 * YEAR;
        cluster.certificates.lifetime = 90 * YEAR;
        users[1].lifetime = 0;
        run_all(NOW);
        struct str a CLEANUP(str_release) = { 0 }, b CLEANUP(str_release) = { 0 };
        tree_text(state, &a);
        run_all(NOW + YEAR);
        tree_text(state, &b);
        assert_string_equal(a.data, b.data);
        open_ok(&id, NOW);
        assert_int_equal(asn1_time(X509_get0_notAfter(id.ca[0].x509)), NOW + 100 * YEAR);
        identity_release(&id);
}

/* Only the leaf whose names changed is issued again. */
static void test_changed_names(void **unused)
{
        struct identity id;
        struct node_identity a, b;
        static const char *more[] = { "k8s.example.net", "203.0.113.7", "api.example.org" };
        open_ok(&id, NOW);
        node_ok(&id, 0, &a);
        cluster.api.names = (struct strings){ 3, more };
        node_ok(&id, 0, &b);
        for (int l = 0; l < LEAF_COUNT; l++)
                assert_true(streq(a.leaf[l].key, b.leaf[l].key) == (l != LEAF_APISERVER));
        node_identity_release(&a);
        node_identity_release(&b);
        cluster.certificates.algorithm = KEY_ECDSA_P384;
        node_ok(&id, 2, &a);
        check_leaf(&a.leaf[LEAF_KUBELET_CLIENT], &id.ca[CA_CLUSTER], USAGE_CLIENT, NOW);
        node_identity_release(&a);
        identity_release(&id);
}

static void test_name_not_ascii(void **unused)
{
        static const char *names[] = { "k8s.münchen.example" };
        cluster.api.names = (struct strings){ 1, names };
        open_refused(NOW, EXIT_CONFIG,
                "api.names: a certificate cannot contain \"k8s.münchen.example\"");
        assert_int_not_equal(access(state, F_OK), 0);
}

/* --- own authorities --- */

enum {
        CA_PLAIN = 0,
        CA_NOT = 1,
        CA_NO_SIGN = 2,
        CA_EXPIRED = 4,
        CA_PATHLEN0 = 8,
        CA_SERVER_ONLY = 16,
        CA_FUTURE = 32,
        CA_NO_KEY_ID = 64
};

static void add_ext(X509 *x, int nid, const char *value)
{
        X509V3_CTX ctx;
        X509V3_set_ctx(&ctx, NULL, x, NULL, NULL, 0);
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        assert_non_null(e);
        X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
}

static X509 *make_ca(const char *cn, EVP_PKEY *k, X509 *issuer, EVP_PKEY *issuer_key, unsigned how)
{
        X509 *x = X509_new();
        X509_NAME *name = X509_get_subject_name(x);
        X509_set_version(x, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(x), random());
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0);
        X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : name);
        ASN1_TIME_set(X509_getm_notBefore(x), how & CA_FUTURE ? NOW + DAY : NOW - 20 * DAY);
        ASN1_TIME_set(X509_getm_notAfter(x), how & CA_EXPIRED ? NOW - DAY : NOW + 100 * DAY);
        X509_set_pubkey(x, k);
        if (!(how & CA_NOT))
                add_ext(x, NID_basic_constraints,
                        how & CA_PATHLEN0 ? "critical,CA:TRUE,pathlen:0" : "critical,CA:TRUE");
        add_ext(x, NID_key_usage,
                how & CA_NO_SIGN ? "critical,cRLSign" : "critical,keyCertSign,cRLSign");
        if (!(how & CA_NO_KEY_ID))
                add_ext(x, NID_subject_key_identifier, "hash");
        if (how & CA_SERVER_ONLY)
                add_ext(x, NID_ext_key_usage, "serverAuth");
        assert_true(X509_sign(x, issuer_key ? issuer_key : k, EVP_sha256()) > 0);
        return x;
}

static void save(const char *name, X509 *const *certs, size_t n, EVP_PKEY *k, const char *password)
{
        char *path CLEANUP(free_p) = path_join(tmp, name);
        FILE *f CLEANUP(fclose_p) = fopen(path, "w");
        fchmod(fileno(f), 0600);
        for (size_t i = 0; i < n; i++)
                PEM_write_X509(f, certs[i]);
        if (k)
                PEM_write_PKCS8PrivateKey(f, k, password ? EVP_aes_256_cbc() : NULL, password,
                        password ? (int)strlen(password) : 0, NULL, NULL);
}

static void bring(X509 *const *certs, size_t n, EVP_PKEY *k)
{
        save("own.crt", certs, n, NULL, NULL);
        save("own.key", NULL, 0, k, NULL);
        cluster.certificates.ca = (struct own_ca){ .certificate = "own.crt", .key = "own.key" };
}

static void test_own_root(void **unused)
{
        EVP_PKEY *k CLEANUP(pkey_p) = EVP_RSA_gen(2048), *k2 CLEANUP(pkey_p) = EVP_EC_gen("P-521");
        X509 *root CLEANUP(x509_p) = make_ca("Our Root", k, NULL, NULL, CA_PLAIN),
                   *other CLEANUP(x509_p) = make_ca("Our Root", k2, NULL, NULL, CA_NO_KEY_ID);
        struct identity id;
        struct node_identity n;
        bring(&root, 1, k);
        open_ok(&id, NOW);
        node_ok(&id, 0, &n);
        check_leaf(&n.leaf[LEAF_APISERVER], &id.ca[CA_CLUSTER], USAGE_SERVER, NOW);
        X509 *x CLEANUP(x509_p) = parse(n.leaf[LEAF_APISERVER].cert);
        assert_int_equal(
                asn1_time(X509_get0_notAfter(x)), NOW + 100 * DAY); /* never outlives its issuer */
        assert_string_equal(id.ca[CA_CLUSTER].chain, "");
        assert_true(has_prefix(id.ca[CA_CLUSTER].key, "-----BEGIN RSA PRIVATE KEY-----"));
        node_identity_release(&n);
        identity_release(&id);
        run_all(NOW + DAY);
        bring(&other, 1, k2);
        open_refused(NOW, EXIT_CONFIG, "is not the CA that this cluster was made with");
        char *path CLEANUP(free_p) = path_join(tmp, "own.crt");
        unlink(path); /* taken away after it was taken in: nothing to compare with */
        run_all(NOW);
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(dir_remove(state, &err), 0);
        bring(&other, 1, k2);
        run_all(NOW); /* P-521 signs too, and one without a key id */
}

static void test_own_intermediate(void **unused)
{
        EVP_PKEY *rk CLEANUP(pkey_p) = EVP_EC_gen("P-384"),
                     *ik CLEANUP(pkey_p) = EVP_EC_gen("P-256");
        X509 *root CLEANUP(x509_p) = make_ca("Root", rk, NULL, NULL, CA_PLAIN),
                   *mid CLEANUP(x509_p) = make_ca("Mid", ik, root, rk, CA_PATHLEN0);
        struct identity id;
        struct node_identity n;
        X509 *chain[] = { mid, root }, *wrong[] = { root, mid };
        bring(chain, 2, ik);
        open_ok(&id, NOW);
        node_ok(&id, 2, &n);
        const char *cert = n.leaf[LEAF_KUBELET_SERVER].cert;
        check_leaf(&n.leaf[LEAF_KUBELET_SERVER], &id.ca[CA_CLUSTER], USAGE_SERVER, NOW);
        assert_true(has_suffix(cert, id.ca[CA_CLUSTER].chain) &&
                    streq(id.ca[CA_CLUSTER].chain, id.ca[CA_CLUSTER].cert));
        assert_true(has_prefix(id.ca[CA_CLUSTER].bundle, id.ca[CA_CLUSTER].cert) &&
                    strlen(id.ca[CA_CLUSTER].bundle) > strlen(id.ca[CA_CLUSTER].cert));
        node_identity_release(&n);
        identity_release(&id);
        struct str a CLEANUP(str_release) = { 0 }, b CLEANUP(str_release) = { 0 };
        run_all(NOW);
        tree_text(state, &a);
        run_all(NOW);
        tree_text(state, &b);
        assert_string_equal(a.data, b.data);
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(dir_remove(state, &err), 0);
        bring(wrong, 2, ik);
        open_refused(NOW, EXIT_CONFIG, "belongs to certificate 2 of the file");
        bring(&mid, 1, ik); /* without its root: it is trusted by itself */
        run_all(NOW);
}

static void unfit(unsigned how, const char *part)
{
        EVP_PKEY *k CLEANUP(pkey_p) = EVP_EC_gen("P-256");
        X509 *x CLEANUP(x509_p) = make_ca("Unfit", k, NULL, NULL, how);
        bring(&x, 1, k);
        open_refused(NOW, EXIT_CONFIG, part);
        char *pki CLEANUP(free_p) = path_join(dir, "pki");
        assert_int_not_equal(access(pki, F_OK), 0); /* nothing was made */
}

static void test_own_unfit(void **unused)
{
        unfit(CA_NOT, "is not a CA");
        unfit(CA_NO_SIGN, "keyUsage lacks keyCertSign");
        unfit(CA_EXPIRED, "expired on 2027-01-14");
        unfit(CA_FUTURE, "is not valid before 2027-01-16");
        unfit(CA_SERVER_ONLY, "extendedKeyUsage lacks");
        EVP_PKEY *k CLEANUP(pkey_p) = EVP_EC_gen("P-256"),
                    *k2 CLEANUP(pkey_p) = EVP_EC_gen("P-256"),
                    *k3 CLEANUP(pkey_p) = EVP_EC_gen("P-256");
        EVP_PKEY *small CLEANUP(pkey_p) = EVP_RSA_gen(1024),
                        *ed CLEANUP(pkey_p) = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        X509 *root CLEANUP(x509_p) = make_ca("Root", k, NULL, NULL, CA_PATHLEN0),
                   *mid CLEANUP(x509_p) = make_ca("Mid", k2, root, k, CA_PLAIN);
        X509 *low CLEANUP(x509_p) = make_ca("Low", k3, mid, k2, CA_PLAIN),
                  *weak CLEANUP(x509_p) = make_ca("Weak", small, NULL, NULL, CA_PLAIN);
        X509 *too_long[] = { low, mid, root }, *gap[] = { low, root };
        bring(&root, 1, k2);
        open_refused(NOW, EXIT_CONFIG, "the key does not belong to the certificate");
        bring(too_long, 3, k3);
        open_refused(NOW, EXIT_CONFIG, "allows 0 CAs below it (pathlen), and there are 2");
        bring(gap, 2, k3);
        open_refused(NOW, EXIT_CONFIG,
                "certificate 1 (/CN=Low) was not issued by certificate 2 (/CN=Root)");
        bring(&weak, 1, small);
        open_refused(NOW, EXIT_CONFIG, "slipway cannot sign with this kind of key");
        bring(&root, 1, ed);
        open_refused(NOW, EXIT_CONFIG, "slipway cannot sign with this kind of key");
        save("own.key", NULL, 0, k, "secret");
        open_refused(NOW, EXIT_CONFIG, "the key is encrypted");
        save("own.key", NULL, 0, NULL, NULL);
        open_refused(NOW, EXIT_CONFIG, "own.key: it is empty");
        char *key CLEANUP(free_p) = path_join(tmp, "own.key");
        chmod(key, 0640);
        open_refused(NOW, EXIT_CONFIG, "certificates.ca.key: others may read ");
        chmod(key, 0600);
        save("own.crt", NULL, 0, k, NULL);
        open_refused(NOW, EXIT_CONFIG, "holds no certificate in PEM form");
        cluster.certificates.ca.certificate = "gone.crt";
        open_refused(NOW, EXIT_CONFIG, "certificates.ca.certificate: cannot read ");
        cluster.certificates.ca.key = NULL;
        open_refused(NOW, EXIT_CONFIG, "certificates.ca has a certificate but no key");
        bring(&root, 1, k);
        cluster.certificates.etcd_ca = cluster.certificates.ca;
        open_refused(NOW, EXIT_CONFIG, "certificates.ca and certificates.etcdCA are the same CA");
}

static const char *text_at(
        const struct tree *t, const char *list, size_t i, const char *a, const char *b)
{
        const struct tree *l = tree_get(t, list);
        tree_each (e, l) {
                if (e->index == i)
                        return tree_get(b ? tree_get(e, a) : e, b ? b : a)->text;
        }
        return "";
}

static void test_kubeconfig(void **unused)
{
        struct identity id;
        struct str s CLEANUP(str_wipe_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        open_ok(&id, NOW);
        cluster.api.vip = "2001:db8::10";
        assert_int_equal(identity_kubeconfig(&id, &cluster, &s, &err), 0);
        assert_int_equal(tree_parse(&arena, "kubeconfig", s.data, s.len, &t, &err), 0);
        assert_string_equal(tree_get(t, "current-context")->text, "kubernetes-admin@test");
        assert_string_equal(
                text_at(t, "clusters", 0, "cluster", "server"), "https://[2001:db8::10]:6443");
        assert_string_equal(text_at(t, "contexts", 1, "name", NULL), "alice@test");
        assert_string_equal(text_at(t, "contexts", 1, "context", "user"), "alice");
        assert_string_equal(text_at(t, "users", 2, "name", NULL), "../root: #");
        assert_true(strlen(text_at(t, "users", 2, "user", "client-key-data")) > 200);
        struct kubeconfig k = { "test", "system:node:w1", "https://127.0.0.1:6443", id.ca[0].bundle,
                NULL, "/var/lib/kubelet/pki/kubelet-client-current.pem" };
        str_truncate(&s, 0);
        kubeconfig_text(&k, &s);
        assert_int_equal(tree_parse(&arena, "kubeconfig", s.data, s.len, &t, &err), 0);
        assert_string_equal(text_at(t, "users", 0, "user", "client-certificate"), k.client_pem);
        assert_string_equal(text_at(t, "users", 0, "user", "client-key"), k.client_pem);
        identity_release(&id);
}

/* Of the VIP's name and address clients get the name, and the certificate has both. */
static void test_vip_name(void **unused)
{
        struct identity id;
        struct str s CLEANUP(str_wipe_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        open_ok(&id, NOW);
        cluster.api.vip_name = "vip.example.net";
        assert_int_equal(identity_kubeconfig(&id, &cluster, &s, &err), 0);
        assert_int_equal(tree_parse(&arena, "kubeconfig", s.data, s.len, &t, &err), 0);
        assert_string_equal(
                text_at(t, "clusters", 0, "cluster", "server"), "https://vip.example.net:6443");
        struct want w = { 0 };
        leaf_want(LEAF_APISERVER, &cluster, &cluster.nodes[0], &w);
        assert_non_null(memmem(w.san.data, w.san.len, "vip.example.net", 15));
        assert_non_null(memmem(w.san.data, w.san.len, "\xc0\x00\x02\x0a", 4)); /* 192.0.2.10 */
        want_release(&w);
        identity_release(&id);
}

/* What kubeadm would do with it: the nonce first, the tag last. */
static void test_seal(void **unused)
{
        struct str sealed CLEANUP(str_release) = { 0 }, again CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        char key[SEAL_KEY_HEX], text[64] = "";
        uint8_t raw[256], bytes[32];
        size_t len;
        int n = 0, rest = 0;
        seal_key(key);
        assert_int_equal(strspn(key, "0123456789abcdef"), 64);
        assert_int_equal(seal_text(key, "the key of a CA", &sealed, &err), 0);
        assert_int_equal(seal_text(key, "the key of a CA", &again, &err), 0);
        assert_string_not_equal(str_text(&sealed), str_text(&again));
        assert_int_equal(OPENSSL_hexstr2buf_ex(bytes, 32, &len, key, 0), 1);
        int all = EVP_DecodeBlock(raw, (const uint8_t *)str_text(&sealed), (int)sealed.len);
        all -= (str_text(&sealed)[sealed.len - 1] == '=') +
               (str_text(&sealed)[sealed.len - 2] == '=');
        assert_int_equal(all, 12 + 15 + 16);
        EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
        assert_int_equal(EVP_DecryptInit_ex(x, EVP_aes_256_gcm(), NULL, bytes, raw), 1);
        assert_int_equal(EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_SET_TAG, 16, raw + 27), 1);
        assert_int_equal(EVP_DecryptUpdate(x, (uint8_t *)text, &n, raw + 12, 15), 1);
        assert_int_equal(EVP_DecryptFinal_ex(x, (uint8_t *)text + n, &rest), 1);
        assert_string_equal(text, "the key of a CA");
        EVP_CIPHER_CTX_free(x);
        assert_int_not_equal(seal_text("short", "x", &again, &err), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_table),
                T(test_roles),
                T(test_old_kubernetes),
                T(test_no_address),
                T(test_lb_and_dex),
                T(test_users),
                T(test_key_encoding),
                T(test_p384),
                T(test_rsa_2048),
                T(test_renewal),
                T(test_beyond_2049),
                T(test_changed_names),
                T(test_name_not_ascii),
                T(test_own_root),
                T(test_own_intermediate),
                T(test_own_unfit),
                T(test_kubeconfig),
                T(test_vip_name),
                T(test_seal),
        };
        return cmocka_run_group_tests_name("pki", tests, NULL, NULL);
}

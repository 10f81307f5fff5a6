/* The Identity: certificate authorities (CAs), keys, tokens and leaf certificates, made once and
 * stored under STATE/NAME/ (directories 0700, files 0600):
 *
 *   identity.json     encryption keys, prefix, VRRP password (secret)
 *   pki/ca.crt .key   also etcd/ca, front-proxy-ca, sa.key/.pub; written with fsync, because they
 *                     cannot be made again
 *   pki/lb.crt .key   load balancer; pki/dex.crt .key: OIDC provider (when wanted)
 *   nodes/NODE.pem    all leaves of one node: key and certificate of each under a "# leaf" line,
 *                     and the digest of the file
 *   users/USER.pem    the same for one user. The file of a user who is no longer in cluster.yaml
 *                     stays until the user's access is removed (people.c)
 *   past/USER.pem     an earlier certificate of a user that expires later than the current one:
 *                     certificates cannot be revoked
 *   joined/NODE       names and addresses for which a machine that kubeadm joined may get a
 *                     certificate (cluster/plan/serving.c)
 *   admin.pem         the administrator's leaf
 *   rotation.json     during a rotation: the phase of each CA or key (rotation.c), and the new
 *                     encryption key (secret)
 *   next/pki/...      during a rotation: the new CAs and the new sa.key
 *   lock
 *   creating          only while the first run makes the above: files beside it were never used
 *                     and are made again
 *
 * A second run changes nothing. A leaf is issued again when its names, issuer or algorithm are no
 * longer the wanted ones, when less than a third of its lifetime is left, or when its file is
 * damaged. A CA is never issued again: a damaged one is an error. */
#ifndef SLIPWAY_IDENTITY_H
#define SLIPWAY_IDENTITY_H

#include <time.h>

#include "config/cluster.h"

enum ca_id { CA_CLUSTER, CA_ETCD, CA_FRONT_PROXY, CA_COUNT };

/* Leaf certificates of a node. The table in leaf.c says CN, O, issuer, usage, names and which roles
 * have it. */
enum leaf_id {
        LEAF_APISERVER,                /* control plane: pki/apiserver */
        LEAF_APISERVER_KUBELET_CLIENT, /* pki/apiserver-kubelet-client */
        LEAF_APISERVER_ETCD_CLIENT,    /* pki/apiserver-etcd-client */
        LEAF_FRONT_PROXY_CLIENT,       /* pki/front-proxy-client */
        LEAF_CONTROLLER_MANAGER,       /* controller-manager.conf */
        LEAF_SCHEDULER,                /* scheduler.conf */
        LEAF_ADMIN,                    /* admin.conf */
        LEAF_SUPER_ADMIN,              /* super-admin.conf: the first control-plane node only */
        LEAF_ETCD_SERVER,              /* etcd: pki/etcd/server */
        LEAF_ETCD_PEER,                /* pki/etcd/peer */
        LEAF_ETCD_HEALTHCHECK,         /* pki/etcd/healthcheck-client */
        LEAF_KUBELET_CLIENT, /* control plane and workers: kubelet.conf, system:node:NAME */
        LEAF_KUBELET_SERVER, /* the kubelet's own port */
        LEAF_KUBE_PROXY,     /* system:kube-proxy */
        /* the fabric's client, user slipway:flannel:NAME, where the fabric is flannel */
        LEAF_FLANNEL,
        LEAF_CALICO, /* the same for Calico */
        LEAF_MULTUS, /* and for the addon multus */
        LEAF_COUNT
};

/* PEM texts; NULL where the node has no such leaf. `cert` has the intermediates behind the leaf
 * when the CA is an intermediate. */
struct leaf {
        char *cert, *key;
};

struct node_identity {
        struct leaf leaf[LEAF_COUNT];
        bool held; /* some are new and not yet written to the state */
};

struct authority {
        /* CA certificates that client certificates are verified with: `cert`, and during a rotation
         * also that of the other CA. */
        char *clients;
        /* ca.crt of the state, for verifying servers: the signing certificate first, then the chain
         * of a CA that cluster.yaml brings in. */
        char *bundle;
        /* The signing certificate alone, PEM, for verifying clients: trusting the root of an
         * intermediate would accept certificates of all its other intermediates. */
        char *cert;
        char *key;   /* PEM */
        char *chain; /* appended to each leaf: "" for a root, otherwise the intermediates */
        struct x509_st *x509;
        struct evp_pkey_st *pkey;
};

/* CAs and keys that can be rotated in a running cluster, and the phase of a rotation. Each phase is
 * rolled out to all nodes before the next begins. */
enum rotate_id {
        ROTATE_CA,
        ROTATE_ETCD,
        ROTATE_FRONT_PROXY,
        ROTATE_SA,
        ROTATE_ENCRYPTION,
        ROTATE_ENCRYPT,
        ROTATE_COUNT
};
enum rotate_phase {
        ROTATE_NOT,
        ROTATE_TRUST,  /* both are trusted; the old one signs (encrypts) */
        ROTATE_ISSUE,  /* both are trusted; the new one signs (encrypts) */
        ROTATE_FINISH, /* only the new one is trusted */
};
struct rotation {
        enum rotate_phase phase[ROTATE_COUNT];
        bool begun;    /* by this run and not yet on disk: see identity_encrypt */
        time_t issued; /* when all nodes began to sign tokens with the new sa.key; 0: not yet */
        char *encryption_key, *encryption_key_name; /* the new one */
};

struct identity {
        char *dir; /* STATE/NAME */
        int lock;
        struct authority ca[CA_COUNT];
        char *sa_key, *sa_pub; /* PEM */
        char *sa_other;        /* second public key whose tokens are accepted; NULL: none */
        char *prefix;          /* five random letters and digits, for names of cloud resources */
        char *token_id; /* bootstrap token that earlier versions made clusters with; NULL: none */
        char *certificate_key;     /* 64 hex: encrypts what kubeadm keeps in kubeadm-certs */
        char *encryption_key;      /* base64 of 32 bytes: --encryption-provider-config */
        char *encryption_key_name; /* "key1" */
        /* A second key, which only decrypts: the old one, or the next one. NULL: none */
        char *encryption_other, *encryption_other_name;
        struct rotation rotation;
        char *vrrp_password; /* eight letters and digits */
        struct leaf lb, dex; /* NULL texts where not wanted */
        time_t now;
        bool created; /* this run made it */
        bool looking; /* identity_look: nothing is written */
        /* identity_node writes no leaf: identity_keep does, once the node has it. */
        bool holding;
        bool lost;  /* a leaf was issued that is not written: it must not be given to anyone */
        bool renew; /* issue leaves again, whatever their age: all, or those of renew_nodes */
        const struct strings *renew_nodes;
        struct pki *pki; /* internal: prepared issuers, buffers */
};

/* Opens (and on the first run makes) the Identity of the cluster under `state` (".slipway"),
 * holding its lock until identity_release. `now` is passed in so that tests own the clock.
 * EXIT_STATE: locked, damaged or owned by another user;
 * EXIT_CONFIG: a CA of cluster.yaml cannot be used. */
int identity_open(const char *state, const struct cluster *c, time_t now, struct identity *out,
        struct error *err);
/* What an existing cluster has: PEM texts, and its encryption key (base64 of 32 bytes; NULL: none).
 * For an external etcd no CA is given: one is made. */
struct identity_given {
        const char *ca_cert[CA_COUNT], *ca_key[CA_COUNT], *sa_key;
        const char *encryption_key, *encryption_key_name;
};
/* The first run of an adopted cluster: like identity_open, but with the given CAs and keys instead
 * of new ones. -EEXIST when an Identity with other CAs exists. */
int identity_adopt(const char *state, const struct cluster *c, const struct identity_given *given,
        time_t now, struct identity *out, struct error *err);
/* Opens the Identity for reading: takes no lock, so it works during a run, and writes nothing.
 * -ENOENT when no run has made it yet; out->dir is set even then, and identity_release must be
 * called in any case. Leaves that would have to be issued are made in memory only. */
int identity_look(const char *state, const struct cluster *c, time_t now, struct identity *out,
        struct error *err);
/* When the first of all certificates in the state expires, and which that is ("node w1:
 * kubelet-client", malloc'd). -ENOENT, with nothing set, when there are none. */
int identity_soonest(const struct identity *id, const struct cluster *c, time_t *when, char **what,
        struct error *err);
/* sha256:HEX of the cluster CA's public key, for kubeadm's
 * --discovery-token-ca-cert-hash; malloc'd. */
char *identity_ca_hash(const struct identity *id, struct error *err);
/* The leaves of one node, from its file, or issued now and written. Free with
 * node_identity_release before the next node: there may be 10,000. node->ip[0] must be set. */
int identity_node(struct identity *id, const struct cluster *c, const struct node *n,
        struct node_identity *out, struct error *err);
/* Writes the leaves that identity_node did not write because of `holding`. */
int identity_keep(
        struct identity *id, const struct node *n, struct node_identity *leaves, struct error *err);
int identity_user(struct identity *id, const struct cluster *c, const struct user *u,
        struct leaf *out, struct error *err);
/* Whether the certificate (PEM) was issued by that CA and is valid now. */
bool identity_signed(const struct identity *id, enum ca_id ca, const char *pem);
/* The same for a client of the API: during a rotation either CA may have issued it. */
bool identity_lets_in(const struct identity *id, const char *pem);
/* The certificates of the load balancer and of dex: kept, or issued again where they differ, are
 * due or `renew` is set; only in memory where the Identity is only looked at. Whoever opens or
 * looks at an Identity has them. */
int identity_extras(struct identity *id, const struct cluster *c, struct error *err);
/* Whether leaves of the node are to be issued again (`renew`). */
bool identity_renews(const struct identity *id, const char *node);
/* The leaves of the administrator and of the users: from their files, or issued. */
int identity_people(struct identity *id, const struct cluster *c, struct error *err);

/* ---- people.c ---- */

struct outsider { /* a user with a certificate who is no longer in cluster.yaml */
        const char *name;
        struct strings groups; /* in the certificate */
        time_t until;          /* when the last of the certificates expires */
        const char *file;
};
/* Users whose access has not been removed yet; in the arena. */
size_t identity_outsiders(
        const struct identity *id, const struct cluster *c, struct arena *a, struct outsider **out);
/* Removes the key of a user whose access in the API has been removed. The certificate stays on
 * record until it expires. */
int identity_shut_out(struct identity *id, const struct outsider *o, struct error *err);

/* ---- rotation.c ---- */

/* Begins a rotation of `set` (1 << enum rotate_id bits): makes the new CAs and keys, or takes the
 * CAs from cluster.yaml. While a rotation is under way nothing is made, and `set` may only name
 * what is under way. */
int identity_rotate(
        const char *state, const struct cluster *c, unsigned set, time_t now, struct error *err);
/* What is being rotated: 1 << enum rotate_id bits. */
unsigned identity_rotating(const struct identity *id);
/* Goes to the next phase, after the current one has been rolled out. 1: the next phase must be
 * rolled out (open the Identity again); 0: nothing to do now. Service-account tokens are valid for
 * an hour, so the old sa.key is trusted for SA_KEEP seconds more, unless `now_too`. */
#define SA_KEEP 3900
int identity_rotate_on(
        struct identity *id, const struct cluster *c, bool now_too, struct error *err);
/* Records that encryption at rest begins in a cluster that had none
 * (rotation.phase[ROTATE_ENCRYPT]), if this run began it. */
int identity_encrypt(struct identity *id, struct error *err);
const char *rotate_name(enum rotate_id id); /* as on the command line: "cluster" */
const char *rotate_phase_name(enum rotate_phase p);

/* ---- describe.c: what a certificate says ---- */

struct cert_info {
        char subject[256], issuer[256];
        char serial[64]; /* hex */
        time_t from, to;
        bool authority;
};
/* Describes the first certificate of the PEM text; `*rest` (may be NULL) is the text behind it.
 * False: there is none. */
bool cert_describe(const char *pem, struct cert_info *out, const char **rest);
/* In the last third of its lifetime, when up renews it. */
bool cert_due(const struct cert_info *i, time_t now);

/* ---- request.c: certificate signing requests ---- */

struct cert_request { /* in the arena; only letters, digits and ".-:" */
        const char *cn, *o;
        struct strings names; /* "DNS:w1", "IP:10.0.0.1" */
};
/* Reads `base64` of PEM, as in a CertificateSigningRequest. NULL, or why it is not a request that a
 * kubelet would make. */
const char *request_read(struct arena *a, const char *base64, struct cert_request *out);

/* Makes everything written since open durable (one syncfs): call once after many identity_node. */
int identity_sync(struct identity *id, struct error *err);
void node_identity_release(struct node_identity *n);
void leaf_release(struct leaf *l);
void identity_release(struct identity *id);

/* A kubeconfig with one leaf embedded, or with the path of a file that has key
 * and certificate (client_pem). */
struct kubeconfig {
        const char *cluster, *user, *server; /* server: https://host:port */
        const char *ca;                      /* PEM bundle */
        const struct leaf *leaf;             /* embedded, or NULL */
        const char *client_pem;              /* path, or NULL */
        const char *server_name; /* name in its certificate, if not the host of `server`; or NULL */
        const struct oidc *oidc; /* the user logs in at this provider; or NULL */
        const char *oidc_ca;     /* its CA, PEM; NULL: the system's */
};
void kubeconfig_text(const struct kubeconfig *k, struct str *out);
/* One kubeconfig with a context for the administrator and one for each user; the server is the
 * cluster's endpoint. */
int identity_kubeconfig(
        struct identity *id, const struct cluster *c, struct str *out, struct error *err);
/* One for people who log in at the provider of auth.oidc, through kubelogin: no certificate and no
 * key is in it. `user` is only its name in the file. */
int identity_kubeconfig_oidc(const struct identity *id, const struct cluster *c, const char *user,
        struct str *out, struct error *err);
/* The CA of the provider's certificate; NULL: one of the system's. */
const char *identity_oidc_ca(const struct identity *id, const struct cluster *c);

/* Merges `ours` (of identity_kubeconfig) into the text of a user's own kubeconfig ("" for none;
 * `name` is for errors): entries of the same name are replaced in place, all others stay unchanged.
 * Users are renamed to their context's name, because every cluster has a kubernetes-admin. A
 * context keeps its other fields (a namespace). The current context changes when there is none, or
 * with `use`; *current (malloc'd) is the result. */
int kubeconfig_merge(const char *name, const char *theirs, const char *ours, bool use,
        struct str *out, char **current, struct error *err);

/* A fresh bootstrap token's two halves. */
void token_random(char id[7], char secret[17]);

/* ---- seal.c ---- */

#define SEAL_KEY_HEX 65
/* 32 random bytes as hexadecimal digits: kubeadm's --certificate-key. */
void seal_key(char out[SEAL_KEY_HEX]);
/* The text encrypted with that key as kubeadm does it (AES-256-GCM, the nonce first), in base64. */
int seal_text(const char *key, const char *text, struct str *out, struct error *err);

/* A secret for a purpose, 64 hex digits in the arena; NULL: there is no Identity. It is derived
 * from sa.key, so nothing has to be kept for it, and it is another one after that key was rotated.
 */
const char *identity_secret(const struct identity *id, const char *purpose, struct arena *a);

#endif

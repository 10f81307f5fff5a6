/* The Identity: authorities, keys, tokens and leaf certificates, made once and kept under STATE/NAME/ (0700, files 0600):
 *
 *   identity.json        tokens, encryption keys, prefix, VRRP password (secret)
 *   pki/ca.crt .key      and etcd/ca, front-proxy-ca, sa.key/.pub (written with fsync: they cannot be made again)
 *   pki/lb.crt .key      load balancer; pki/dex.crt .key: OIDC provider (when wanted)
 *   nodes/NODE.pem       every leaf of one node, key and certificate one after the other, each under a "# leaf" line, and the file's digest
 *   users/USER.pem       one user's, likewise
 *   admin.pem            the admin's, for the person at the keyboard
 *   rotation.json        while authorities or keys change: how far each is (rotation.c), and the new encryption key (secret)
 *   next/pki/...         the new authorities and the new sa.key, as long as that lasts
 *   lock
 *   creating             only while the first run makes the above: what it finds beside it was never used and is made again
 *
 * A second run changes nothing. A leaf is issued again when what is wanted of it (names, issuer, algorithm) is no longer what it says, when it
 * has expired or less than a third of its life is left, or when its file is damaged; an authority never is: a damaged one is refused with a sentence. */
#ifndef SLIPWAY_IDENTITY_H
#define SLIPWAY_IDENTITY_H

#include <time.h>

#include "config/cluster.h"

enum ca_id { CA_CLUSTER, CA_ETCD, CA_FRONT_PROXY, CA_COUNT };

/* Leaf certificates of a node. The table in leaf.c says CN, O, issuer, usage, names and which roles have it. */
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
        LEAF_KUBELET_CLIENT,           /* control plane and workers: kubelet.conf, system:node:NAME */
        LEAF_KUBELET_SERVER,           /* the kubelet's own port */
        LEAF_KUBE_PROXY,               /* system:kube-proxy */
        LEAF_FLANNEL,                  /* the fabric's client, user slipway:flannel, where the fabric is flannel */
        LEAF_COUNT
};

/* PEM texts; NULL where the node has no such leaf. `cert` holds intermediates behind the leaf when the authority is one. */
struct leaf {
        char *cert, *key;
};

struct node_identity {
        struct leaf leaf[LEAF_COUNT];
        bool held; /* some are new, and not written yet */
};

struct authority {
        char *clients; /* the certificates whose clients are let in: `cert`, and while it changes the other one's too */
        char *bundle;  /* ca.crt as the state holds it (the signing certificate first, then its chain, when brought in): for verifying servers */
        char *cert; /* the signing certificate alone, PEM: for verifying clients, where trusting the root of an intermediate would let in all its other children */
        char *key;   /* PEM */
        char *chain; /* what leaves carry behind themselves: "" for a root, the intermediates otherwise */
        struct x509_st *x509;
        struct evp_pkey_st *pkey;
};

/* What can be changed for a new one while the cluster lives, and how far that is. Each phase is rolled out before the next begins. */
enum rotate_id { ROTATE_CA, ROTATE_ETCD, ROTATE_FRONT_PROXY, ROTATE_SA, ROTATE_ENCRYPTION, ROTATE_COUNT };
enum rotate_phase {
        ROTATE_NOT,
        ROTATE_TRUST,  /* the new one is there and believed; the old one signs (encrypts) */
        ROTATE_ISSUE,  /* the new one signs; the old one is still believed */
        ROTATE_FINISH, /* the old one is believed no more */
};
struct rotation {
        enum rotate_phase phase[ROTATE_COUNT];
        time_t issued;                              /* since when all nodes sign tokens with the new sa.key; 0: not yet */
        char *encryption_key, *encryption_key_name; /* the new one */
};

struct identity {
        char *dir; /* STATE/NAME */
        int lock;
        struct authority ca[CA_COUNT];
        char *sa_key, *sa_pub;                          /* PEM */
        char *sa_other;                                 /* a public key whose tokens are believed besides; NULL: none */
        char *prefix;                                   /* five random letters and digits: names things in clouds */
        char *token_id, *token_secret;                  /* bootstrap token */
        char *certificate_key;                          /* 64 hex: encrypts what kubeadm keeps in kubeadm-certs */
        char *encryption_key;                           /* base64 of 32 bytes: --encryption-provider-config */
        char *encryption_key_name;                      /* "key1" */
        char *encryption_other, *encryption_other_name; /* a key that still decrypts, or will soon encrypt; NULL: none */
        struct rotation rotation;
        char *vrrp_password; /* eight letters and digits */
        struct leaf lb, dex; /* NULL texts where not wanted */
        time_t now;
        bool created; /* this run made it */
        bool looking; /* identity_look: nothing is written */
        bool holding; /* leaves of nodes are written by identity_keep: what is not done must not be remembered as done */
        bool renew;   /* leaves are issued anew whatever is left of them: of all, or of the nodes in renew_nodes */
        const struct strings *renew_nodes;
        struct pki *pki; /* of this room alone: prepared issuers, buffers */
};

/* Opens (and on the first run makes) the Identity of the cluster under `state` (".slipway"), holding its lock until identity_release.
 * `now` is passed in so that tests own the clock. EXIT_STATE on a lock, damage or foreign owner; EXIT_CONFIG on an unfit own CA. */
int identity_open(const char *state, const struct cluster *c, time_t now, struct identity *out, struct error *err);
/* What an existing cluster has: PEM texts, and its encryption key (base64 of 32 bytes; NULL: none). An etcd that is not the cluster's own has no authority here: one
 * is made. */
struct identity_given {
        const char *ca_cert[CA_COUNT], *ca_key[CA_COUNT], *sa_key;
        const char *encryption_key, *encryption_key_name;
};
/* The first run of a cluster that is taken over: like identity_open, but what is given is taken in instead of being made. -EEXIST when there is an Identity
 * already that has other authorities. */
int identity_adopt(const char *state, const struct cluster *c, const struct identity_given *given, time_t now, struct identity *out, struct error *err);
/* The same for verbs that only ask: takes no lock (so it works beside a run that holds it) and writes nothing. -ENOENT when no run has made it yet, with
 * out->dir set even then: it may be given to identity_release in any case. Leaves that would have to be issued are made in memory only. */
int identity_look(const char *state, const struct cluster *c, time_t now, struct identity *out, struct error *err);
/* When the first of all certificates in the state expires, and which that is ("node w1: kubelet-client", malloc'd). -ENOENT, with nothing set, when there are
 * none. */
int identity_soonest(const struct identity *id, const struct cluster *c, time_t *when, char **what, struct error *err);
/* sha256:HEX over the cluster authority's public key, as kubeadm's --discovery-token-ca-cert-hash wants it; malloc'd. */
char *identity_ca_hash(const struct identity *id, struct error *err);
/* The leaves of one node, from its file or issued now (and written). Free with node_identity_release: 10,000 nodes are done one by one.
 * node->ip[0] must be set. */
int identity_node(struct identity *id, const struct cluster *c, const struct node *n, struct node_identity *out, struct error *err);
/* Writes them where identity_node held them back. */
int identity_keep(struct identity *id, const struct node *n, struct node_identity *leaves, struct error *err);
int identity_user(struct identity *id, const struct cluster *c, const struct user *u, struct leaf *out, struct error *err);
/* Whether the certificate (PEM) is one of that authority's, and good now. */
bool identity_signed(const struct identity *id, enum ca_id ca, const char *pem);
/* Leaves of the node are to be issued anew. */
bool identity_renews(const struct identity *id, const char *node);
/* The administrator's leaf, the users' and what has a certificate besides: from their files, or issued. */
int identity_people(struct identity *id, const struct cluster *c, struct error *err);

/* ---- rotation.c ---- */

/* Begins: makes the new ones of `set` (1 << enum rotate_id bits), which may name authorities that cluster.yaml brings in. A rotation that has begun goes on as it
 * was begun: then nothing is made, and `set` may only name what is under way. */
int identity_rotate(const char *state, const struct cluster *c, unsigned set, time_t now, struct error *err);
/* 1 << enum rotate_id bits of what is under way. */
unsigned identity_rotating(const struct identity *id);
/* What the phase it was opened in has been rolled out: on to the next. 1: that is to be rolled out too (open it anew); 0: nothing is left to do now. Tokens live
 * for an hour, so the old key that signed them is kept for SA_KEEP seconds, or with `now_too` is not. */
#define SA_KEEP 3900
int identity_rotate_on(struct identity *id, const struct cluster *c, bool now_too, struct error *err);
const char *rotate_name(enum rotate_id id); /* "cluster", as people write it */
const char *rotate_phase_name(enum rotate_phase p);

/* ---- describe.c: what a certificate says ---- */

struct cert_info {
        char subject[256], issuer[256];
        char serial[64]; /* hex */
        time_t from, to;
        bool authority;
};
/* The first certificate of the PEM text; `*rest` (may be NULL) is what follows it. False: there is none. */
bool cert_describe(const char *pem, struct cert_info *out, const char **rest);
/* In the last third of its life, when up renews it. */
bool cert_due(const struct cert_info *i, time_t now);

/* Makes durable what was written since open (one syncfs): call once after many identity_node. */
int identity_sync(struct identity *id, struct error *err);
void node_identity_release(struct node_identity *n);
void leaf_release(struct leaf *l);
void identity_release(struct identity *id);

/* A kubeconfig for one leaf, or with a key on disk (client_pem: path used for both, no data embedded). */
struct kubeconfig {
        const char *cluster, *user, *server; /* server: https://host:port */
        const char *ca;                      /* PEM bundle */
        const struct leaf *leaf;             /* embedded, or NULL */
        const char *client_pem;              /* path, or NULL */
        const char *server_name;             /* what its certificate says, where that is not the host of `server`; or NULL */
};
void kubeconfig_text(const struct kubeconfig *k, struct str *out);
/* admin and every user as one file of several contexts, for the person at the keyboard: server is the cluster's endpoint. */
int identity_kubeconfig(struct identity *id, const struct cluster *c, struct str *out, struct error *err);

/* Lays `ours` (of identity_kubeconfig) onto the text of a person's own kubeconfig ("" for none; `name` is for sentences): entries of the same name are replaced
 * where they stand, all others stay as and where they are. Users get their context's name, for every cluster has a kubernetes-admin. A context keeps what else the
 * person wrote into it (a namespace). The current context changes when there is none, or with `use`; *current (malloc'd) is what it is then. */
int kubeconfig_merge(const char *name, const char *theirs, const char *ours, bool use, struct str *out, char **current, struct error *err);

/* A fresh bootstrap token's two halves. */
void token_random(char id[7], char secret[17]);

#endif

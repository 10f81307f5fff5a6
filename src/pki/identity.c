#include <fcntl.h>

#include "pki/pki.h"

struct pki *pki_new(void) { return xcalloc(1, sizeof(struct pki)); }

void pki_free(struct pki *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(p->keygen); i++)
                EVP_PKEY_CTX_free(p->keygen[i]);
        for (int i = 0; i < CA_COUNT; i++)
                issuer_release(&p->issuer[i]);
        want_release(&p->want);
        str_wipe_release(&p->file);
        str_release(&p->der);
        free(p);
}

char *identity_path(const struct identity *id, const char *name)
{
        return path_join(id->dir, name);
}

static int write_in(const struct identity *id, const char *name, const char *suffix,
        const char *text, struct error *err)
{
        char *path CLEANUP(free_p) = xasprintf("%s/%s%s", id->dir, name, suffix);
        return store_write(path, text, strlen(text), FILE_SYNC, err);
}

static const char *const directories[] = { "pki", "pki/etcd", "nodes", "users" };
/* nodes and users have files only when the Identity is in use. */
enum { DIR_FIRST, DIR_FIRST_USED = 2 };

static int make_directories(const struct identity *id, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(directories); i++) {
                char *path CLEANUP(free_p) = identity_path(id, directories[i]);
                r = store_dir(path, err);
                if (r == 0)
                        store_sweep(path);
        }
        return r;
}

/* Whether the directories from `first` on have files. */
static bool holds_files(const struct identity *id, size_t first)
{
        bool any = false;
        for (size_t i = first; !any && i < ARRAY_SIZE(directories); i++) {
                char *path CLEANUP(free_p) = identity_path(id, directories[i]);
                any = store_has_files(path);
        }
        return any;
}

/* The API server signs tokens all the time, so sa_make limits RSA to 2048 bits. */
static int sa_create(struct identity *id, enum key_algorithm a, struct error *err)
{
        return sa_make(id->pki, a, &id->sa_key, &id->sa_pub, err);
}

/* The public key is derived from the private one, not read. */
static int sa_load(struct identity *id, struct error *err)
{
        char *path CLEANUP(free_p) = rotation_sa_path(id);
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = store_read(path, true, &text, err);
        if (r < 0 && err->code)
                return r;
        if (r == 0)
                r = sa_parse(path, str_span(&text), &id->sa_pub, err);
        else
                error_set(err, EINVAL, EXIT_STATE, "%s is missing", path);
        if (r < 0)
                return error_hint(err,
                        "restore it from a backup: the cluster's service-account tokens are signed with it");
        id->sa_key = str_take(&text);
        return id->looking || id->rotation.phase[ROTATE_SA] == ROTATE_FINISH
                       ? 0
                       : write_in(id, "pki/sa", ".pub", id->sa_pub, err);
}

static int sa_take(struct identity *id, const char *pem, struct error *err)
{
        EVP_PKEY *k CLEANUP(pkey_p) = key_parse((struct span){ (const uint8_t *)pem, strlen(pem) });
        if (!k)
                return error_set(err, EINVAL, EXIT_STEP,
                        "the cluster's sa.key holds no private key in PEM form");
        id->sa_key = xstrdup(pem);
        return sa_parse(
                "sa.key", (struct span){ (const uint8_t *)pem, strlen(pem) }, &id->sa_pub, err);
}

static int authorities_create(struct identity *id, const struct cluster *c, struct error *err)
{
        for (int ca = 0; ca < CA_COUNT; ca++) {
                int r = given_load(id, ca, err);
                if (r == -ENOENT && !err->code)
                        r = own_ca_load(c, ca, id->now, &id->ca[ca], err);
                if (r == -ENOENT && !err->code)
                        r = authority_create(
                                id->pki, ca, &c->certificates, id->now, &id->ca[ca], err);
                if (r < 0)
                        return r;
        }
        return authorities_distinct(id, EXIT_CONFIG, err);
}

static int authorities_write(struct identity *id, struct error *err)
{
        int r = 0;
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++) {
                char *name CLEANUP(free_p) = xasprintf("pki/%s", ca_table[ca].path);
                r = write_in(id, name, ".key", id->ca[ca].key, err);
                if (r == 0)
                        r = write_in(id, name, ".crt", id->ca[ca].bundle, err);
        }
        if (r == 0)
                r = write_in(id, "pki/sa", ".key", id->sa_key, err);
        return r < 0 ? r : write_in(id, "pki/sa", ".pub", id->sa_pub, err);
}

/* Writes what was made in memory. "creating", written first, marks the files as never used;
 * identity.json, written last, marks them as complete. After a run that was killed in between only
 * "creating" exists, and the next run starts again. */
static int write_first(struct identity *id, const struct cluster *c, struct error *err)
{
        struct str json CLEANUP(str_wipe_release) = { 0 };
        int r = write_in(id, "creating", "",
                "the first run has not finished; the next one starts again\n", err);
        if (r == 0)
                r = make_directories(id, err);
        if (r == 0)
                r = authorities_write(id, err);
        secrets_text(id, c->name, &json);
        return r < 0 ? r : write_in(id, "identity.json", "", str_text(&json), err);
}

static void unlink_in(const struct identity *id, const char *name)
{
        char *path CLEANUP(free_p) = identity_path(id, name);
        unlink(path);
}

static int identity_create(struct identity *id, const struct cluster *c, struct error *err)
{
        const struct identity_given *g = id->pki->given;
        int r = authorities_create(id, c, err);
        if (r == 0)
                r = g && g->sa_key ? sa_take(id, g->sa_key, err)
                                   : sa_create(id, c->certificates.algorithm, err);
        if (r < 0)
                return r;
        secrets_create(id);
        if (g && g->encryption_key) {
                secret_free(&id->encryption_key);
                secret_free(&id->encryption_key_name);
                id->encryption_key = xstrdup(g->encryption_key);
                id->encryption_key_name = xstrdup(g->encryption_key_name);
        }
        r = write_first(id, c, err);
        if (r < 0) { /* a full disk: remove what was written, and the mark last */
                struct error ignored CLEANUP(error_release) = { 0 };
                char *pki CLEANUP(free_p) = identity_path(id, "pki");
                unlink_in(id, "identity.json");
                if (dir_remove(pki, &ignored) < 0)
                        return r;
        }
        unlink_in(id, "creating");
        id->created = r == 0;
        return r;
}

/* The certificate authorities and the service-account key, with those of a rotation. */
static int identity_load_keys(struct identity *id, struct error *err)
{
        int r = rotation_read(id, err);
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                r = rotation_authority(id, ca, err);
        if (r == 0)
                r = sa_load(id, err);
        return r < 0 ? r : rotation_load(id, err);
}

static int identity_load(
        struct identity *id, const struct cluster *c, const char *json, struct error *err)
{
        int r = secrets_load(id, c->name, json, err);
        if (r == 0)
                r = make_directories(id, err);
        if (r == 0)
                r = identity_load_keys(id, err);
        for (int ca = 0; r == 0 && ca < CA_COUNT && !id->pki->rotating; ca++)
                if (id->rotation.phase[ca] == ROTATE_NOT)
                        r = own_ca_same(c, ca, &id->ca[ca], err);
        return r < 0 ? r : authorities_distinct(id, EXIT_STATE, err);
}

static int identity_load_or_create(struct identity *id, const struct cluster *c, struct error *err)
{
        char *json CLEANUP(free_p) = identity_path(id, "identity.json"),
                   *creating CLEANUP(free_p) = identity_path(id, "creating");
        bool unfinished = store_exists(creating);
        if (store_exists(json)) {
                if (unfinished)
                        unlink(creating);
                return identity_load(id, c, json, err);
        }
        if (!holds_files(id, unfinished ? DIR_FIRST_USED : DIR_FIRST))
                return identity_create(id, c, err);
        error_set(err, ENOENT, EXIT_STATE,
                "%s is missing, but %s holds keys and certificates of a cluster", json, id->dir);
        return error_hint(
                err, "restore it from a backup, or move %s away to make a new cluster", id->dir);
}

int identity_extras(struct identity *id, const struct cluster *c, struct error *err)
{
        int r = 0;
        leaf_release(&id->lb);
        leaf_release(&id->dex);
        if (lb_wanted(c)) {
                lb_want(c, &id->pki->want);
                r = leaf_pair(id, "lb", &id->pki->want, &id->lb, err);
        }
        if (r == 0 && dex_wanted(c)) {
                dex_want(c, &id->pki->want);
                r = leaf_pair(id, "dex", &id->pki->want, &id->dex, err);
        }
        return r;
}

static int open_locked(struct identity *id, const struct cluster *c, struct error *err)
{
        char *lock CLEANUP(free_p) = identity_path(id, "lock");
        int r = lock_take(lock, "slipway", &id->lock, err);
        if (r < 0)
                return r;
        store_sweep(id->dir);
        r = identity_load_or_create(id, c, err);
        if (r == 0)
                r = given_same(id, err);
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                r = issuer_init(&id->pki->issuer[ca], id->ca[ca].x509, id->ca[ca].pkey, err);
        return r < 0 ? r : identity_extras(id, c, err);
}

int identity_open(const char *state, const struct cluster *c, time_t now, struct identity *out,
        struct error *err)
{
        return identity_adopt(state, c, NULL, now, out, err);
}

static int open_with(const char *state, const struct cluster *c, const struct identity_given *given,
        bool rotating, time_t now, struct identity *out, struct error *err)
{
        struct identity id = { .lock = -1, .now = now, .pki = pki_new() };
        int r = names_check(c, err);
        id.pki->given = given;
        id.pki->rotating = rotating;
        if (r == 0)
                r = store_open(state, c->name, &id.dir, err);
        if (r == 0)
                r = open_locked(&id, c, err);
        id.pki->given = NULL;
        if (r < 0)
                identity_release(&id);
        else
                *out = id;
        return r;
}

int identity_adopt(const char *state, const struct cluster *c, const struct identity_given *given,
        time_t now, struct identity *out, struct error *err)
{
        return open_with(state, c, given, false, now, out, err);
}

int identity_open_rotating(const char *state, const struct cluster *c, time_t now,
        struct identity *out, struct error *err)
{
        return open_with(state, c, NULL, true, now, out, err);
}

int identity_look(const char *state, const struct cluster *c, time_t now, struct identity *out,
        struct error *err)
{
        *out = (struct identity){ .lock = -1,
                .now = now,
                .pki = pki_new(),
                .looking = true,
                .dir = path_join(*state ? state : ".", c->name) };
        char *json CLEANUP(free_p) = identity_path(out, "identity.json");
        if (access(json, F_OK) < 0) {
                error_set(err, errno, EXIT_STATE,
                        "%s does not exist: the cluster was not made from here%s%s", json,
                        errno == ENOENT ? "" : ": ", errno == ENOENT ? "" : strerror(errno));
                return error_hint(err,
                        "make the cluster with slipway up, or name another state directory with --state");
        }
        int r = secrets_load(out, c->name, json, err);
        if (r == 0)
                r = identity_load_keys(out, err);
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                r = issuer_init(&out->pki->issuer[ca], out->ca[ca].x509, out->ca[ca].pkey, err);
        return r < 0 ? r : identity_extras(out, c, err);
}

bool identity_renews(const struct identity *id, const char *node)
{
        if (!id->renew || !id->renew_nodes || !id->renew_nodes->n)
                return id->renew;
        for (size_t i = 0; node && i < id->renew_nodes->n; i++)
                if (streq(id->renew_nodes->v[i], node))
                        return true;
        return false;
}

int identity_node(struct identity *id, const struct cluster *c, const struct node *n,
        struct node_identity *out, struct error *err)
{
        const char *names[LEAF_COUNT] = { NULL };
        *out = (struct node_identity){ 0 };
        if (!n->ip[0].family)
                return error_set(err, EADDRNOTAVAIL, EXIT_CONFIG,
                        "node %s has no address yet, which its certificates must contain", n->name);
        char *path CLEANUP(free_p) = store_name(id->dir, "nodes", n->name);
        struct leaf_file f = { .path = path,
                .text = id->pki->file,
                .renew = identity_renews(id, n->name),
                .hold = id->holding };
        int r = leaf_file_read(&f, err);
        for (int l = 0; r == 0 && l < LEAF_COUNT; l++) {
                names[l] = leaf_name(l);
                if (!leaf_wanted(l, c, n))
                        continue;
                leaf_want(l, c, n, &id->pki->want);
                r = leaf_file_get(&f, id, names[l], &id->pki->want, &out->leaf[l], err);
        }
        if (r == 0)
                r = leaf_file_write(&f, id, names, out->leaf, LEAF_COUNT, err);
        out->held = f.held;
        id->pki->file = f.text;
        if (r < 0)
                node_identity_release(out);
        return r;
}

int identity_keep(
        struct identity *id, const struct node *n, struct node_identity *leaves, struct error *err)
{
        const char *names[LEAF_COUNT];
        char *path CLEANUP(free_p) = store_name(id->dir, "nodes", n->name);
        struct leaf_file f = { .path = path, .text = id->pki->file, .issued = 1 };
        if (!leaves->held)
                return 0;
        for (int l = 0; l < LEAF_COUNT; l++)
                names[l] = leaf_name(l);
        int r = leaf_file_write(&f, id, names, leaves->leaf, LEAF_COUNT, err);
        leaves->held = r < 0;
        id->pki->file = f.text;
        return r;
}

int identity_user(struct identity *id, const struct cluster *c, const struct user *u,
        struct leaf *out, struct error *err)
{
        static const char *const name = "client";
        char *path CLEANUP(free_p) = store_name(id->dir, "users", u->name);
        struct leaf_file f = {
                .path = path, .text = id->pki->file, .renew = identity_renews(id, NULL)
        };
        struct cert_info now;
        *out = (struct leaf){ 0 };
        user_want(c, u, &id->pki->want);
        int r = leaf_file_read(&f, err);
        if (r == 0)
                r = leaf_file_get(&f, id, name, &id->pki->want, out, err);
        if (r == 0 && f.there && f.issued && cert_describe(out->cert, &now, NULL))
                r = past_keep(id, u->name, path, now.to, err);
        if (r == 0)
                r = leaf_file_write(&f, id, &name, out, 1, err);
        id->pki->file = f.text;
        if (r < 0)
                leaf_release(out);
        return r;
}

int identity_sync(struct identity *id, struct error *err)
{
        if (!id->pki->dirty)
                return 0;
        int fd CLEANUP(close_p) = open(id->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || syncfs(fd) < 0)
                return error_set(err, errno, EXIT_INTERNAL, "cannot sync %s to disk: %s", id->dir,
                        strerror(errno));
        id->pki->dirty = false;
        return 0;
}

void leaf_release(struct leaf *l)
{
        free(l->cert);
        l->cert = NULL;
        secret_free(&l->key);
}

void node_identity_release(struct node_identity *n)
{
        for (int l = 0; l < LEAF_COUNT; l++)
                leaf_release(&n->leaf[l]);
}

void identity_release(struct identity *id)
{
        for (int ca = 0; ca < CA_COUNT; ca++)
                authority_release(&id->ca[ca]);
        char **secrets[] = { &id->sa_key, &id->sa_pub, &id->sa_other, &id->prefix, &id->token_id,
                &id->certificate_key, &id->encryption_key, &id->encryption_key_name,
                &id->encryption_other, &id->encryption_other_name, &id->vrrp_password,
                &id->rotation.encryption_key, &id->rotation.encryption_key_name };
        for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
                secret_free(secrets[i]);
        leaf_release(&id->lb);
        leaf_release(&id->dex);
        pki_free(id->pki);
        free(id->dir);
        close_p(&id->lock);
        *id = (struct identity){ .lock = -1 };
}

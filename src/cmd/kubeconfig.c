/* kubeconfig: prints the kubeconfig of the administrator or of a user, or merges it into
 * the user's file. */
#include <time.h>

#include "base/print.h"
#include "cmd/cmd.h"
#include "node/facts.h"
#include "pki/identity.h"
#include "pki/merge_file.h"
#include "provider/provider.h"

/* Behind a jump host the API's address cannot be reached from this computer. Of several jump hosts,
 * the last one reaches the nodes. */
static const char *way_words(const struct cluster *c)
{
        const char *bastion = c->provider.ssh.bastion,
                   *comma = bastion ? strrchr(bastion, ',') : NULL,
                   *last = comma ? comma + 1 : bastion;
        if (!provider_has_hosts(&c->provider))
                return c->bastion;
        return bastion ? arena_printf(c->arena, "%s%.*s%s%s%s", comma ? "-J " : "",
                                 comma ? (int)(comma - bastion) : 0, bastion, comma ? " " : "",
                                 has_prefix(last, "ssh://") ? "" : "ssh://", last)
                       : NULL;
}

static void say_way(const struct cluster *c)
{
        char host[IP_TEXT + 2];
        size_t i = 0;
        const char *words = way_words(c);
        const struct node *n = cluster_next(c, ROLE_CONTROL_PLANE, &i);
        if (!words || !n)
                return;
        print_err(
                "hint: if this computer does not reach the API directly, open a way through the bastion: ssh -N -L %ld:%s:%ld %s\n",
                c->api.port, ip_host(&n->ip[0], host), c->api.port, words);
        print_err("hint: and meanwhile give kubectl --server https://127.0.0.1:%ld\n", c->api.port);
}

/* ---- --oidc ---- */

#define OIDC_USER "oidc"

static const char *oidc_user(const struct options *o)
{
        return o->args.n ? o->args.v[0] : OIDC_USER;
}

static int check_oidc(const struct options *o, const struct cluster *c, struct error *err)
{
        const char *user = oidc_user(o);
        bool taken = streq(user, "kubernetes-admin");
        if (!c->auth.oidc.issuer) {
                error_set(err, ENOENT, EXIT_CONFIG,
                        "%s's file has neither auth.oidc nor services.dex: there is no provider to log in at",
                        c->name);
                return error_hint(err,
                        "set services.dex, or auth.oidc.issuer and auth.oidc.clientID, and run 'slipway up'; 'slipway kubeconfig' has users with certificates");
        }
        for (size_t i = 0; i < c->auth.users.n; i++)
                taken |= streq(user, c->auth.users.v[i].name);
        if (!taken && *user)
                return 0;
        error_set(err, EEXIST, EXIT_USAGE,
                *user ? "%s is a user with a certificate in the kubeconfig"
                      : "the user's name is empty%s",
                user);
        return error_hint(
                err, "choose another name for the login, or leave it out: it is then " OIDC_USER);
}

static int write_identity(const struct options *o, struct identity *id, const struct cluster *c,
        struct str *text, struct error *err)
{
        return o->oidc ? identity_kubeconfig_oidc(id, c, oidc_user(o), text, err)
                       : identity_kubeconfig(id, c, text, err);
}

/* While another run holds the lock, reads what that run has written so far. */
static int read_identity(const struct options *o, struct cluster *c, struct identity *id,
        struct str *text, struct error *err)
{
        const char *state = o->state ? o->state : ".slipway";
        int r = identity_open(state, c, time(NULL), id, err);
        if (r != -EWOULDBLOCK) {
                if (r == 0)
                        r = provider_addresses(c, id->dir, id->prefix, err);
                if (r == 0)
                        r = write_identity(o, id, c, text, err);
                return r < 0 ? r : identity_sync(id, err);
        }
        struct error why CLEANUP(error_release) = { 0 };
        /* then the lock is the error that is reported */
        if (identity_look(state, c, time(NULL), id, &why) < 0 ||
                provider_addresses(c, id->dir, id->prefix, &why) < 0 ||
                write_identity(o, id, c, text, &why) < 0 || id->lost)
                return r;
        error_release(err);
        return 0;
}

static int merge_kubeconfig(const struct options *o, const char *ours, struct error *err)
{
        char *path CLEANUP(free_p) = NULL, *current CLEANUP(free_p) = NULL;
        int r = kubeconfig_merge_file(o->kubeconfig, ours, o->use, &path, &current, err);
        if (r == 0)
                print("merged into %s; the current context is %s\n", path, current);
        return r;
}

int cmd_kubeconfig(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct identity id CLEANUP(identity_release) = { .lock = -1 };
        struct str text CLEANUP(str_wipe_release) = { 0 };
        struct cluster *c = NULL;
        struct facts_file *facts = NULL;
        if (!o->merge && (o->kubeconfig || o->use)) {
                error_set(err, EINVAL, EXIT_USAGE, "--%s needs --merge",
                        o->use ? "use" : "kubeconfig");
                return error_hint(err, "without --merge the kubeconfig is printed");
        }
        if (!o->oidc && o->args.n) {
                error_set(err, EINVAL, EXIT_USAGE, "a user's name needs --oidc, got '%s'",
                        o->args.v[0]);
                return error_hint(
                        err, "without --oidc the kubeconfigs of all users in the file are printed");
        }
        int r = cmd_load(o, &a, &c, err);
        if (r == 0 && o->oidc)
                r = check_oidc(o, c, err);
        if (r == 0 && o->facts)
                r = facts_load(o->facts, &a, &facts, err);
        if (r < 0)
                return r;
        facts_addresses(facts, c);
        if ((r = read_identity(o, c, &id, &text, err)) < 0)
                return r;
        say_way(c);
        if (o->merge)
                return merge_kubeconfig(o, str_text(&text), err);
        print_bytes(stdout, text.data, text.len);
        return EXIT_OK;
}

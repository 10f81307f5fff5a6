/* How ssh is called: for a person, and for the agent with the few lines of shell that find or
 * install it. */
#include "base/quote.h"
#include "deliver/link/state.h"

/* Not to be overruled: without them what comes through the pipe would not be ours alone. DEBUG1
 * tells fingerprints and which keys were tried. ssh never stays behind as a master (it would hold
 * our pipes, and hides what a jump host says); one that the user has open is used. UpdateHostKeys
 * rewrites the file, which many at once must not. */
static const char *const firm[] = {
        "BatchMode=yes",
        "LogLevel=DEBUG1",
        "RemoteCommand=none",
        "ControlMaster=no",
        "ControlPersist=no",
        "PermitLocalCommand=no",
        "UpdateHostKeys=no",
};
/* The user's own options come before these: ssh takes the first it sees. */
static const char *const usual[] = { "ServerAliveInterval=15", "ServerAliveCountMax=3",
        "Compression=no" };

struct args {
        const char **v;
        size_t n;
};

static void ssh_add(struct args *a, const char *word) { a->v[a->n++] = word; }

static void ssh_add_option(struct args *a, const char *option)
{
        ssh_add(a, "-o");
        ssh_add(a, option);
}

static struct args args_new(const struct link_target *t, size_t more, struct arena *a)
{
        size_t options = t->options ? t->options->n : 0;
        return (struct args){ .v = arena_array(a, const char *,
                                      2 * (options + ARRAY_SIZE(firm) + ARRAY_SIZE(usual)) + 48 +
                                              more) };
}

/* A file name as the value of an option: blanks separate, % begins a token. */
static const char *option_path(const char *option, const char *path, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_addf(&s, "%s=\"", option);
        for (; *path; path++) {
                if (*path == '%')
                        str_addc(&s, '%');
                else if (*path == '"' || *path == '\\')
                        str_addc(&s, '\\');
                str_addc(&s, *path);
        }
        str_addc(&s, '"');
        return arena_strdup(a, str_text(&s));
}

/* For the agent we jump ourselves: what -J starts does not know of our options, so it would ask
 * about a new host key, and not use our key. Several hosts may be given, a comma between: the ones
 * before the last are the last one's way. */
static const char *jump_command(const struct link_target *t, bool batch, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 }, doubled CLEANUP(str_release) = { 0 };
        const char *comma = strrchr(t->bastion, ','), *host = comma ? comma + 1 : t->bastion;
        str_add(&s,
                "ProxyCommand=ssh -a -x -T -o ClearAllForwardings=yes -o ControlMaster=no -o ControlPersist=no -o UpdateHostKeys=no "
                "-o LogLevel=INFO"); /* or its host key would be taken for the node's */
        if (batch)
                str_add(&s, " -o BatchMode=yes");
        if (t->accept_new || t->strict) /* the jump host is one of the file */
                str_add(&s, " -o StrictHostKeyChecking=accept-new");
        if (t->key) {
                str_add(&s, " -i ");
                quote_shell(&s, t->key);
        }
        if (comma) {
                str_add(&s, " -J ");
                quote_shell(&s, arena_printf(a, "%.*s", (int)(comma - t->bastion), t->bastion));
        }
        str_add(&s, " -W ");
        for (const char *p = s.data; *p; p++) /* ssh's own tokens begin with % */
                str_addf(&doubled, *p == '%' ? "%%%%" : "%c", *p);
        str_add(&doubled, "'[%h]:%p' -- ");
        quote_shell(
                &doubled, has_prefix(host, "ssh://") ? host : arena_printf(a, "ssh://%s", host));
        return arena_strdup(a, str_text(&doubled));
}

const char *link_jump(const struct link_target *t, struct arena *a)
{
        return jump_command(t, false, a);
}

const char *link_door(const struct link_target *t, struct arena *a)
{
        if (!t->bastion)
                return arena_printf(a, "%s:%ld", t->host, t->port);
        return arena_printf(a, "%.*s", (int)strcspn(t->bastion, ","), t->bastion);
}

static void add_target(struct args *v, const struct link_target *t, struct arena *a)
{
        if (t->strict) { /* before the user's own: ssh takes the first it sees. A connection that is
                            open already would not tell the key. */
                ssh_add_option(v, "StrictHostKeyChecking=yes");
                ssh_add_option(v, "ControlPath=none");
        }
        for (size_t i = 0; t->options && i < t->options->n; i++)
                ssh_add_option(v, t->options->v[i]);
        if (t->port) {
                ssh_add(v, "-p");
                ssh_add(v, arena_printf(a, "%ld", t->port));
        }
        if (t->user) {
                ssh_add(v, "-l");
                ssh_add(v, t->user);
        }
        if (t->key) { /* and no other, or a full agent uses up the tries */
                ssh_add(v, "-i");
                ssh_add(v, t->key);
                ssh_add_option(v, "IdentitiesOnly=yes");
        }
        if (t->known_hosts) { /* keys of machines that we made say nothing about other machines that
                                 had their addresses */
                ssh_add_option(v, option_path("UserKnownHostsFile", t->known_hosts, a));
                ssh_add_option(v, "GlobalKnownHostsFile=/dev/null");
        }
        if (t->accept_new)
                ssh_add_option(v, "StrictHostKeyChecking=accept-new");
}

/* The target as programs reach it. */
static void add_way(struct args *v, const struct link_target *t, struct arena *a)
{
        if (t->bastion)
                ssh_add_option(v, jump_command(t, true, a));
        add_target(v, t, a);
        ssh_add_option(v, t->bastion ? "ConnectTimeout=30"
                                     : "ConnectTimeout=10"); /* until the node says who it is: the
                                                                jump is part of it */
        for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
                ssh_add_option(v, usual[i]);
}

static const char *quoted(const char *word, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        quote_shell(&s, word);
        return arena_strdup(a, str_text(&s));
}

const char **link_argv(const struct link_target *t, const char *const *remote, struct arena *a)
{
        size_t n = 0;
        while (remote && remote[n])
                n++;
        struct args v = args_new(t, n, a);
        ssh_add(&v, "ssh");
        if (t->bastion && t->key) { /* which -J would not use for the jump */
                ssh_add_option(&v, jump_command(t, false, a));
        } else if (t->bastion) {
                ssh_add(&v, "-J");
                ssh_add(&v, t->bastion);
        }
        add_target(&v, t, a);
        ssh_add(&v, "--");
        ssh_add(&v, t->host);
        for (size_t i = 0; i < n; i++)
                ssh_add(&v, quoted(remote[i], a));
        return v.v;
}

const char *link_by_hand(const struct link_target *t, struct arena *a)
{
        const char **argv = link_argv(t, NULL, a);
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; argv[i]; i++) {
                if (streq(argv[i], "--")) /* for people: only a host that begins with - needs it,
                                             and there is none */
                        continue;
                str_add(&s, i ? " " : "");
                quote_shell(&s, argv[i]);
        }
        return arena_strdup(a, str_text(&s));
}

/* ---- the agent ---- */

const char *link_state_dir(const struct link_target *t, struct arena *a)
{
        return arena_printf(a, "%s/var/lib/slipway", t->root ? t->root : "");
}

/* The shell's part is in words that dash, busybox and bash know, and has no quote, backslash, ! or
 * newline in it, so that a login shell of any kind passes it on unharmed. Whoever logs in becomes
 * root first ($1 is what root does). */
#define ROOT_ALREADY \
        "LC_ALL=C; export LC_ALL; if test \"$(id -u)\" = 0; then eval \"$1\"; exit; fi; "
#define NEEDS_SUDO "if command -v sudo >/dev/null; then :; else echo slipway:nosudo; exit 1; fi; "

static const char without_sudo[] = ROOT_ALREADY "echo slipway:noroot; exit 1";
static const char with_sudo[] = ROOT_ALREADY NEEDS_SUDO "exec sudo -n sh -c \"$1\"";
/* The password is sent only when it is asked for: sudo may not need it (again). */
static const char with_password[] = ROOT_ALREADY NEEDS_SUDO
        "if sudo -n sh -c : 2>/dev/null; then exec sudo -n sh -c \"$1\"; fi; "
        "echo slipway:password; exec sudo -S -p " LINK_PROMPT " sh -c \"$1\"";

/* head may read too far (busybox): nothing follows the agent until it has said hello. It is on the
 * disk before it gets its name, or a power cut could leave a name with nothing behind it. Agents of
 * other versions are of no use any more. */
static const char install[] =
        "if test -x \"$a\"; then echo slipway:have; exec \"$a\"%s; fi; "
        "t=$d/.agent.$$; gone() { rm -f \"$t\"; }; fail() { echo slipway:$1; exit 1; }; trap gone 0; trap \"exit 1\" 1 2 13 15; "
        "echo slipway:need $(uname -m); "
        "mkdir -p -m 700 \"$d\" && head -c $n >\"$t\" && chmod 700 \"$t\" || fail failed; "
        "test $(wc -c <\"$t\") -eq $n || fail damaged; "
        "if command -v sha256sum >/dev/null; then case $(sha256sum <\"$t\") in $h*) ;; *) fail damaged;; esac; fi; "
        "sync \"$t\" 2>/dev/null || sync; mv \"$t\" \"$a\" || fail failed; "
        "for f in \"$d\"/agent-*; do test \"$f\" = \"$a\" || rm -f \"$f\"; done; "
        "echo slipway:have; exec \"$a\"%s";

/* A node of the other architecture takes the other agent. */
static const char *which_agent(struct arena *a)
{
        const struct link_agent *own = link_agent_own(), *other = link_agent_other();
        const char *first = arena_printf(a, "h=%s; n=%zu; ", own->hash, own->len);
        return other ? arena_printf(a, "%scase $(uname -m) in %s) h=%s; n=%zu;; esac; ", first,
                               other->machine, other->hash, other->len)
                     : first;
}

static char *root_part(const struct link_target *t, struct arena *a)
{
        const char *option = t->root ? arena_printf(a, " --root %s", quoted(t->root, a)) : "";
        const char *body = arena_printf(a, install, option, option);
        return arena_printf(a, "LC_ALL=C; export LC_ALL; umask 022; %sd=%s; a=$d/agent-$h; %s",
                which_agent(a), quoted(link_state_dir(t, a), a), body);
}

static struct args ssh_words(const struct link_target *t, struct arena *a)
{
        struct args v = args_new(t, 8, a);
        static const char *const words[] = { "ssh", "-T", "-a", "-x" };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                ssh_add(&v, words[i]);
        for (size_t i = 0; i < ARRAY_SIZE(firm); i++)
                ssh_add_option(&v, firm[i]);
        return v;
}

/* Asked before anything is sent, the password too: everybody may read it. */
static const char *machine_part(const struct link_target *t, struct arena *a)
{
        if (!t->machine_id || t->machine_id[strspn(t->machine_id, "0123456789abcdef")])
                return "";
        return arena_printf(a,
                "case $(cat /etc/machine-id) in %s) ;; *) echo slipway:other; exit 1;; esac; ",
                t->machine_id);
}

const char **link_command(const struct link_target *t, bool password, struct arena *a)
{
        const char *shell = arena_printf(a, "%s%s", machine_part(t, a),
                !t->sudo   ? without_sudo
                : password ? with_password
                           : with_sudo);
        struct args v = ssh_words(t, a);
        ssh_add_option(&v, "ClearAllForwardings=yes");
        add_way(&v, t, a);
        ssh_add(&v, "--");
        ssh_add(&v, t->host);
        ssh_add(&v, arena_printf(a, "exec sh -c %s slipway %s", quoted(shell, a),
                            quoted(root_part(t, a), a)));
        return v.v;
}

/* ---- a tunnel ---- */

/* A master that the user has open would take the forwarding over and keep it. A dead node must be
 * noticed soon: there is another one to ask. The user's own forwardings for this host may fail:
 * they are up already. */
const char **link_forward(const struct link_target *t, const char *forward, struct arena *a)
{
        static const char *const own[] = { "ControlPath=none", "ExitOnForwardFailure=no",
                "StreamLocalBindUnlink=yes", "StreamLocalBindMask=0177", "ServerAliveInterval=3",
                "ServerAliveCountMax=3" };
        struct args v = ssh_words(t, a);
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                ssh_add_option(&v, own[i]);
        ssh_add(&v, "-N");
        ssh_add(&v, "-L");
        ssh_add(&v, forward);
        add_way(&v, t, a);
        ssh_add(&v, "--");
        ssh_add(&v, t->host);
        return v.v;
}

const char **link_settings(const struct link_target *t, struct arena *a)
{
        struct args v = args_new(t, 0, a);
        ssh_add(&v, "ssh");
        ssh_add(&v, "-G");
        add_target(&v, t, a);
        ssh_add(&v, "--");
        ssh_add(&v, t->host);
        return v.v;
}

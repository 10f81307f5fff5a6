/* How ssh is called: for the user, and for the agent, with a short shell script that finds
 * or installs it. */
#include "base/quote.h"
#include "deliver/link/state.h"

/* Options that cannot be overridden, because the pipe must carry only the agent's data. DEBUG1
 * shows fingerprints and the keys that were tried. ssh must not stay as a master (it would hold the
 * pipes, and hides messages of a jump host); a master that the user has open is used.
 * UpdateHostKeys rewrites the file, which must not happen from many processes at once. */
static const char *const firm[] = {
        "BatchMode=yes",
        "LogLevel=DEBUG1",
        "RemoteCommand=none",
        "ControlMaster=no",
        "ControlPersist=no",
        "PermitLocalCommand=no",
        "UpdateHostKeys=no",
};
/* The user's own options come before these: ssh uses the first value. */
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

/* A file name as the value of an option: blanks separate values, % starts a token. */
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

/* The jump for the agent is a ProxyCommand: the ssh that -J starts does not get slipway's options,
 * so it would ask about a new host key and not use the key. Several hosts are separated by commas:
 * those before the last are the way to the last. */
static const char *jump_command(const struct link_target *t, bool batch, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 }, doubled CLEANUP(str_release) = { 0 };
        const char *comma = strrchr(t->bastion, ','), *host = comma ? comma + 1 : t->bastion;
        /* with LogLevel=INFO, because the jump host's key would otherwise be taken
         * for the node's */
        str_add(&s,
                "ProxyCommand=ssh -a -x -T -o ClearAllForwardings=yes -o ControlMaster=no -o ControlPersist=no -o UpdateHostKeys=no "
                "-o LogLevel=INFO");
        if (batch)
                str_add(&s, " -o BatchMode=yes");
        if (t->accept_new || t->strict) /* the jump host is in the file */
                str_add(&s, " -o StrictHostKeyChecking=accept-new");
        if (t->key) {
                str_add(&s, " -i ");
                quote_shell(&s, t->key);
        }
        if (t->own_bastion) {
                str_add(&s, " -o IdentitiesOnly=yes -o GlobalKnownHostsFile=/dev/null -o ");
                quote_shell(&s, option_path("UserKnownHostsFile", t->known_hosts, a));
        }
        if (comma) {
                str_add(&s, " -J ");
                quote_shell(&s, arena_printf(a, "%.*s", (int)(comma - t->bastion), t->bastion));
        }
        str_add(&s, " -W ");
        for (const char *p = s.data; *p; p++) /* ssh's own tokens start with % */
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

bool link_nowhere(const struct link_target *t)
{
        return t->own_bastion && t->bastion && has_suffix(t->bastion, LINK_NOWHERE);
}

const char *link_door(const struct link_target *t, struct arena *a)
{
        if (!t->bastion)
                return arena_printf(a, "%s:%ld", t->host, t->port);
        return arena_printf(a, "%.*s", (int)strcspn(t->bastion, ","), t->bastion);
}

static void add_target(struct args *v, const struct link_target *t, struct arena *a)
{
        /* before the user's own, because ssh uses the first value. An open connection would not
         * show the key. */
        if (t->strict) {
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
        /* only this key, because a full agent uses up the attempts */
        if (t->key) {
                ssh_add(v, "-i");
                ssh_add(v, t->key);
                ssh_add_option(v, "IdentitiesOnly=yes");
        }
        /* keys of slipway's machines say nothing about other machines that had these addresses */
        if (t->known_hosts) {
                ssh_add_option(v, option_path("UserKnownHostsFile", t->known_hosts, a));
                ssh_add_option(v, "GlobalKnownHostsFile=/dev/null");
        }
        if (t->accept_new)
                ssh_add_option(v, "StrictHostKeyChecking=accept-new");
}

/* The target's options for programs. */
static void add_way(struct args *v, const struct link_target *t, struct arena *a)
{
        if (t->bastion)
                ssh_add_option(v, jump_command(t, true, a));
        add_target(v, t, a);
        /* until the node's sshd answers, including the jump */
        ssh_add_option(v, t->bastion ? "ConnectTimeout=30" : "ConnectTimeout=10");
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
        if (t->bastion && t->key) { /* -J would not use it for the jump */
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
                /* for users: only a host that starts with - needs it, and there is none */
                if (streq(argv[i], "--"))
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

/* This shell code works in dash, busybox and bash. It contains no quote, backslash, ! or newline,
 * so any login shell passes it on unchanged. The user becomes root first ($1 is what root runs). */
#define ROOT_ALREADY \
        "LC_ALL=C; export LC_ALL; if test \"$(id -u)\" = 0; then eval \"$1\"; exit; fi; "
#define NEEDS_SUDO "if command -v sudo >/dev/null; then :; else echo slipway:nosudo; exit 1; fi; "

static const char without_sudo[] = ROOT_ALREADY "echo slipway:noroot; exit 1";
static const char with_sudo[] = ROOT_ALREADY NEEDS_SUDO "exec sudo -n sh -c \"$1\"";
/* The password is sent only when sudo asks for it, which it may not do. */
static const char with_password[] = ROOT_ALREADY NEEDS_SUDO
        "if sudo -n sh -c : 2>/dev/null; then exec sudo -n sh -c \"$1\"; fi; "
        "echo slipway:password; exec sudo -S -p " LINK_PROMPT " sh -c \"$1\"";

/* head may read too far (busybox), so nothing follows the agent until its HELLO. The file is synced
 * before it gets its name: otherwise a power cut could leave a name without contents. Agents of
 * other versions are removed. */
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

/* A node with the other architecture gets the other agent. */
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

/* Checked before anything is sent, including the password: every user may read the machine-id. */
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

/* A master of the user would take over the forwarding and keep it, so none is used. A dead node
 * must be noticed soon, because another API server can be used. The user's own forwardings for this
 * host may fail, because they exist already. */
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

/* Why a link ended, as a sentence with a hint. ssh and sudo print the reason in English (LC_ALL=C);
 * the table has the common messages. */
#include "base/ip.h"
#include "deliver/link/state.h"

/* Before the node's shell has answered; before the agent's HELLO; after that. */
enum when {
        OPENING = 1,
        STARTING = 2,
        LATER = 4,
        UNDERWAY = STARTING | LATER,
        ANY = OPENING | UNDERWAY
};

/* In what and hint, {word} stands for: host, port, user, at (user@host port), key, line (the
 * line found), print (the host key's fingerprint), offered, accepted, bastion, dir, doing (what
 * the link was doing), hand (the ssh command for the user), forget (the command that deletes a
 * known host key). */
struct cause {
        const char *said; /* in one of the last lines; NULL: always */
        enum when when;
        int code;
        enum exit_status status;
        const char *what, *hint;
};

#define HAND  "try it by hand: {hand}"
#define AGAIN "run again: it continues where it stopped"
#define SUDOERS \
        "let {user} use sudo without a password there (NOPASSWD in sudoers), or give slipway the password (--ask-sudo-password, " \
        "provider.ssh.sudoPasswordFile), or log in as root"
#define CHANGED "the host key of {host} is not the one that was recorded for it: it is now {print}"
#define FORGET \
        "if the machine was reinstalled, remove its old key: {forget}; if not, the connection may be intercepted"
#define CUT "the connection to {host} was cut{doing}: {line}"

static const struct cause causes[] = {
        { "REMOTE HOST IDENTIFICATION HAS CHANGED", ANY, EKEYREJECTED, EXIT_UNREACHABLE, CHANGED,
                FORGET },
        { "REVOKED HOST KEY", ANY, EKEYREJECTED, EXIT_UNREACHABLE,
                "the host key of {host} was revoked: {print}",
                "check the machine before anything else" },
        { "Host key verification failed", OPENING, ENOKEY, EXIT_UNREACHABLE,
                "the host key of {host} is not known: {print}",
                "compare it with the machine's own, then record it by logging in once: {hand}" },
        { "Could not resolve hostname", OPENING, ENXIO, EXIT_UNREACHABLE,
                "the name {host} cannot be resolved",
                "check the address in cluster.yaml, or the name in your DNS or ssh configuration" },
        { "Unprivileged users are not permitted to log in", OPENING, ECONNREFUSED, /* pam_nologin */
                EXIT_UNREACHABLE,
                "{host} does not let {user} log in, because it is booting or going down",
                "wait until it is up and run again" },
        { "Connection refused", OPENING, ECONNREFUSED, EXIT_UNREACHABLE,
                "{host} refused the connection to port {port}",
                "see that sshd runs there and that the port is right" },
        { "timed out", OPENING, ETIMEDOUT, EXIT_UNREACHABLE,
                "{host} port {port} did not answer in time",
                "see that the machine is up and that no firewall drops port {port}" },
        { "No route to host", OPENING, EHOSTUNREACH, EXIT_UNREACHABLE,
                "there is no route to {host}", "see that the machine is up and on this network" },
        { "Network is unreachable", OPENING, EHOSTUNREACH, EXIT_UNREACHABLE,
                "the network of {host} cannot be reached", "check this computer's own network" },
        { "UNPROTECTED PRIVATE KEY FILE", OPENING, EACCES, EXIT_UNREACHABLE,
                "ssh does not use the key {key}: others may read it",
                "restrict it: chmod 600 {key}" },
        { "Identity file", OPENING, EACCES, EXIT_UNREACHABLE,
                "there is no key {key} to log in to {host} with", "check provider.ssh.key" },
        { "Too many authentication failures", OPENING, EACCES, EXIT_UNREACHABLE,
                "{host} was offered too many keys and refuses {user}",
                "name the right key in provider.ssh.key" },
        { "Bad configuration option", OPENING, EINVAL, EXIT_CONFIG,
                "ssh does not know one of its options: {line}",
                "check provider.ssh.options and ~/.ssh/config" },
        { "command-line line 0:", OPENING, EINVAL, EXIT_CONFIG,
                "ssh does not take one of its options: {line}", "check provider.ssh.options" },
        { "Bad owner or permissions on", OPENING, EINVAL, EXIT_CONFIG,
                "ssh does not trust its configuration: {line}",
                "restrict the file to its owner (chmod 600)" },
        { "a password is required", OPENING, EPERM, EXIT_PREFLIGHT,
                "sudo on {host} asks {user} for a password", SUDOERS },
        { "a terminal is required", OPENING, EPERM, EXIT_PREFLIGHT,
                "sudo on {host} asks {user} for a password", SUDOERS },
        { "must have a tty", OPENING, EPERM, EXIT_PREFLIGHT,
                "sudo on {host} wants a terminal (requiretty)",
                "take requiretty out of sudoers there for {user}" },
        { "incorrect password", OPENING, EPERM, EXIT_PREFLIGHT,
                "sudo on {host} rejected the password of {user}",
                "check it by hand: sudo -v on the machine" },
        { "not in the sudoers file", OPENING, EPERM, EXIT_PREFLIGHT,
                "{user} may not use sudo on {host}",
                "put {user} into sudoers there, or log in as root" },
        { "may not run sudo", OPENING, EPERM, EXIT_PREFLIGHT, "{user} may not use sudo on {host}",
                "put {user} into sudoers there, or log in as root" },
        { "is not allowed to execute", OPENING, EPERM, EXIT_PREFLIGHT,
                "{user} may not run everything with sudo on {host}",
                "let {user} run any command there (ALL in sudoers), or log in as root" },
        { "no new privileges", OPENING, EPERM, EXIT_PREFLIGHT, "sudo cannot work on {host}: {line}",
                "log in as root" },
        { "sudo: ", OPENING, EPERM, EXIT_PREFLIGHT, "sudo on {host} failed: {line}", SUDOERS },
        { "No space left on device", STARTING, ENOSPC, EXIT_PREFLIGHT,
                "there is no room for the agent on {host} in {dir}",
                "make room on its file system and run again" },
        { "Disk quota exceeded", STARTING, ENOSPC, EXIT_PREFLIGHT,
                "there is no room for the agent on {host} in {dir}: {line}",
                "make room on its file system and run again" },
        { "Read-only file system", STARTING, EROFS, EXIT_PREFLIGHT,
                "{dir} on {host} cannot be written: its file system is read-only",
                "see why (dmesg), mount it writable and run again" },
        { "Exceeded MaxStartups", OPENING, ECONNRESET, EXIT_UNREACHABLE,
                "{host} takes no more connections at once",
                "raise MaxStartups in its sshd_config" },
        { "kex_exchange_identification", OPENING, ECONNRESET, EXIT_UNREACHABLE,
                "{host} closed the connection before it identified itself",
                "see sshd's log there: it may be starting, or take no more connections (MaxStartups), or have banned this address" },
        { "Connection reset", OPENING, ECONNRESET, EXIT_UNREACHABLE,
                "{host} closed the connection before anything was done", "see sshd's log there" },
        { "Connection closed by", OPENING, ECONNRESET, EXIT_UNREACHABLE,
                "{host} closed the connection before anything was done", "see sshd's log there" },
        { "closed by remote host", ANY, EPIPE, EXIT_UNREACHABLE, CUT, AGAIN },
        { "not responding", ANY, EPIPE, EXIT_UNREACHABLE, CUT, AGAIN },
        { "Broken pipe", ANY, EPIPE, EXIT_UNREACHABLE, CUT, AGAIN },
        { "Connection reset", UNDERWAY, EPIPE, EXIT_UNREACHABLE, CUT, AGAIN },
        { "timed out", UNDERWAY, EPIPE, EXIT_UNREACHABLE, CUT, AGAIN },
};

static const struct cause refused_key = {
        "Permission denied (", OPENING, EACCES, EXIT_UNREACHABLE,
        "{host} refuses the login of {user} with {offered}",
        "put the public key into ~{user}/.ssh/authorized_keys there, or set provider.ssh.user and provider.ssh.key"
};
static const struct cause locked_key = { "Permission denied (", OPENING, EACCES, EXIT_UNREACHABLE,
        "{host} would accept the key {accepted} of {user}, but it is encrypted with a passphrase and no ssh agent has it",
        "give it to the agent first: ssh-add {accepted}" };
static const struct cause bastion = { NULL, OPENING, EHOSTUNREACH, EXIT_UNREACHABLE,
        "{host} cannot be reached through the bastion {bastion}: {line}", HAND };
static const struct cause no_bastion = { NULL, OPENING, ENXIO, EXIT_UNREACHABLE,
        "{host} is reached through a bastion that does not run", "slipway up makes or starts it" };
static const struct cause silent = { NULL, OPENING, ETIMEDOUT, EXIT_UNREACHABLE,
        "{at} did not respond for too long after ssh was started", HAND };
static const struct cause wrong_password = { NULL, OPENING, EPERM, EXIT_PREFLIGHT,
        "sudo on {host} rejected the password of {user}",
        "check it by hand: sudo -v on the machine" };
static const struct cause by_signal = {
        NULL, LATER, ECHILD, EXIT_STEP, "the agent on {host} was killed or crashed{doing}",
        "run again; if it happens again, see the end of {dir}/journal and the kernel's log (dmesg) on the node"
};
static const struct cause ssh_killed = { NULL, ANY, EPIPE, EXIT_UNREACHABLE,
        "ssh to {host} was killed by a signal{doing}", AGAIN };
static const struct cause ssh_failed = { NULL, OPENING, EIO, EXIT_UNREACHABLE,
        "ssh to {at} failed: {line}", HAND };
static const struct cause not_started = { NULL, OPENING, EIO, EXIT_PREFLIGHT,
        "the agent did not start on {host}: {line}", "check the node; " HAND };
static const struct cause cut = { NULL, LATER, EPIPE, EXIT_UNREACHABLE, CUT, AGAIN };
static const struct cause ended = { NULL, LATER, EIO, EXIT_STEP,
        "the agent on {host} ended{doing}: {line}",
        "run again; if it happens again, see {dir}/journal on the node" };

static const struct cause by_word[] = {
        [WORD_NOSUDO] = { NULL, OPENING, EPERM, EXIT_PREFLIGHT,
                "{user} on {host} is not root, and there is no sudo",
                "install sudo there, or log in as root" },
        [WORD_NOROOT] = { NULL, OPENING, EPERM, EXIT_PREFLIGHT,
                "{user} on {host} is not root, and sudo is turned off",
                "set provider.ssh.sudo to true, or log in as root" },
        [WORD_FAILED] = { NULL, OPENING, EIO, EXIT_PREFLIGHT,
                "the agent cannot be written to {dir} on {host}: {line}",
                "check that directory and run again" },
        [WORD_DAMAGED] = { NULL, OPENING, EIO, EXIT_UNREACHABLE,
                "the agent arrived damaged on {host}", "run again: it is sent anew" },
};

/* ---- values of the {words} ---- */

struct facts_of {
        struct link *l;
        const char *line;
        struct str out;
};

static void put_text(struct facts_of *f, const char *text) { str_add(&f->out, text ? text : ""); }

static void put_host(struct facts_of *f) { put_text(f, f->l->target.host); }
static void put_port(struct facts_of *f)
{
        str_addf(&f->out, "%ld", f->l->target.port ? f->l->target.port : 22);
}
static void put_user(struct facts_of *f)
{
        put_text(f, f->l->target.user ? f->l->target.user : "the user");
}
static void put_key(struct facts_of *f)
{
        put_text(f, f->l->target.key ? f->l->target.key : "of your ssh configuration");
}
static void put_line(struct facts_of *f)
{
        str_addn(&f->out, f->line, strlen(f->line) - has_suffix(f->line, "."));
}
static void put_print(struct facts_of *f)
{
        put_text(f, f->l->talk.host_key ? f->l->talk.host_key : "its fingerprint was not told");
}
static void put_accepted(struct facts_of *f) { put_text(f, f->l->talk.accepted); }
static void put_bastion(struct facts_of *f) { put_text(f, f->l->target.bastion); }
static void put_dir(struct facts_of *f)
{
        put_text(f, link_state_dir(&f->l->target, &f->l->arena));
}
static void put_hand(struct facts_of *f) { put_text(f, link_by_hand(&f->l->target, &f->l->arena)); }

static void put_at(struct facts_of *f)
{
        put_user(f);
        str_addf(&f->out, "@%s port %ld", f->l->target.host,
                f->l->target.port ? f->l->target.port : 22);
}

static void put_offered(struct facts_of *f)
{
        if (f->l->talk.offered.len)
                str_addf(&f->out, "the key %s", f->l->talk.offered.data);
        else if (f->l->target.key)
                str_addf(&f->out, "the key %s, which could not be read", f->l->target.key);
        else
                put_text(f, "any key: ssh had none to offer");
}

/* "Offending ED25519 key in /home/me/.ssh/known_hosts:7", "Host key for [10.0.0.1]:2222 has changed
 * and you have requested strict checking." */
static void put_forget(struct facts_of *f)
{
        static const char key_in[] = " key in ", of[] = "Host key for ";
        const struct link_target *t = &f->l->target;
        const char *file = link_said(&f->l->talk, "Offending "), *host = link_said(&f->l->talk, of);
        file = file ? strstr(file, key_in) : NULL;
        host = host ? strstr(host, of) + strlen(of) : NULL;
        str_add(&f->out, "ssh-keygen");
        if (file)
                str_addf(&f->out, " -f '%.*s'",
                        (int)(strrchr(file, ':')
                                        ? strrchr(file, ':') - file - (ptrdiff_t)strlen(key_in)
                                        : 0),
                        file + strlen(key_in));
        else if (t->known_hosts)
                str_addf(&f->out, " -f '%s'", t->known_hosts);
        if (host)
                str_addf(&f->out, " -R '%.*s'", (int)strcspn(host, " "), host);
        else if (t->port && t->port != 22)
                str_addf(&f->out, " -R '[%s]:%ld'", t->host, t->port);
        else
                str_addf(&f->out, " -R '%s'", t->host);
}

static void put_doing(struct facts_of *f)
{
        const struct link *l = f->l;
        if (l->phase == PHASE_BLOBS)
                str_addf(&f->out, " while files were being sent (%" PRId64 " of %" PRId64 " MB)",
                        l->job.sent >> 20, l->job.total >> 20);
        else if (l->phase == PHASE_AGENT)
                str_add(&f->out, " while the agent was being sent");
        else if (l->phase == PHASE_APPLY)
                str_add(&f->out, " while the node was being changed");
}

static const struct {
        const char *word;
        void (*put)(struct facts_of *f);
} fields[] = {
        { "{host}", put_host },
        { "{port}", put_port },
        { "{user}", put_user },
        { "{at}", put_at },
        { "{key}", put_key },
        { "{line}", put_line },
        { "{print}", put_print },
        { "{offered}", put_offered },
        { "{accepted}", put_accepted },
        { "{bastion}", put_bastion },
        { "{dir}", put_dir },
        { "{hand}", put_hand },
        { "{forget}", put_forget },
        { "{doing}", put_doing },
};

static const char *error_expand(struct facts_of *f, const char *text)
{
        str_truncate(&f->out, 0);
        while (*text) {
                size_t i = 0;
                while (i < ARRAY_SIZE(fields) && !has_prefix(text, fields[i].word))
                        i++;
                if (i < ARRAY_SIZE(fields)) {
                        fields[i].put(f);
                        text += strlen(fields[i].word);
                } else
                        str_addc(&f->out, *text++);
        }
        return str_text(&f->out);
}

/* ---- choosing the row ---- */

/* The most informative of several lines: not ssh's remark that its jump host has ended. */
static const char *last_word(const struct link_talk *t)
{
        static const char *const empty[] = { "UNKNOWN port 65535", "kex_exchange_identification",
                "stdio forwarding failed", "Warning: Permanently added" };
        for (size_t i = t->count; i-- > 0;) {
                size_t k = 0;
                while (k < ARRAY_SIZE(empty) && !strstr(t->lines[i], empty[k]))
                        k++;
                if (k == ARRAY_SIZE(empty))
                        return t->lines[i];
        }
        return t->noise ? t->noise : "it said nothing";
}

bool link_dropped(const struct link *l)
{
        /* the last two: the connection was closed before ssh sent its banner */
        static const char *const empty[] = { "kex_exchange_identification", "Connection closed by",
                "Connection reset by", "Exceeded MaxStartups", "Not allowed at this time",
                "Warning: Permanently added", "UNKNOWN port 65535", ": Broken pipe" };
        const struct link_talk *t = &l->talk;
        if (l->word != WORD_NONE || t->host_key ||
                !(link_said(t, "kex_exchange_identification") ||
                        link_said(t, "Exceeded MaxStartups")))
                return false;
        for (size_t i = 0; i < t->count; i++) {
                size_t k = 0;
                while (k < ARRAY_SIZE(empty) && !strstr(t->lines[i], empty[k]))
                        k++;
                /* a jump host that could not connect says why */
                if (k == ARRAY_SIZE(empty))
                        return false;
        }
        return true;
}

static const struct cause *from_lines(struct link *l, enum when when, const char **line)
{
        const struct link_talk *t = &l->talk;
        if (l->target.bastion && when == OPENING && !t->host_key &&
                link_said(t, "UNKNOWN port 65535"))
                return link_nowhere(&l->target) ? &no_bastion : &bastion;
        for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
                const char *said = causes[i].when & when ? link_said(t, causes[i].said) : NULL;
                if (!said)
                        continue;
                *line = said;
                return &causes[i];
        }
        if (when == OPENING && link_said(t, refused_key.said))
                return t->accepted ? &locked_key : &refused_key;
        return NULL;
}

static const struct cause *error_find(struct link *l, int status, const char **line)
{
        enum when when = l->phase >= PHASE_IDLE                             ? LATER
                         : l->word == WORD_NONE || l->word == WORD_PASSWORD ? OPENING
                                                                            : STARTING;
        if (status == -ETIMEDOUT)
                return &silent;
        if (status == -EPERM)
                return &wrong_password;
        if (l->talk.signalled)
                return &by_signal;
        if (status >= 128 && status < 255)
                return &ssh_killed;
        const struct cause *c = from_lines(l, when, line);
        if (c)
                return c;
        if (l->word >= WORD_NOSUDO)
                return &by_word[l->word];
        if (status == 255)
                return when == OPENING ? &ssh_failed : &cut;
        return when == LATER ? &ended : &not_started;
}

/* What documentation writes (RFC 5737, RFC 3849), and 'slipway init': no host has it. */
static bool address_of_examples(const char *host)
{
        static const char *const ranges[] = { "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",
                "2001:db8::/32" };
        struct ip ip;
        struct cidr range;
        for (size_t i = 0; ip_parse(host, &ip) && i < ARRAY_SIZE(ranges); i++)
                if (cidr_parse(ranges[i], &range, NULL) && cidr_contains(&range, &ip))
                        return true;
        return false;
}

void link_explain(struct link *l, int status, struct error *err)
{
        struct facts_of f = { .l = l, .line = last_word(&l->talk) };
        const struct cause *c = error_find(l, status, &f.line);
        error_set(
                err, c->code, c->status, "node %s: %s", l->target.name, error_expand(&f, c->what));
        if ((c->code == ETIMEDOUT || c->code == EHOSTUNREACH) &&
                address_of_examples(l->target.host))
                error_hint(err,
                        "%s is an address for examples: write the machine's own into cluster.yaml",
                        l->target.host);
        else
                error_hint(err, "%s", error_expand(&f, c->hint));
        str_release(&f.out);
}

/* Removes the rules of kube-proxy, the kubelet and the fabric. Their chains are known by name;
 * jumps to them are removed too, and everything else stays. */
#include <sys/socket.h>

#include "agent/reset/reset.h"
#include "agent/reset/traces.h"
#include "base/file.h"

#define SECONDS 120

/* ---- tables of nftables, by netlink ---- */

#define NETLINK_NETFILTER 12
#define NFT               (10 << 8)
#define BATCH_BEGIN       16
#define BATCH_END         17
#define GETTABLE          (NFT | 1)
#define DELTABLE          (NFT | 2)
#define REQUEST           1
#define ACK               4
#define DUMP              0x300
#define MSG_ERROR         2
#define MSG_DONE          3
#define ATTR_NAME         1

static const struct family {
        const char *name;
        uint8_t number;
} families[] = { { "ip", 2 }, { "ip6", 10 }, { "inet", 1 }, { "arp", 3 }, { "bridge", 7 } };

static void nft_message(
        struct str *s, uint16_t type, uint16_t flags, uint8_t family, const char *name)
{
        size_t n = name ? strlen(name) + 1 : 0, padded = (n + 3) & ~(size_t)3;
        struct {
                uint32_t len;
                uint16_t type, flags;
                uint32_t seq, port;
                uint8_t family, version;
                uint16_t subsystem; /* big-endian; of a batch message */
        } head = { .len = (uint32_t)(20 + (n ? 4 + padded : 0)),
                .type = type,
                .flags = flags,
                .seq = 1,
                .family = family };
        head.subsystem = type == BATCH_BEGIN || type == BATCH_END ? __builtin_bswap16(NFT >> 8) : 0;
        str_addn(s, &head, sizeof(head));
        if (!n)
                return;
        uint16_t attr[2] = { (uint16_t)(n + 4), ATTR_NAME };
        str_addn(s, attr, sizeof(attr));
        str_addn(s, name, n);
        str_addn(s, "\0\0\0", padded - n);
}

static int nft_open(void)
{
        struct timeval wait = { .tv_sec = 5 };
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        return fd;
}

/* 0: the table existed and is removed. */
static int delete_table(const struct family *f, const char *name)
{
        struct str s CLEANUP(str_release) = { 0 };
        int32_t answer[256], fd CLEANUP(close_p) = nft_open();
        nft_message(&s, BATCH_BEGIN, REQUEST, 0, NULL);
        nft_message(&s, DELTABLE, REQUEST | ACK, f->number, name);
        nft_message(&s, BATCH_END, REQUEST, 0, NULL);
        if (fd < 0 || send(fd, s.data, s.len, 0) < 0 || recv(fd, answer, sizeof(answer), 0) < 20)
                return -errno;
        return answer[4];
}

static const struct family *family_of(uint8_t number)
{
        for (size_t i = 0; i < ARRAY_SIZE(families); i++)
                if (families[i].number == number)
                        return &families[i];
        return NULL;
}

/* Handles one message of the answer; false at the end. */
static bool table_seen(struct agent *a, const uint8_t *m, size_t len)
{
        uint16_t type, n, kind;
        memcpy(&type, m + 4, 2);
        if (type == MSG_DONE || type == MSG_ERROR || len < 24)
                return false;
        const struct family *f = family_of(m[16]);
        for (size_t at = 20; at + 4 <= len; at += ((size_t)n + 3) & ~(size_t)3) {
                memcpy(&n, m + at, 2);
                memcpy(&kind, m + at + 2, 2);
                if (n < 4 || at + n > len)
                        break;
                if (kind == ATTR_NAME && f && n > 4) {
                        char *key CLEANUP(free_p) =
                                xasprintf("%s %.*s", f->name, (int)n - 5, (const char *)m + at + 4);
                        before_value(a, "table", key, "-");
                }
        }
        return true;
}

void rules_keep(struct agent *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        int fd CLEANUP(close_p) = nft_open();
        uint8_t buf[32 << 10];
        ssize_t n;
        nft_message(&s, GETTABLE, REQUEST | DUMP, 0, NULL);
        if (fd < 0 || send(fd, s.data, s.len, 0) < 0)
                return;
        for (bool more = true; more && (n = recv(fd, buf, sizeof(buf), 0)) >= 20;)
                for (size_t at = 0; more && at + 20 <= (size_t)n;) {
                        uint32_t len;
                        memcpy(&len, buf + at, 4);
                        if (len < 16 || at + len > (size_t)n)
                                return;
                        more = table_seen(a, buf + at, len);
                        at += (len + 3) & ~3u;
                }
}

static void delete_own_tables(struct agent *a)
{
        const char *name;
        for (size_t i = 0; (name = trace_name(TRACE_TABLE, i)); i++)
                for (size_t k = 0; k < 3; k++) {
                        char *key CLEANUP(free_p) = xasprintf("%s %s", families[k].name, name);
                        if (delete_table(&families[k], name) == 0)
                                reset_event(
                                        a, SPEC_MODULE, key, STATE_REMOVED, "rules of the cluster");
                }
}

/* ---- chains of iptables ---- */

/* A variant of iptables; the plain one is skipped where its nft or legacy variant exists. */
struct kind {
        const char *save, *restore;
        /* index into families for the nft variant, whose empty tables are removed; else -1 */
        int family;
        /* of the legacy variant: lists the tables in use, because -save would create them */
        const char *names;
};
static const struct kind kinds[] = {
        { "iptables-nft-save", "iptables-nft-restore", 0, NULL },
        { "ip6tables-nft-save", "ip6tables-nft-restore", 1, NULL },
        { "iptables-legacy-save", "iptables-legacy-restore", -1, "/proc/net/ip_tables_names" },
        { "ip6tables-legacy-save", "ip6tables-legacy-restore", -1, "/proc/net/ip6_tables_names" },
        { "iptables-save", "iptables-restore", -1, NULL },
        { "ip6tables-save", "ip6tables-restore", -1, NULL },
};

static bool program_there(const char *name)
{
        static const char *const dirs[] = { "/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin" };
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                char *path CLEANUP(free_p) = path_join(dirs[i], name);
                if (access(path, X_OK) == 0)
                        return true;
        }
        return false;
}

/* CNI plugins of other programs (podman) use the same chain names: the chains are theirs if their
 * configuration existed before the first run. */
static bool is_our_chain(struct agent *a, const char *name)
{
        return trace_prefix(TRACE_CHAIN, name) ||
               (has_prefix(name, "CNI-") && !before_is(a, "dir", "/etc/cni/net.d"));
}

/* The word after a text of the line. */
static bool word_at(const char *line, const char *after, char out[64])
{
        const char *at = strstr(line, after);
        if (!at)
                return false;
        at += strlen(after);
        snprintf(out, 64, "%.*s", (int)strcspn(at, " \n"), at);
        return *out;
}

#define COMMENT " --comment \""

/* A rule in another chain: it jumps to one of slipway's chains, its comment names the program
 * (calico's rule for packets that a policy accepted), or it asks for one of the sets, which could
 * not be removed before it. */
static bool is_our_rule(struct agent *a, const char *line)
{
        char word[64];
        const char *comment = strstr(line, COMMENT);
        return ((word_at(line, " -j ", word) || word_at(line, " -g ", word)) &&
                       is_our_chain(a, word)) ||
               (comment && trace_prefix(TRACE_COMMENT, comment + strlen(COMMENT))) ||
               (word_at(line, " --match-set ", word) && trace_prefix(TRACE_SET, word));
}

/* One table from -save as input for -restore: flushes slipway's chains, deletes jumps to them,
 * deletes the chains. */
struct table {
        char name[64];
        struct str flush, unjump, drop;
        bool others; /* it has rules or chains of others */
};

static void table_line(struct agent *a, struct table *t, const char *line)
{
        char chain[64];
        if (line[0] == ':') {
                snprintf(chain, sizeof(chain), "%.*s", (int)strcspn(line + 1, " \n"), line + 1);
                bool base = !strstr(line, " - "), accepts = strstr(line, " ACCEPT ") != NULL;
                if (is_our_chain(a, chain)) {
                        str_addf(&t->flush, ":%s - [0:0]\n", chain);
                        str_addf(&t->drop, "-X %s\n", chain);
                } else
                        t->others |= !base || !accepts;
        } else if (has_prefix(line, "-A ")) {
                snprintf(chain, sizeof(chain), "%.*s", (int)strcspn(line + 3, " \n"), line + 3);
                if (is_our_chain(a, chain))
                        return;
                if (is_our_rule(a, line))
                        str_addf(&t->unjump, "-D %s\n", line + 3);
                else
                        t->others = true;
        }
}

static void table_release(struct table *t)
{
        str_release(&t->flush);
        str_release(&t->unjump);
        str_release(&t->drop);
        *t = (struct table){ 0 };
}

static int iptables_restore(
        struct agent *a, const struct kind *k, const struct table *t, struct error *err)
{
        struct child *c =
                child_start(&a->session, WORDS(k->restore, "--noflush", "-w", "60"), false);
        str_addf(&c->input, "*%s\n%s%s%sCOMMIT\n", t->name, str_text(&t->flush),
                str_text(&t->unjump), str_text(&t->drop));
        int r = child_wait(&a->session, c, SECONDS, err);
        child_free(&a->session, c);
        return r;
}

static void table_end(struct agent *a, const struct kind *k, const struct table *t)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *what CLEANUP(free_p) = xasprintf("%s table %s", k->save, t->name);
        if (t->drop.len || t->unjump.len) {
                if (iptables_restore(a, k, t, &err) < 0) {
                        reset_event(a, SPEC_MODULE, what, STATE_FAILED, err.message);
                        return;
                }
                reset_event(a, SPEC_MODULE, what, STATE_REMOVED, "chains of the cluster");
        }
        if (t->others || k->family < 0)
                return;
        char *key CLEANUP(free_p) = xasprintf("%s %s", families[k->family].name, t->name);
        /* only the chains that iptables creates by itself are left */
        if (!before_is(a, "table", key))
                delete_table(&families[k->family], t->name);
}

static void iptables_clean(struct agent *a, const struct kind *k)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct table t CLEANUP(table_release) = { 0 };
        char *save = NULL;
        if (!program_there(k->save))
                return;
        int r = tool(&a->session, WORDS(k->save), SECONDS, &text, &err);
        /* other failures mean that the kernel has no such tables */
        if (r == -EFBIG || r == -ETIMEDOUT)
                reset_event(a, SPEC_MODULE, k->save, STATE_FAILED, err.message);
        if (r < 0 || !text.len)
                return;
        for (char *line = strtok_r(text.data, "\n", &save); line;
                line = strtok_r(NULL, "\n", &save)) {
                if (line[0] == '*') {
                        table_release(&t);
                        snprintf(t.name, sizeof(t.name), "%s", line + 1);
                } else if (streq(line, "COMMIT"))
                        table_end(a, k, &t);
                else
                        table_line(a, &t, line);
        }
}

static bool iptables_in_use(const struct kind *k)
{
        FILE *f CLEANUP(fclose_p) = k->names ? fopen(k->names, "re") : NULL;
        return !k->names || (f && fgetc(f) != EOF);
}

static void clean_iptables(struct agent *a)
{
        for (size_t i = 0; i < ARRAY_SIZE(kinds) && session_alive(&a->session); i++) {
                bool plain = i >= 4, spoken = plain && (program_there(kinds[i - 4].save) ||
                                                               program_there(kinds[i - 2].save));
                if (!spoken && iptables_in_use(&kinds[i]))
                        iptables_clean(a, &kinds[i]);
        }
}

/* ---- ipvs and ipsets ---- */

/* kube-proxy removes its own ipvs services; sets can be removed when no rule uses them. */
static void clean_sets(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str list CLEANUP(str_release) = { 0 };
        char *save = NULL;
        if (access("/proc/net/ip_vs", F_OK) == 0)
                for (size_t i = 0; i < a->record.count; i++)
                        if (a->record.rows[i]->kind == SPEC_ARTIFACT &&
                                has_suffix(a->record.rows[i]->key, "/kube-proxy"))
                                tool(&a->session, WORDS(a->record.rows[i]->key, "--cleanup"),
                                        SECONDS, NULL, &err);
        error_release(&err);
        if (!program_there("ipset") ||
                tool(&a->session, WORDS("ipset", "list", "-n"), SECONDS, &list, &err) < 0 ||
                !list.len)
                return;
        for (char *name = strtok_r(list.data, "\n", &save); name;
                name = strtok_r(NULL, "\n", &save)) {
                error_release(&err);
                if (trace_prefix(TRACE_SET, name))
                        tool(&a->session, WORDS("ipset", "destroy", name), SECONDS, NULL, &err);
        }
}

void reset_rules(struct agent *a)
{
        clean_iptables(a);
        delete_own_tables(a);
        clean_sets(a);
}

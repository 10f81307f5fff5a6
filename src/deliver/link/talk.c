/* ssh's standard error: ssh's own lines, those of the shell and sudo on the node, and the
 * agent's last lines. */
#include "deliver/link/state.h"

#define LINE_MAX_LEN 1000
#define DEBUG        "debug1: "

/* The host may print anything: it is escaped for terminals. */
static char *plain_copy(const char *text, size_t n)
{
        char *line = xstrndup(text, n < LINE_MAX_LEN ? n : LINE_MAX_LEN);
        for (char *p = line; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = *p == '\t' ? ' ' : '?';
        return line;
}

static const char *after(const char *line, const char *prefix)
{
        return has_prefix(line, prefix) ? line + strlen(prefix) : NULL;
}

static void offered(struct link_talk *t, const char *key)
{
        if (t->offered.len > 2000)
                return;
        str_addf(&t->offered, "%s%.*s", t->offered.len ? ", " : "", (int)strcspn(key, " "), key);
}

/* Lines of debug1 are not shown, but a few facts are only in them. */
static void debug_line(struct link *l, const char *line)
{
        struct link_talk *t = &l->talk;
        const char *v;
        /* of the node: so the jump host has accepted the login */
        if (l->target.bastion && has_prefix(line, "Remote protocol version "))
                gate_leave(&l->gate);
        if (((v = after(line, "Server host key: ")) ||
                    (v = after(line, "Server host certificate: "))) &&
                !t->host_key)
                t->host_key = xstrndup(v, strcspn(v, ","));
        else if ((v = after(line, "Offering public key: ")))
                offered(t, v);
        else if ((v = after(line, "Server accepts key: "))) {
                free(t->accepted);
                t->accepted = xstrndup(v, strcspn(v, " "));
        } else if (strstr(line, "rtype exit-signal"))
                t->signalled = true;
}

static void new_key(struct link *l, const char *line)
{
        char *text CLEANUP(free_p) = xasprintf("%.*s%s%s%s", (int)strcspn(line, "\r"), line,
                l->talk.host_key ? " (" : "", l->talk.host_key ? l->talk.host_key : "",
                l->talk.host_key ? ")" : "");
        if (l->events.on_new_key && !l->closing)
                l->events.on_new_key(l, text, l->events.arg);
}

static void talk_keep(struct link_talk *t, const char *line)
{
        if (t->count == TALK_LINES) {
                free(t->lines[0]);
                memmove(t->lines, t->lines + 1, (TALK_LINES - 1) * sizeof(*t->lines));
                t->count--;
        }
        t->lines[t->count++] = xstrdup(line);
}

/* Lines of ssh at this level that explain nothing. */
static bool idle_talk(const char *line)
{
        static const char *const idle[] = { "Authenticated to ", "Transferred: sent ",
                "Bytes per second: ", "OpenSSH_" };
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
                if (has_prefix(line, idle[i]))
                        return true;
        /* a frame around a warning, a mark under a line, or empty */
        return !line[strspn(line, "@^~ ")];
}

static void whole_line(struct link *l, const char *text, size_t n)
{
        while (n && (text[n - 1] == '\r' || text[n - 1] == ' '))
                n--;
        char *line CLEANUP(free_p) = plain_copy(text, n);
        const char *v;
        if ((v = after(line, DEBUG))) {
                debug_line(l, v);
                return;
        }
        if (has_prefix(line, "Authenticated to ")) {
                gate_leave(&l->gate);
                l->talk.changed_key |= l->talk.warned_key;
        }
        if (idle_talk(line))
                return;
        talk_keep(&l->talk, line);
        if ((v = after(line, "Warning: Permanently added ")))
                new_key(l, v - strlen("Permanently added "));
        else if (strstr(line, "REMOTE HOST IDENTIFICATION HAS CHANGED"))
                /* Its file comes some lines later, and the hint needs it; of a key in DNS there is
                 * none. ssh may continue if the user's settings allow it; slipway does not. */
                l->talk.warned_key = true;
        else if (l->talk.warned_key && strstr(line, "Offending "))
                l->talk.changed_key = true;
        else if (l->talk.prompts && strstr(line, "try again"))
                l->talk.wrong_password = true;
}

/* A prompt has no newline after it. The first is answered already; a second one means that the
 * password was wrong. */
static void look_for_prompt(struct link_talk *t)
{
        char *prompt = t->line.len ? strstr(t->line.data, LINK_PROMPT) : NULL;
        if (!prompt || has_prefix(t->line.data, DEBUG)) /* ssh prints the command there too */
                return;
        if (++t->prompts > 1)
                t->wrong_password = true;
        memset(prompt, ' ', strlen(LINK_PROMPT));
}

void link_talk(struct link *l, const char *data, size_t n)
{
        struct link_talk *t = &l->talk;
        while (n && !l->dead) {
                const char *nl = memchr(data, '\n', n);
                size_t len = nl ? (size_t)(nl - data) : n,
                       room = t->line.len < LINE_MAX_LEN ? LINE_MAX_LEN - t->line.len : 0;
                str_addn(&t->line, data, len < room ? len : room);
                look_for_prompt(t);
                data += len + (nl != NULL);
                n -= len + (nl != NULL);
                if (!nl)
                        break;
                struct str line CLEANUP(str_release) = t->line;
                t->line = (struct str){ 0 };
                whole_line(l, str_text(&line), line.len);
        }
}

void link_noise(struct link *l, const char *line, size_t n)
{
        while (n && (line[n - 1] == '\r' || line[n - 1] == ' '))
                n--;
        if (!n)
                return;
        free(l->talk.noise);
        l->talk.noise = plain_copy(line, n);
}

const char *link_said(const struct link_talk *t, const char *text)
{
        for (size_t i = t->count; i-- > 0;)
                if (strstr(t->lines[i], text))
                        return t->lines[i];
        return NULL;
}

void link_talk_release(struct link_talk *t)
{
        for (size_t i = 0; i < t->count; i++)
                free(t->lines[i]);
        str_release(&t->line);
        str_release(&t->offered);
        free(t->noise);
        free(t->host_key);
        free(t->accepted);
        *t = (struct link_talk){ 0 };
}

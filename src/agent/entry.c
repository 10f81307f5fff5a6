#include "agent/agent.h"

static const struct {
        const char *name;
        bool path, blob;
        unsigned mode; /* the default */
} kinds[SPEC_KIND_COUNT] = {
        [SPEC_DIR] = { "dir", true, false, 0755 },
        [SPEC_FILE] = { "file", true, true, 0644 },
        [SPEC_LINK] = { "link", true, false, 0777 },
        [SPEC_UNIT] = { "unit", false, false, 0 },
        [SPEC_ARTIFACT] = { "artifact", true, true, 0755 },
        [SPEC_IMAGE] = { "image", false, true, 0 },
        [SPEC_SYSCTL] = { "sysctl", false, false, 0 },
        [SPEC_MODULE] = { "module", false, false, 0 },
        [SPEC_MOUNT] = { "mount", true, false, 0 },
        [SPEC_PACKAGE] = { "package", false, false, 0 },
        [SPEC_USER] = { "user", false, false, 0 },
        [SPEC_BLOCK] = { "block", true, false, 0644 },
        [SPEC_COMMAND] = { "command", false, false, 0 },
};

const char *kind_name(enum spec_kind k) { return kinds[k].name; }

const char *entry_key(const struct entry *e) { return kinds[e->kind].path ? e->path : e->name; }

bool word_next(const char **list, char *word, size_t size)
{
        const char *p = *list + strspn(*list, " ");
        size_t n = strcspn(p, " ");
        *list = p + n;
        snprintf(word, size, "%.*s", (int)n, p);
        return n > 0;
}

bool word_in(const char *list, const char *word)
{
        char w[512];
        while (list && word_next(&list, w, sizeof(w)))
                if (streq(w, word))
                        return true;
        return false;
}

static bool entry_plain_text(const char *s)
{
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        return false;
        return true;
}

/* Absolute, without empty, "." or ".." parts, so it stays below the root. */
static bool good_path(const char *p)
{
        if (*p != '/' || !p[1])
                return false;
        while (*p) {
                size_t n = strcspn(++p, "/");
                if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.') ||
                        n > 200)
                        return false;
                p += n;
        }
        return true;
}

/* Names are passed to programs as arguments, so none may look like an option. */
static bool good_name(const char *n)
{
        return *n && *n != '-' && strlen(n) < 500 && !strchr(n, ' ');
}

/* Extra blanks between the words of a sysctl's value do not matter. */
static void sysctl_squeeze(char *s)
{
        char *to = s;
        for (char *p = s; *p; p++) {
                char c = *p == '\t' || *p == '\n' ? ' ' : *p;
                if (c != ' ' || (to > s && to[-1] != ' '))
                        *to++ = c;
        }
        while (to > s && to[-1] == ' ')
                to--;
        *to = 0;
}

static int entry_bad(struct error *err, const struct entry *e, const char *why)
{
        return error_set(err, EPROTO, EXIT_STEP, "entry %zu of the spec: %s", e->index, why);
}

static int entry_validate(struct entry *e, struct error *err)
{
        const char *texts[] = { e->path, e->name, e->target, e->owner, e->units };
        const char *key = entry_key(e);
        if (e->kind == SPEC_SYSCTL && e->target)
                sysctl_squeeze(e->target);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (texts[i] && !entry_plain_text(texts[i]))
                        return entry_bad(err, e, "a text field has a control character");
        if (!key)
                return entry_bad(err, e, "no path or name");
        if (kinds[e->kind].path ? !good_path(key) : !good_name(key))
                return entry_bad(err, e,
                        kinds[e->kind].path
                                ? "the path is not absolute, or has empty or dot parts"
                                : "the name is empty, has blanks or begins with a dash");
        if ((e->kind == SPEC_LINK || e->kind == SPEC_SYSCTL) && (!e->target || !*e->target))
                return entry_bad(err, e, "no target");
        if (e->kind == SPEC_SYSCTL && strstr(e->name, ".."))
                return entry_bad(err, e, "the name is not that of a sysctl");
        if ((e->kind == SPEC_ARTIFACT || e->kind == SPEC_IMAGE) && !e->blob)
                return entry_bad(err, e, "no digest of its content");
        return 0;
}

/* The digest names the blob with the content; the digest of an image may be its target. */
static int entry_content(
        struct agent *a, const struct wire_frame *f, struct entry *e, struct error *err)
{
        struct wire_field v;
        char *digest CLEANUP(free_p) = wire_string(f, TAG_DIGEST);
        if (!digest && e->kind == SPEC_IMAGE && e->target)
                digest = xstrdup(has_prefix(e->target, "sha256:") ? e->target + 7 : e->target);
        if (digest) {
                if (!kinds[e->kind].blob || !sha256_valid(digest))
                        return entry_bad(err, e, "the digest is not valid");
                memcpy(e->digest, digest, SHA256_HEX);
                e->blob = true;
                return 0;
        }
        if (e->kind != SPEC_FILE && e->kind != SPEC_BLOCK && e->kind != SPEC_COMMAND)
                return 0;
        if (!wire_find(f, TAG_CONTENT, &v))
                v = (struct wire_field){ .data = (const uint8_t *)"" };
        if ((a->contents += v.len) > CONTENTS_MAX)
                return entry_bad(err, e, "the contents of all entries exceed the limit of a spec");
        e->content = xmalloc(v.len + 1); /* a command's words end in a NUL, even if it is missing */
        e->len = v.len;
        memcpy(e->content, v.data, v.len);
        e->content[v.len] = 0;
        sha256_hex(v.data, v.len, e->digest);
        return 0;
}

static char *entry_id(enum spec_kind kind, const char *key)
{
        return xasprintf("%d %s", (int)kind, key);
}

int entry_decode(struct agent *a, const struct wire_frame *f, struct error *err)
{
        uint64_t kind = wire_value(f, TAG_KIND, SPEC_KIND_COUNT),
                 class = wire_value(f, TAG_CLASS, CLASS_SECRET);
        if (a->count == a->expected || kind >= SPEC_KIND_COUNT || class > CLASS_SECRET)
                return error_set(err, EPROTO, EXIT_STEP,
                        "entry %zu of the spec has a kind that this agent does not know", a->count);
        struct entry *e = &a->entries[a->count];
        *e = (struct entry){
                .kind = (enum spec_kind)kind, .class = (enum spec_class) class, .index = a->count
        };
        a->count++;
        e->flags = (unsigned)wire_value(f, TAG_FLAGS, 0);
        e->mode = (unsigned)wire_value(f, TAG_FILE_MODE, kinds[kind].mode) & 07777;
        e->path = wire_string(f, TAG_PATH);
        e->name = wire_string(f, TAG_NAME);
        e->target = wire_string(f, TAG_TARGET);
        e->owner = wire_string(f, TAG_OWNER);
        e->units = wire_string(f, TAG_UNITS);
        int r = entry_content(a, f, e, err);
        if (r < 0 || (r = entry_validate(e, err)) < 0)
                return r;
        char *id = entry_id(e->kind, entry_key(e));
        if (index_get(&a->wanted, id)) {
                free(id);
                return entry_bad(err, e, "the spec has it twice");
        }
        e->id = id;
        index_put(&a->wanted, id, e);
        return 0;
}

void entries_release(struct agent *a)
{
        index_release(&a->wanted);
        for (size_t i = 0; i < a->count; i++) {
                struct entry *e = &a->entries[i];
                wipe(e->content, e->len);
                char **texts[] = { &e->id, &e->path, &e->name, &e->target, &e->owner, &e->units,
                        &e->content };
                for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
                        free_p(texts[k]);
        }
        free(a->entries);
        a->entries = NULL;
        a->count = a->expected = a->contents = 0;
        a->receiving = a->complete = false;
}

static bool entry_number(const char *s, unsigned *out)
{
        char *end;
        unsigned long v = strtoul(s, &end, 10);
        *out = (unsigned)v;
        return *s >= '0' && *s <= '9' && !*end && v < UINT32_MAX;
}

int entry_owner(const struct entry *e, unsigned *uid, unsigned *gid, struct error *err)
{
        *uid = *gid = 0;
        if (!e->owner || !*e->owner)
                return 0;
        char *user CLEANUP(free_p) = xstrdup(e->owner), *group = strchr(user, ':');
        if (group)
                *group++ = 0;
        if (*user && !entry_number(user, uid) && !user_find(user, uid, gid))
                return error_set(
                        err, ENOENT, EXIT_STEP, "user %s does not exist on this node", user);
        if (group && *group && !entry_number(group, gid) && !group_find(group, gid))
                return error_set(
                        err, ENOENT, EXIT_STEP, "group %s does not exist on this node", group);
        return 0;
}

static const char *const state_names[] = { "same", "created", "changed", "restarted", "started",
        "removed", "failed" };

void entry_done(struct agent *a, struct entry *e, enum wire_state state, const char *fmt, ...)
{
        struct str detail CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&detail, fmt, ap);
        va_end(ap);
        size_t b = wire_begin(&a->session.outgoing, WIRE_EVENT);
        wire_number(&a->session.outgoing, TAG_INDEX, e->index);
        wire_number(&a->session.outgoing, TAG_STATE, state);
        wire_text(&a->session.outgoing, TAG_DETAIL, detail.len ? detail.data : NULL);
        wire_end(&a->session.outgoing, b);
        e->over = true;
        a->changed += state != STATE_SAME && state != STATE_FAILED;
        a->failed += state == STATE_FAILED;
        if (state == STATE_FAILED)
                e->broken = true;
        if (state != STATE_SAME)
                journal(a, "%s %s %s%s%s", state_names[state], kind_name(e->kind), entry_key(e),
                        detail.len ? ": " : "", str_text(&detail));
}

void entry_report(struct agent *a, struct entry *e, enum wire_state state)
{
        entry_done(a, e, state, "%s", "");
}

void entry_failed(struct agent *a, struct entry *e, struct error *err)
{
        if (err->code == ECANCELED) /* the connection was cut, and the run stops */
                return;
        entry_done(a, e, STATE_FAILED, "%s %s: %s%s%s", kind_name(e->kind), entry_key(e),
                err->message ? err->message : "failed", err->hint ? "; " : "",
                err->hint ? err->hint : "");
}

#include <openssl/evp.h>

#include "node/nodespec.h"
#include "base/quote.h"

static const char *const kind_names[SPEC_KIND_COUNT] = {
        [SPEC_DIR] = "directory",
        [SPEC_FILE] = "file",
        [SPEC_LINK] = "link",
        [SPEC_UNIT] = "unit",
        [SPEC_ARTIFACT] = "artifact",
        [SPEC_IMAGE] = "image",
        [SPEC_SYSCTL] = "sysctl",
        [SPEC_MODULE] = "module",
        [SPEC_MOUNT] = "mount",
        [SPEC_PACKAGE] = "package",
        [SPEC_USER] = "user",
        [SPEC_BLOCK] = "block",
        [SPEC_COMMAND] = "command",
};

const char *spec_kind_name(enum spec_kind k) { return kind_names[k]; }

const char *spec_class_name(enum spec_class c)
{
        static const char *const names[] = { [CLASS_IMMUTABLE] = "immutable",
                [CLASS_MUTABLE] = "mutable",
                [CLASS_SECRET] = "secret" };
        return names[c];
}

struct spec_entry *nodespec_add(struct nodespec *s, enum spec_kind kind, enum spec_class class)
{
        if (s->count == s->cap) {
                s->cap = s->cap ? s->cap * 2 : 128;
                s->entries = xrealloc(s->entries, s->cap * sizeof(*s->entries));
        }
        s->entries[s->count] = (struct spec_entry){ .kind = kind, .class = class };
        return &s->entries[s->count++];
}

const struct spec_entry *nodespec_find(
        const struct nodespec *s, enum spec_kind kind, const char *path_or_name)
{
        for (size_t i = 0; i < s->count; i++) {
                const struct spec_entry *e = &s->entries[i];
                if (e->kind == kind && ((e->path && streq(e->path, path_or_name)) ||
                                               (e->name && streq(e->name, path_or_name))))
                        return e;
        }
        return NULL;
}

void nodespec_release(struct nodespec *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->entries[i].class == CLASS_SECRET && s->entries[i].content)
                        wipe((char *)(uintptr_t)s->entries[i].content, s->entries[i].len);
        free(s->entries);
        arena_release(&s->arena);
        *s = (struct nodespec){ 0 };
}

/* ---- as JSON ---- */

static void nodespec_sha256(const void *data, size_t n, struct str *out)
{
        static EVP_MD *md; /* fetching takes longer than hashing a small file */
        unsigned char sum[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        if (!md)
                md = EVP_MD_fetch(NULL, "SHA256", NULL);
        if (!md || !EVP_Digest(data, n, sum, &len, md, NULL))
                abort();
        str_add_hex(out, sum, len);
}

static void nodespec_member(struct str *out, const char *key, const char *value)
{
        if (!value)
                return;
        str_addf(out, ",\"%s\":", key);
        quote_json(out, value);
}

static void flag_names(struct str *out, unsigned flags)
{
        static const struct {
                unsigned flag;
                const char *name;
        } names[] = { { SPEC_ONCE, "once" }, { SPEC_ENABLE, "enable" }, { SPEC_START, "start" },
                { SPEC_DISABLE, "disable" }, { SPEC_RELOAD, "reload" }, { SPEC_SET, "set" } };
        bool first = true;
        if (!flags)
                return;
        str_add(out, ",\"flags\":[");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                if (!(flags & names[i].flag))
                        continue;
                str_addf(out, "%s\"%s\"", first ? "" : ",", names[i].name);
                first = false;
        }
        str_addc(out, ']');
}

static void unit_names(struct str *out, const char *units)
{
        bool first = true;
        if (!units)
                return;
        str_add(out, ",\"units\":[");
        while (*units) {
                size_t n = strcspn(units, " ");
                char *name CLEANUP(free_p) = xstrndup(units, n);
                str_add(out, first ? "" : ",");
                quote_json(out, name);
                first = false;
                units += n + (units[n] == ' ');
        }
        str_addc(out, ']');
}

/* The words of a command. */
static void nodespec_words(struct str *out, const char *content, size_t len)
{
        str_add(out, ",\"argv\":[");
        for (size_t i = 0; i < len; i += strlen(content + i) + 1) {
                str_add(out, i ? "," : "");
                quote_json(out, content + i);
        }
        str_addc(out, ']');
}

static void entry_json(const struct spec_entry *e, struct str *out)
{
        str_addf(out, "{\"kind\":\"%s\",\"class\":\"%s\"", spec_kind_name(e->kind),
                spec_class_name(e->class));
        nodespec_member(out, "path", e->path);
        nodespec_member(out, "name", e->name);
        nodespec_member(out, "version", e->version);
        nodespec_member(out, "target", e->target);
        nodespec_member(out, "owner", e->owner);
        if (e->mode)
                str_addf(out, ",\"mode\":\"%04o\"", e->mode);
        if (e->content && e->class != CLASS_SECRET) {
                str_addf(out, ",\"size\":%zu,\"sha256\":\"", e->len);
                nodespec_sha256(e->content, e->len, out);
                str_addc(out, '"');
        }
        if (e->kind == SPEC_COMMAND)
                nodespec_words(out, e->content, e->len);
        flag_names(out, e->flags);
        unit_names(out, e->units);
        str_addc(out, '}');
}

void nodespec_json(const struct nodespec *s, struct str *out)
{
        str_add(out, "{\"node\":");
        quote_json(out, s->node->name);
        str_add(out, ",\"os\":{\"id\":");
        quote_json(out, s->facts.os_id);
        str_add(out, ",\"version\":");
        quote_json(out, s->facts.os_version);
        str_addf(out, "},\"arch\":\"%s\",\"cgroup\":%d,\"entries\":[", s->facts.arch,
                s->facts.cgroup);
        for (size_t i = 0; i < s->count; i++) {
                str_add(out, i ? ",\n" : "\n");
                entry_json(&s->entries[i], out);
        }
        str_add(out, "\n]}\n");
}

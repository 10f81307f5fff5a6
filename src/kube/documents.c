#include "base/file.h"
#include "base/tree.h"
#include "base/utf8.h"
#include "kube/documents.h"

#define MANIFEST_MAX ((size_t)32 << 20)

struct reader {
        json_t *objects;
        unsigned line; /* of the beginning of the document */
        struct error *err;
};

/* In YAML, n and 1.0 are not strings, although they look like names. */
static int need_text(struct reader *r, const json_t *in, const char *field, const char *called)
{
        const json_t *v = json_object_get(in, field);
        if (json_string_length(v))
                return 0;
        if (!v || json_is_null(v) || json_is_string(v))
                return error_set(r->err, EINVAL, EXIT_CONFIG, "the document on line %u has no %s",
                        r->line, called);
        return error_set(r->err, EINVAL, EXIT_CONFIG,
                "the document on line %u has %s %s that is not a string: quote it", r->line,
                *called == 'a' ? "an" : "a", called);
}

static int documents_add(struct reader *r, json_t *object)
{
        if (!json_is_object(object))
                return error_set(r->err, EINVAL, EXIT_CONFIG,
                        "the document on line %u is not a map", r->line);
        if (need_text(r, object, "apiVersion", "apiVersion") < 0 ||
                need_text(r, object, "kind", "kind") < 0)
                return -EINVAL;
        if (streq(json_string_value(json_object_get(object, "kind")), "List")) {
                json_t *item;
                size_t i;
                json_array_foreach(json_object_get(object, "items"), i,
                        item) if (documents_add(r, item) < 0) return -EINVAL;
                return 0;
        }
        if (need_text(r, json_object_get(object, "metadata"), "name", "metadata.name") < 0)
                return -EINVAL;
        json_array_append(r->objects, object);
        return 0;
}

/* JSON is read by the JSON parser: it is much faster, and accepts tabs. */
static json_t *read_json(const char *text, size_t n)
{
        size_t blank = 0;
        while (blank < n && strchr(" \t\r\n", text[blank]))
                blank++;
        return blank < n && text[blank] == '{'
                       ? json_loadb(text + blank, n - blank, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
}

static int read_yaml(struct reader *r, const char *text, size_t n, json_t **out)
{
        struct arena arena CLEANUP(arena_release) = { 0 };
        char *copy CLEANUP(free_p) = xstrndup(text, n);
        struct tree_file file = { "document", copy, n, 0 };
        struct tree *tree, at;
        struct str json CLEANUP(str_wipe_release) = { 0 };
        json_error_t why;
        if (tree_parse_file(&arena, &file, &tree, &at, r->err) < 0)
                return error_wrap(r->err, "line %u, column %u", r->line + at.line - 1, at.col);
        tree_json(&json, tree);
        *out = json_loadb(str_text(&json), json.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
        return *out ? 0
                    : error_set(r->err, EINVAL, EXIT_CONFIG, "the document on line %u: %s", r->line,
                              why.text);
}

static int document_read(struct reader *r, const char *text, size_t n)
{
        json_auto_t *object = read_json(text, n);
        if (!object && read_yaml(r, text, n, &object) < 0)
                return -EINVAL;
        return documents_add(r, object);
}

/* "---" or "..." alone or before a blank, at the beginning of a line: YAML allows it nowhere else,
 * neither in block text nor in quotes. */
static bool is_marker(const char *p, const char *end, const char *marker)
{
        return end - p >= 3 && memcmp(p, marker, 3) == 0 &&
               (end - p == 3 || strchr(" \t\r\n", p[3]));
}

/* A line without content: blank, a comment, a directive before the document, the bare marker. */
static bool is_silent(const char *p, const char *end, bool directives)
{
        if (is_marker(p, end, "---"))
                p += 3;
        else if (directives && p < end && *p == '%')
                return true;
        while (p < end && strchr(" \t\r\n", *p))
                p++;
        return p == end || *p == '#';
}

int documents_read(const char *text, json_t **out, struct error *err)
{
        struct reader r = { json_array(), 1, err };
        const char *p = text + (has_prefix(text, "\xef\xbb\xbf") ? 3 : 0),
                   *end = text + strlen(text), *start = NULL, *next;
        unsigned line = 1;
        int ret = 0;
        /* start: of the document, NULL until it has content */
        for (; ret == 0 && p < end; p = next, line++) {
                const char *stop = line_end(p, end, &next);
                bool over = is_marker(p, stop, "..."), begins = is_marker(p, stop, "---");
                if ((over || begins) && start) {
                        ret = document_read(&r, start, (size_t)(p - start));
                        start = NULL;
                }
                if (ret == 0 && !over && !start && !is_silent(p, stop, true)) {
                        start = p;
                        r.line = line;
                }
        }
        if (ret == 0 && start)
                ret = document_read(&r, start, (size_t)(end - start));
        if (ret < 0)
                json_decref(r.objects);
        else
                *out = r.objects;
        return ret;
}

int documents_load(const char *path, struct str *text, json_t **out, struct error *err)
{
        int r = file_read(path, MANIFEST_MAX, text, err);
        if (r < 0) {
                err->status = EXIT_CONFIG;
                return r;
        }
        if (strlen(str_text(text)) != text->len)
                r = error_set(err, EINVAL, EXIT_CONFIG, "it has a NUL byte in it");
        if (r == 0)
                r = documents_read(str_text(text), out, err);
        if (r == 0 && !json_array_size(*out)) {
                json_decref(*out);
                r = error_set(err, EINVAL, EXIT_CONFIG, "there is no object in it");
        }
        return r < 0 ? error_wrap(err, "%s", path) : 0;
}

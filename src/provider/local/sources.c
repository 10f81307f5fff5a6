/* Converts apt's sources, in both formats, to one-line sources for the machines' release. */
#include <ctype.h>
#include <dirent.h>

#include "provider/local/local.h"

#define SOURCES_MAX ((size_t)1 << 20)

struct wanted {
        const char *codename, *release;
        struct str *out;
};

/* The next word of a line; NULL at its end. */
static char *source_word(char **at)
{
        char *p = *at;
        while (isspace((unsigned char)*p))
                p++;
        if (!*p)
                return NULL;
        char *begin = p;
        while (*p && !isspace((unsigned char)*p))
                p++;
        if (*p)
                *p++ = 0;
        *at = p;
        return begin;
}

/* The suffix of a wanted suite after the release's name ("", "-updates", "-security");
 * NULL: not wanted. */
static const char *suite_rest(const struct wanted *w, const char *suite)
{
        const char *const names[] = { w->release, w->codename, "stable", "testing" };
        for (size_t i = 0; i < (w->codename ? ARRAY_SIZE(names) : 1); i++) {
                if (!has_prefix(suite, names[i]))
                        continue;
                const char *rest = suite + strlen(names[i]);
                if (streq(rest, "") || streq(rest, "-updates") || streq(rest, "-security"))
                        return rest;
        }
        return NULL;
}

/* Adds a line, unless the result has it already. */
static void source_add(const struct wanted *w, const char *key, const char *uri, const char *suite)
{
        const char *rest = suite_rest(w, suite);
        if (!rest || has_prefix(uri, "cdrom:"))
                return;
        char *line CLEANUP(free_p) =
                key && *key == '/'
                        ? xasprintf("deb [signed-by=%s] %s %s%s main\n", key, uri, w->release, rest)
                        : xasprintf("deb %s %s%s main\n", uri, w->release, rest);
        const char *found = strstr(str_text(w->out), line);
        if (!found)
                str_add(w->out, line);
}

static bool has_main(char *components)
{
        for (char *c; (c = source_word(&components));)
                if (streq(c, "main"))
                        return true;
        return false;
}

/* deb [ option=value … ] uri suite component … */
static void classic_line(const struct wanted *w, char *line)
{
        char *key CLEANUP(free_p) = NULL, *hash = strchr(line, '#');
        if (hash)
                *hash = 0;
        char *type = source_word(&line);
        if (!type || !streq(type, "deb"))
                return;
        while (isspace((unsigned char)*line))
                line++;
        if (*line == '[') {
                char *end = strchr(line, ']'), *options = line + 1;
                if (!end)
                        return;
                *end = 0;
                line = end + 1;
                for (char *o; (o = source_word(&options));)
                        if (has_prefix(o, "signed-by=") && !key)
                                key = xstrdup(o + strlen("signed-by="));
        }
        char *uri = source_word(&line), *suite = source_word(&line);
        if (suite && has_main(line))
                source_add(w, key, uri, suite);
}

/* The fields of a stanza that are used; continuation lines are joined. */
enum field { TYPES, URIS, SUITES, COMPONENTS, SIGNED_BY, ENABLED, FIELD_COUNT };
static const char *const field_names[FIELD_COUNT] = { "Types", "URIs", "Suites", "Components",
        "Signed-By", "Enabled" };

static void stanza_end(const struct wanted *w, struct str field[FIELD_COUNT])
{
        char *types CLEANUP(free_p) = str_take(&field[TYPES]),
                    *uris CLEANUP(free_p) = str_take(&field[URIS]);
        char *suites CLEANUP(free_p) = str_take(&field[SUITES]),
                     *components CLEANUP(free_p) = str_take(&field[COMPONENTS]);
        char *key CLEANUP(free_p) = str_take(&field[SIGNED_BY]),
                  *enabled CLEANUP(free_p) = str_take(&field[ENABLED]);
        char *at = enabled, *state = source_word(&at), *k = key, *signed_by = source_word(&k);
        bool deb = false;
        at = types;
        for (char *t; (t = source_word(&at));)
                deb |= streq(t, "deb");
        if (!deb || (state && strcasecmp(state, "no") == 0) || !has_main(components))
                return;
        at = uris;
        for (char *uri; (uri = source_word(&at));) {
                char *copy CLEANUP(free_p) = xstrdup(suites), *s = copy;
                for (char *suite; (suite = source_word(&s));)
                        source_add(w, signed_by, uri, suite);
        }
}

static void stanza_line(struct str field[FIELD_COUNT], enum field *last, const char *line)
{
        if (isspace((unsigned char)*line)) {
                if (*last < FIELD_COUNT)
                        str_addf(&field[*last], " %s", line);
                return;
        }
        *last = FIELD_COUNT;
        size_t n = strcspn(line, ":");
        for (enum field f = 0; f < FIELD_COUNT; f++)
                if (strlen(field_names[f]) == n && strncasecmp(line, field_names[f], n) == 0 &&
                        line[n]) {
                        str_addf(&field[f], " %s", line + n + 1);
                        *last = f;
                }
}

static bool source_blank(const char *s) { return !s[strspn(s, " \t\r")]; }

static void sources_read_one(const struct wanted *w, const char *path, bool deb822)
{
        struct str text CLEANUP(str_release) = { 0 }, field[FIELD_COUNT] = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        enum field last = FIELD_COUNT;
        /* apt reports it; the other files are used */
        if (file_read(path, SOURCES_MAX, &text, &ignored) < 0)
                return;
        char *next = text.data;
        for (char *line; next && (line = strsep(&next, "\n"));) {
                if (!deb822)
                        classic_line(w, line);
                else if (source_blank(line))
                        stanza_end(w, field);
                else if (*line != '#')
                        stanza_line(field, &last, line);
        }
        stanza_end(w, field);
}

static int source_by_path(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void sources_read(const char *root, const char *codename, const char *release, struct str *out)
{
        struct wanted w = { codename, release, out };
        char *list CLEANUP(free_p) = path_join(root, "etc/apt/sources.list"),
                   *parts CLEANUP(free_p) = path_join(root, "etc/apt/sources.list.d");
        char *names[256];
        size_t n = 0;
        sources_read_one(&w, list, false);
        DIR *d = opendir(parts);
        for (struct dirent *e; d && n < ARRAY_SIZE(names) && (e = readdir(d));)
                if (has_suffix(e->d_name, ".list") || has_suffix(e->d_name, ".sources"))
                        names[n++] = path_join(parts, e->d_name);
        if (d)
                closedir(d);
        qsort(names, n, sizeof(*names), source_by_path);
        for (size_t i = 0; i < n; i++) {
                sources_read_one(&w, names[i], has_suffix(names[i], ".sources"));
                free(names[i]);
        }
}

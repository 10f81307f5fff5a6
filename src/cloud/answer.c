#include "cloud/answer.h"

#define TEXT_MAX 1020 /* 255 characters, as names and descriptions may have, of four bytes */
#define LIST_MAX 1000
/* Numbers beyond it, such as quotas that mean "no limit", are it: sums and products of what a cloud
 * says stay within 64 bits. */
#define NUMBER_MAX ((int64_t)1 << 50)

const json_t *answer_at(const json_t *j, const char *path)
{
        for (; j && *path; path += *path == '.') {
                size_t n = strcspn(path, ".");
                char *name CLEANUP(free_p) = xstrndup(path, n);
                j = json_object_get(j, name);
                path += n;
        }
        return j;
}

static int answer_wrong(const struct answer_field *f, const char *wanted, struct error *err)
{
        return error_set(err, EPROTO, EXIT_STEP, "%s: expected %s", f->path, wanted);
}

static bool answer_nothing(const json_t *j)
{
        return !j || json_is_null(j) || (json_is_string(j) && !json_string_length(j)) ||
               (json_is_object(j) && !json_object_size(j)) ||
               (json_is_array(j) && !json_array_size(j));
}

/* NULL: it is neither a text nor a number, or too long. */
static const char *answer_text(const json_t *j, size_t max, struct arena *a)
{
        if (json_is_integer(j))
                return arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
        if (json_is_boolean(j))
                return json_is_true(j) ? "true" : "false";
        const char *s = json_string_value(j);
        return s && json_string_length(j) <= (max ? max : TEXT_MAX) ? arena_strdup(a, s) : NULL;
}

static int answer_number(
        const struct answer_field *f, const json_t *j, void *out, struct error *err)
{
        const char *s = json_string_value(j);
        char *end = NULL;
        errno = 0;
        double real = json_is_real(j) ? json_real_value(j) : 0;
        int64_t v = json_is_integer(j)           ? json_integer_value(j)
                    : real > (double)NUMBER_MAX  ? NUMBER_MAX
                    : real < -(double)NUMBER_MAX ? -NUMBER_MAX
                    : s                          ? strtoll(s, &end, 10)
                                                 : (int64_t)real;
        if (s && *end == '.') /* 256.0, as quotas of AWS are */
                end += 1 + strspn(end + 1, "0");
        if ((s ? *end || errno : !json_is_number(j)))
                return answer_wrong(f, "a number", err);
        *(int64_t *)out = v > NUMBER_MAX ? NUMBER_MAX : v < -NUMBER_MAX ? -NUMBER_MAX : v;
        return 0;
}

static int answer_flag(const struct answer_field *f, const json_t *j, void *out, struct error *err)
{
        const char *s = json_string_value(j);
        if (!json_is_boolean(j) && !(s && (streq(s, "true") || streq(s, "false"))))
                return answer_wrong(f, "true or false", err);
        *(bool *)out = json_is_true(j) || (s && streq(s, "true"));
        return 0;
}

static size_t answer_count(const json_t *j)
{
        return json_is_array(j) ? json_array_size(j) : answer_nothing(j) ? 0 : 1;
}

static const json_t *answer_element(const json_t *j, size_t i)
{
        return json_is_array(j) ? json_array_get(j, i) : j;
}

static int answer_texts(const struct answer_field *f, const json_t *j, struct arena *a, void *out,
        struct error *err)
{
        size_t n = answer_count(j);
        if (n > (f->max ? f->max : LIST_MAX))
                return answer_wrong(f, "a shorter list", err);
        struct strings s = { n, arena_array(a, const char *, n) };
        for (size_t i = 0; i < n; i++)
                if (!(s.v[i] = answer_text(answer_element(j, i), 0, a)))
                        return answer_wrong(f, "a list of texts", err);
        *(struct strings *)out = s;
        return 0;
}

static int answer_pair(const struct answer_field *f, const char *key, const json_t *value,
        struct arena *a, struct pair *out, struct error *err)
{
        *out = (struct pair){ key ? arena_strdup(a, key) : NULL,
                answer_nothing(value) ? "" : answer_text(value, 4096, a) };
        return out->key && out->value ? 0 : answer_wrong(f, "names with texts", err);
}

static int answer_pairs(const struct answer_field *f, const json_t *j, struct arena *a, void *out,
        struct error *err)
{
        bool map = json_is_object(j) && !json_object_get(j, "key") && !json_object_get(j, "Key");
        size_t n = map ? json_object_size(j) : answer_count(j), i = 0;
        const char *key;
        json_t *value;
        if (n > (f->max ? f->max : LIST_MAX))
                return answer_wrong(f, "fewer entries", err);
        struct pairs p = { n, arena_array(a, struct pair, n) };
        if (map)
                json_object_foreach(
                        (json_t *)j, key, value) if (answer_pair(f, key, value, a, &p.v[i++], err) <
                                                     0) return -err->code;
        for (; i < n; i++) {
                const json_t *e = answer_element(j, i), *k = json_object_get(e, "key");
                const json_t *v = json_object_get(e, "value");
                if (answer_pair(f, json_string_value(k ? k : json_object_get(e, "Key")),
                            v ? v : json_object_get(e, "Value"), a, &p.v[i], err) < 0)
                        return -err->code;
        }
        *(struct pairs *)out = p;
        return 0;
}

int answer_read_list(const struct answer_schema *s, const json_t *list, size_t max, struct arena *a,
        struct answers *out, struct error *err)
{
        size_t n = answer_count(list);
        if (n > max)
                return error_set(err, EPROTO, EXIT_STEP,
                        "the list of %ss has %zu entries, at most %zu are expected", s->name, n,
                        max);
        *out = (struct answers){ n, arena_alloc(a, s->size * n) };
        for (size_t i = 0; i < n; i++)
                if (answer_read(s, answer_element(list, i), a, (char *)out->v + i * s->size, err) <
                        0)
                        return -err->code;
        return 0;
}

static int answer_field_read(const struct answer_field *f, const json_t *j, struct arena *a,
        void *out, struct error *err)
{
        switch (f->type) {
        case A_TEXT:
                *(const char **)out = answer_text(j, f->max, a);
                return *(const char **)out ? 0 : answer_wrong(f, "a text of usual length", err);
        case A_NUMBER:
                return answer_number(f, j, out, err);
        case A_FLAG:
                return answer_flag(f, j, out, err);
        case A_TEXTS:
                return answer_texts(f, j, a, out, err);
        case A_PAIRS:
                return answer_pairs(f, j, a, out, err);
        case A_ONE:
                return answer_read(f->sub, j, a, out, err);
        case A_MANY:
                return answer_read_list(f->sub, j, f->max ? f->max : LIST_MAX, a, out, err);
        }
        return 0;
}

int answer_read(const struct answer_schema *s, const json_t *j, struct arena *a, void *out,
        struct error *err)
{
        if (!json_is_object(j))
                return error_set(err, EPROTO, EXIT_STEP, "%s: expected an object", s->name);
        for (size_t i = 0; i < s->count; i++) {
                const struct answer_field *f = &s->fields[i];
                const json_t *value = answer_at(j, f->path);
                int r = 0;
                if (!answer_nothing(value))
                        r = answer_field_read(f, value, a, (char *)out + f->offset, err);
                else if (f->required)
                        r = answer_wrong(f, "a value", err);
                if (r < 0)
                        return error_wrap(err, "%s", s->name);
        }
        return 0;
}

#include "cluster/etcd/etcd.h"

#define ANSWER_MAX ((size_t)1 << 20)

struct ask {
        struct member *member;
        etcd_fn fn;
        void *arg;
};

/* ---- numbers ---- */

/* jansson's integers are signed, and a real would lose digits: numbers that are too
 * long become strings. */
json_t *etcd_json(const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        bool quoted = false;
        for (const char *p = text; *p;) {
                size_t digits = quoted ? 0 : strspn(p, "0123456789");
                if (digits) {
                        str_addf(&s, digits > 15 ? "\"%.*s\"" : "%.*s", (int)digits, p);
                        p += digits;
                        continue;
                }
                if (*p == '"')
                        quoted = !quoted;
                else if (*p == '\\' && quoted && p[1])
                        str_addc(&s, *p++);
                str_addc(&s, *p++);
        }
        return json_loads(str_text(&s), JSON_DECODE_ANY, NULL);
}

uint64_t etcd_number(const json_t *v)
{
        if (json_is_string(v))
                return strtoull(json_string_value(v), NULL, 10);
        return (uint64_t)json_integer_value(v);
}

char *etcd_id(uint64_t id, char out[17])
{
        snprintf(out, 17, "%" PRIx64, id);
        return out;
}

/* ---- queries ---- */

const char *etcd_endpoint(const struct member *m)
{
        return m->node->ip[0].family == 6 ? "https://[::1]:2379" : "https://127.0.0.1:2379";
}

/* etcdctl prints a line of JSON ({"level":"warn",…,"error":"…"}) and then "Error: …": returns the
 * text after "Error:". */
static char *etcd_trouble(int status, const char *errors)
{
        char *line = str_last_line_of(errors ? errors : "");
        const char *plain = has_prefix(line, "Error: ") ? line + 7 : line;
        char *out = *plain       ? xstrdup(plain)
                    : status < 0 ? xstrdup("the connection was cut")
                                 : xasprintf("etcdctl gave no answer (status %d)", status);
        free(line);
        return out;
}

static void on_etcd_ask_answer(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct ask *q = arg;
        json_t *answer = status == 0 && out ? etcd_json(out) : NULL;
        char *trouble CLEANUP(free_p) = answer ? NULL : etcd_trouble(status, errors);
        q->fn(q->member, answer, trouble, q->arg);
        json_decref(answer);
}

void etcd_ask(struct member *m, const char *const *words, unsigned seconds, etcd_fn fn, void *arg)
{
        char limit[24], dial[24];
        snprintf(limit, sizeof(limit), "%us", seconds);
        snprintf(dial, sizeof(dial), "%us", seconds < 5 ? seconds : 5);
        const char *argv[32] = { "sh", "-c",
                "PATH=$PATH:/usr/local/bin:/opt/bin; p=/etc/kubernetes/pki/etcd; e=$1 d=$2 c=$3; shift 3; exec etcdctl --endpoints \"$e\" --cacert $p/ca.crt "
                "--cert $p/healthcheck-client.crt --key $p/healthcheck-client.key --dial-timeout \"$d\" --command-timeout \"$c\" -w json \"$@\"",
                "etcdctl", etcd_endpoint(m), dial, limit };
        size_t n = 7;
        while (*words && n + 1 < ARRAY_SIZE(argv))
                argv[n++] = *words++;
        if (!member_reachable(m)) {
                fn(m, NULL, "its machine is not connected", arg);
                return;
        }
        /* in the arena: a link that is freed calls nobody */
        struct ask *q = arena_new(m->site->arena, struct ask);
        *q = (struct ask){ m, fn, arg };
        member_run(m, argv, NULL, ANSWER_MAX, on_etcd_ask_answer, q);
}

/* ---- reading answers ---- */

static const char *etcd_ask_text_at(const json_t *o, const char *key)
{
        const char *t = json_string_value(json_object_get(o, key));
        return t ? t : "";
}

static const char *first_of(const json_t *o, const char *key, struct arena *a)
{
        const char *t = json_string_value(json_array_get(json_object_get(o, key), 0));
        return t ? arena_strdup(a, t) : "";
}

struct etcd_peer *etcd_peers(const json_t *answer, struct arena *a, size_t *n)
{
        const json_t *list = json_object_get(answer, "members"), *o;
        struct etcd_peer *out = arena_array(a, struct etcd_peer, json_array_size(list) + 1);
        size_t i;
        json_array_foreach(list, i, o)
        {
                out[i] = (struct etcd_peer){ .id = etcd_number(json_object_get(o, "ID")),
                        .name = arena_strdup(a, etcd_ask_text_at(o, "name")),
                        .peer = first_of(o, "peerURLs", a),
                        .client = first_of(o, "clientURLs", a),
                        .learner = json_is_true(json_object_get(o, "isLearner")) };
        }
        *n = json_array_size(list);
        return out;
}

bool etcd_state(const json_t *answer, struct etcd_state *out)
{
        const json_t *s = json_object_get(json_array_get(answer, 0), "Status"),
                     *h = json_object_get(s, "header");
        *out = (struct etcd_state){ .id = etcd_number(json_object_get(h, "member_id")),
                .cluster = etcd_number(json_object_get(h, "cluster_id")),
                .revision = (int64_t)etcd_number(json_object_get(h, "revision")),
                .leader = etcd_number(json_object_get(s, "leader")),
                .size = (int64_t)etcd_number(json_object_get(s, "dbSize")),
                .in_use = (int64_t)etcd_number(json_object_get(s, "dbSizeInUse")),
                .quota = (int64_t)etcd_number(json_object_get(s, "dbSizeQuota")),
                .index = etcd_number(json_object_get(s, "raftIndex")),
                .applied = etcd_number(json_object_get(s, "raftAppliedIndex")),
                .term = etcd_number(json_object_get(s, "raftTerm")),
                .version = etcd_ask_text_at(s, "version"),
                .learner = json_is_true(json_object_get(s, "isLearner")),
                .errors = json_object_get(s, "errors") };
        return out->id != 0;
}

#define DEFRAG_FROM ((int64_t)64 << 20) /* smaller files are not defragmented */

bool etcd_wants_defrag(const struct etcd_state *s)
{
        return s->size >= DEFRAG_FROM && s->in_use > 0 && s->in_use < s->size / 2;
}

const char *etcd_alarm(const char *error)
{
        static const char *const alarms[] = { "NOSPACE", "CORRUPT" };
        for (size_t i = 0; error && i < ARRAY_SIZE(alarms); i++)
                if (strstr(error, alarms[i]))
                        return alarms[i];
        return NULL;
}

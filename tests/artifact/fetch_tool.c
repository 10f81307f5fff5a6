/* Fetches as told: progress on stderr, one JSON object an item on stdout.
 *   fetch_tool [-s SOURCE] [-m MIRROR] [-b BUNDLE] [-l LOCK] [-a ARCH] [-r REGISTRY-MIRROR
 * [-c AUTHORITY-FILE -u USER:PASSWORD]] [-p AGENT] [-w BUNDLE-TO-WRITE] [-t MS-UNTIL-STOPPED] [-T
 * TRUSTED-PROGRAM] [-S MB-OF-A-FILE] [-A MB-OF-ALL] ITEM… fetch_tool -V BUNDLE verifies one
 * fetch_tool -I VERSION lists the items of a cluster of that version ITEM: NAME@VERSION, or
 * image:REFERENCE. */
#include <event2/event.h>
#include <signal.h>
#include <sys/time.h>

#include "artifact/fetch.h"
#include "base/file.h"

struct run {
        struct event_base *base;
        int status;
        bool over;
};

static void on_progress(const struct item *item, const char *what, int permille, void *arg)
{
        fprintf(stderr, "%s: %s %d\n", item ? item->name : "-", what, permille);
}

static void on_pinned(const struct item *item, const char *how, void *arg)
{
        fprintf(stderr, "%s: %s\n", item->name, how);
}

static void on_notice(const char *text, void *arg) { fprintf(stderr, "notice: %s\n", text); }

static void print_error(const struct error *err)
{
        fprintf(stderr, "error: %s\n", err->message);
        if (err->hint)
                fprintf(stderr, "hint: %s\n", err->hint);
}

static void on_done(struct error *err, void *arg)
{
        struct run *r = arg;
        r->over = true;
        if (err) {
                print_error(err);
                r->status = err->status;
        }
        event_base_loopbreak(r->base);
}

static void on_time(int fd, short what, void *arg) { event_base_loopbreak(arg); }

static int fail(struct error *err)
{
        print_error(err);
        int status = (int)err->status;
        error_release(err);
        return status;
}

static struct item parse_item(struct arena *a, const char *text)
{
        const char *at = strchr(text, '@');
        if (has_prefix(text, "image:"))
                return (struct item){ .name = text + 6, .image = true };
        return (struct item){ .name = arena_strndup(a, text, (size_t)(at - text)),
                .version = at + 1 };
}

static int fetch_all(
        const struct fetch_request *request, long stop_ms, int *status, struct error *err)
{
        struct run run = { .base = event_base_new() };
        struct fetch_request own = *request;
        struct fetch *f = NULL;
        own.on_progress = on_progress;
        own.on_done = on_done;
        own.on_pinned = on_pinned;
        own.on_notice = on_notice;
        own.arg = &run;
        int r = fetch_start(run.base, &own, &f, err);
        if (r == 0) {
                if (stop_ms)
                        event_base_once(run.base, -1, EV_TIMEOUT, on_time, run.base,
                                &(struct timeval){ .tv_sec = stop_ms / 1000,
                                        .tv_usec = stop_ms % 1000 * 1000 });
                event_base_dispatch(run.base);
        }
        fetch_free(f);
        event_base_free(run.base);
        *status = r == 0 && !run.over ? 99 : run.status;
        return r;
}

static int list_items(struct arena *a, struct cluster *c, const char *version)
{
        struct error err = { 0 };
        static struct pool pools[] = { { .name = "cp", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD },
                { .name = "w", .roles = ROLE_WORKER } };
        size_t n;
        version_parse(version, &c->kubernetes);
        c->kubernetes.text = version;
        c->pools.n = ARRAY_SIZE(pools);
        c->pools.v = pools;
        struct item *items = fetch_items(c, a, &n, &err);
        if (!items)
                return fail(&err);
        for (size_t i = 0; i < n; i++)
                printf("%s%s%s%s\n", items[i].image ? "image:" : "", items[i].name,
                        items[i].version ? "@" : "", items[i].version ? items[i].version : "");
        items_free(items, n);
        return 0;
}

static int verify(const char *dir)
{
        struct error err = { 0 };
        size_t n;
        int64_t bytes;
        if (bundle_verify(dir, &n, &bytes, &err) < 0)
                return fail(&err);
        printf("{\"items\": %zu, \"bytes\": %" PRId64 "}\n", n, bytes);
        return 0;
}

static enum artifact_source parse_source(const char *text)
{
        static const char *const names[] = { "auto", "bundle", "mirror", "upstream", "build" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(text, names[i]))
                        return (enum artifact_source)i;
        return ARTIFACT_AUTO;
}

static int fetch_and_print(struct fetch_request *request, const char *bundle, long stop_ms)
{
        struct error err = { 0 };
        int status = 0;
        if (fetch_all(request, stop_ms, &status, &err) < 0)
                return fail(&err);
        for (size_t i = 0; status == 0 && i < request->count; i++) {
                const struct item *x = &request->items[i];
                printf("{\"name\": \"%s\", \"digest\": \"%s\", \"size\": %" PRId64
                       ", \"path\": \"%s\", \"source\": \"%s\"}\n",
                        x->name, x->digest, x->size, x->path, x->source);
        }
        if (status == 0 && bundle &&
                bundle_write(bundle, request->arch, request->items, request->count, &err) < 0)
                return fail(&err);
        return status;
}

int main(int argc, char **argv)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str agent CLEANUP(str_release) = { 0 }, authority CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        signal(SIGPIPE, SIG_IGN);
        struct cluster c = { .arena = &a,
                .runtime.managed = true,
                .api.local_balancer = true,
                .network.manage_dns = true };
        struct fetch_request request = { .cluster = &c, .arch = "amd64" };
        const char *bundle = NULL;
        long stop_ms = 0;
        for (int opt; (opt = getopt(argc, argv, "s:m:b:l:a:r:c:u:p:w:t:V:I:T:S:A:")) != -1;) {
                switch (opt) {
                case 's':
                        c.artifacts.source = parse_source(optarg);
                        break;
                case 'm':
                        c.artifacts.mirror = optarg;
                        break;
                case 'b':
                        c.artifacts.bundle = optarg;
                        break;
                case 'l':
                        request.lock = optarg;
                        break;
                case 'a':
                        request.arch = optarg;
                        break;
                case 'r':
                        c.registry.mirror = optarg;
                        c.registry.insecure = !c.registry.ca_pem;
                        break;
                case 'c':
                        if (file_read(optarg, 1 << 20, &authority, &err) < 0)
                                return fail(&err);
                        c.registry.ca_pem = str_text(&authority);
                        c.registry.insecure = false;
                        break;
                case 'u':
                        c.registry.username = arena_strndup(&a, optarg, strcspn(optarg, ":"));
                        c.registry.password = optarg + strcspn(optarg, ":") + 1;
                        break;
                case 'w':
                        bundle = optarg;
                        break;
                case 'T':
                        c.artifacts.trust =
                                (struct strings){ .n = 1, .v = arena_new(&a, const char *) };
                        c.artifacts.trust.v[0] = optarg;
                        break;
                case 'S':
                        request.file_max = strtol(optarg, NULL, 10) << 20;
                        break;
                case 'A':
                        request.total_max = strtol(optarg, NULL, 10) << 20;
                        break;
                case 't':
                        stop_ms = strtol(optarg, NULL, 10);
                        break;
                case 'V':
                        return verify(optarg);
                case 'I':
                        return list_items(&a, &c, optarg);
                case 'p':
                        if (file_read(optarg, 64 << 20, &agent, &err) < 0)
                                return fail(&err);
                        break;
                default:
                        return 2;
                }
        }
        request.agent = agent.data;
        request.agent_len = agent.len;
        request.count = (size_t)(argc - optind);
        request.items = xcalloc(request.count + 1, sizeof(*request.items));
        for (size_t i = 0; i < request.count; i++)
                request.items[i] = parse_item(&a, argv[optind + (int)i]);
        int status = fetch_and_print(&request, bundle, stop_ms);
        items_free(request.items, request.count);
        return status;
}

/* Servers that were made from another flavor or image than the file asks for now.
 *
 * A server's metadata has the file's own words from the call that made it. As long as the file
 * still says the same, the server is as wanted, also if an image of that name is another one
 * today: publishing an image must not replace a cluster. If the file says something else, nova's
 * list decides: it has the name of the flavor and the id of the image that the server was made
 * from, and another name for the same thing changes nothing. */
#include <event2/event.h>

#include "base/sha256.h"
#include "provider/openstack/openstack.h"

#define GIB       ((int64_t)1 << 30)
#define WORDS_MAX 250 /* nova takes 255 */

/* Without half a character at the end, which is no JSON. */
const char *os_words(struct arena *a, const char *text)
{
        char hex[SHA256_HEX];
        size_t n = strlen(text);
        if (n <= WORDS_MAX)
                return arena_strdup(a, text);
        sha256_hex(text, n, hex);
        n = WORDS_MAX - 20;
        while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
                n--;
        return arena_printf(a, "%.*s... %.16s", (int)n, text, hex);
}

static const char *made_from(const struct os_server *s, const char *key)
{
        return os_pair(&s->metadata, key);
}

/* Of a server that boots from a volume, nova says no image: the volume has its id. */
static const char *image_id(const struct os *os, const struct os_server *s, const struct node *n)
{
        const struct os_volume *root = os_spot_of(os, n)->volumes[0];
        return s->image && *s->image ? s->image : root ? root->image : NULL;
}

const char *os_root_text(const struct os *os, const struct pool *p)
{
        const struct root_volume *v = &p->root_volume;
        if (!v->src)
                return "the flavor's";
        return arena_printf(os->run->arena, "a volume of %" PRId64 " GB%s%.80s%s%.80s",
                (v->size + GIB - 1) / GIB, v->type ? ", type " : "", v->type ? v->type : "",
                v->zone ? ", zone " : "", v->zone ? v->zone : "");
}

static bool server_same_root(const struct os *os, const struct os_server *s, const struct pool *p)
{
        const char *from = made_from(s, OS_META_ROOT);
        return !from || streq(from, os_root_text(os, p));
}

static const struct os_server *server_of(const struct os *os, const struct node *n)
{
        return os_spot_of(os, n)->server;
}

static bool same_flavor(const struct os_server *s, const struct pool *p)
{
        const char *from = made_from(s, OS_META_FLAVOR);
        return !s->flavor || !p->flavor || streq(s->flavor, p->flavor) ||
               (from && streq(from, p->flavor));
}

/* Without the file's words from then, only an id can be compared. */
static bool server_same_image(const struct os *os, const struct os_server *s, const struct node *n)
{
        const char *from = made_from(s, OS_META_IMAGE), *name = os_image_name(os, n->pool);
        const char *id = image_id(os, s, n);
        if (!id || streq(id, name))
                return true;
        return from ? streq(from, name) : !os_is_id(name);
}

bool os_may_be_outdated(const struct os *os, const struct node *n)
{
        const struct os_server *s = server_of(os, n);
        return s && (!same_flavor(s, n->pool) || !server_same_image(os, s, n) ||
                            !server_same_root(os, s, n->pool) || !os_same_networks(os, s));
}

const char *os_outdated(const struct os *os, const struct node *n)
{
        const struct os_server *s = server_of(os, n);
        const struct os_flavor *f = os_flavor_of(os, n->pool);
        const struct os_image *i = os_image_of(os, n->pool);
        struct str out CLEANUP(str_release) = { 0 };
        if (!s || !f || !i) /* what is not there is a problem of its own */
                return NULL;
        if (!same_flavor(s, n->pool) && !streq(s->flavor, f->name))
                str_addf(&out, "flavor %s instead of %s", f->name, s->flavor);
        if (!server_same_image(os, s, n) && !streq(image_id(os, s, n), i->id)) {
                const char *from = made_from(s, OS_META_IMAGE);
                str_addf(&out, "%simage %s instead of %s", out.len ? ", " : "",
                        os_image_name(os, n->pool), from ? from : image_id(os, s, n));
        }
        if (!server_same_root(os, s, n->pool))
                str_addf(&out, "%ssystem disk: %s instead of %s", out.len ? ", " : "",
                        os_root_text(os, n->pool), made_from(s, OS_META_ROOT));
        if (!os_same_networks(os, s)) {
                const char *from = made_from(s, OS_META_NETWORKS), *to = os_networks_text(os);
                str_addf(&out, "%sfurther networks: %s instead of %s", out.len ? ", " : "",
                        *to ? to : "none", from ? from : "none");
        }
        return out.len ? arena_strdup(os->run->arena, str_text(&out)) : NULL;
}

/* ---- retire: the server goes, its port stays ---- */

struct retiring {
        struct machine *m;
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
        struct os *os;
};

static void on_server_retired(struct error *err, void *arg)
{
        struct retiring *r = arg;
        if (!err) {
                r->m->state = MACHINE_ABSENT;
                r->m->provider_id = r->m->outdated = NULL;
        }
        r->fn(r->m, err, r->arg);
}

/* The system disk goes with it. */
static void on_retired_server(struct machine *m, struct error *err, void *arg)
{
        static const os_stage stages[] = { stage_node_volumes_gone, NULL };
        struct retiring *r = arg;
        struct os_spot *spot = os_spot_of(r->os, m->node);
        if (!err)
                spot->server = NULL;
        if (!err && spot->volumes[0])
                job_start_for(r->os, stages, m->node, true, on_server_retired, r);
        else
                on_server_retired(err, r);
}

static void server_retire_begin(int fd, short what, void *arg)
{
        struct os_wait *w = arg;
        os_server_end(w, server_of(w->os, w->m->node));
}

static void on_retired_ports(struct error *err, void *arg)
{
        struct retiring *r = arg;
        if (err)
                r->fn(r->m, err, r->arg);
        else
                event_base_once(r->os->run->base, -1, EV_TIMEOUT, server_retire_begin,
                        os_wait_new(r->os->run, r->m, on_retired_server, r),
                        &(struct timeval){ 0 });
}

/* Ports first, because the server says that it has them. */
void openstack_retire(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        static const os_stage stages[] = { stage_node_ports_old, NULL };
        struct retiring *r = arena_new(run->arena, struct retiring);
        *r = (struct retiring){ m, fn, arg, run->own };
        const struct os_server *s = server_of(r->os, m->node);
        if (s && !os_same_networks(r->os, s))
                job_start_for(r->os, stages, m->node, true, on_retired_ports, r);
        else
                on_retired_ports(NULL, r);
}

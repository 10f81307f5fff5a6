/* Images, imported into the running container runtime. They are pinned: without a registry to fetch
 * them from again, the kubelet's garbage collection must not remove them. */
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/agent.h"

#define SOCKET         "/run/containerd/containerd.sock"
#define SOCKET_SECONDS 120
#define LIST_SECONDS   60
#define IMPORT_SECONDS 1800
#define AT_ONCE        2

static bool runtime_runs(void)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = SOCKET };
        int fd CLEANUP(close_p) = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
}

struct child *images_list(struct agent *a)
{
        if (!agent_whole(a) || !runtime_runs())
                return NULL;
        struct child *c =
                child_start(&a->session, WORDS("ctr", "-n", "k8s.io", "images", "ls", "-q"), false);
        c->whole = CHILD_WHOLE;
        return c;
}

/* The images of the runtime, if it answers. */
struct images {
        struct str list;
        bool known;
};

static void images_look(struct agent *a, struct images *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct child *c = images_list(a);
        str_truncate(&out->list, 0);
        out->known = c && child_wait(&a->session, c, LIST_SECONDS, &err) == 0;
        if (out->known)
                str_addn(&out->list, str_text(&c->text[0]), c->text[0].len);
        child_free(&a->session, c);
}

bool images_have(const struct str *list, const char *name)
{
        size_t n = strlen(name);
        for (const char *p = str_text(list); (p = strstr(p, name)); p += n)
                if ((p == list->data || p[-1] == '\n') && (p[n] == '\n' || !p[n]))
                        return true;
        return false;
}

/* An image is known by its name; it is imported again when the record has another digest
 * for that name. */
static bool image_is_there(struct agent *a, const struct images *now, const struct entry *e)
{
        const struct row *row = record_find(&a->record, SPEC_IMAGE, e->name);
        if (row && row->digest[0] && !streq(row->digest, e->digest))
                return false;
        return now->known ? images_have(&now->list, e->name) : row && row->digest[0];
}

void check_images(struct agent *a)
{
        struct images now = { 0 };
        bool any = false;
        for (size_t i = 0; i < a->count && !any; i++)
                any = a->entries[i].kind == SPEC_IMAGE;
        if (any)
                images_look(a, &now);
        for (size_t i = 0; i < a->count; i++) {
                struct entry *e = &a->entries[i];
                if (e->kind != SPEC_IMAGE)
                        continue;
                e->state = image_is_there(a, &now, e) ? STATE_SAME : STATE_CREATED;
                e->needed = e->state != STATE_SAME;
        }
        str_release(&now.list);
}

/* The runtime may just have been told to (re)start. One that is about to stop still answers, so
 * systemctl start waits for that job first. */
static int wait_for_runtime(struct agent *a, struct error *err)
{
        if (a->mode != APPLY_PLACE &&
                tool(&a->session, WORDS("systemctl", "--quiet", "start", "containerd.service"),
                        SOCKET_SECONDS, NULL, err) < 0)
                error_release(err); /* the loop below checks whether it runs */
        for (int i = 0; !runtime_runs(); i++) {
                if (!session_alive(&a->session))
                        return error_set(
                                err, ECANCELED, EXIT_UNREACHABLE, "the connection was cut");
                if (i >= SOCKET_SECONDS * 50) {
                        error_set(
                                err, ETIMEDOUT, EXIT_STEP, "containerd does not answer on " SOCKET);
                        return error_hint(err, "check `journalctl -u containerd` on the node");
                }
                session_turn(&a->session, 20);
        }
        return 0;
}

static struct child *image_import(struct agent *a, const struct entry *e)
{
        char *blob CLEANUP(free_p) = store_path(a, e->digest);
        return child_start(&a->session,
                WORDS("ctr", "-n", "k8s.io", "images", "import", "--label",
                        "io.cri-containerd.pinned=pinned", blob),
                false);
}

static void image_import_wait(struct agent *a, struct entry *e, struct child *c)
{
        struct error err CLEANUP(error_release) = { 0 };
        int r = child_wait(&a->session, c, IMPORT_SECONDS, &err);
        child_free(&a->session, c);
        if (r < 0) {
                error_wrap(&err, "ctr images import");
                entry_failed(a, e, &err);
        }
}

static bool image_to_import(struct agent *a, struct images *now, struct entry *e)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (image_is_there(a, now, e))
                return false;
        if (store_has(a, e->digest))
                return true;
        error_set(&err, ENODATA, EXIT_STEP, "its content is not in the store of the node");
        error_hint(&err, "run again");
        entry_failed(a, e, &err);
        return false;
}

/* AT_ONCE at a time, in order. */
static size_t images_import(struct agent *a, struct images *now, struct entry *e, size_t n)
{
        struct {
                struct entry *e;
                struct child *c;
        } going[AT_ONCE] = { 0 };
        size_t count = 0;
        for (size_t i = 0; i < n + AT_ONCE; i++) {
                size_t slot = count % AT_ONCE;
                bool one = i < n && image_to_import(a, now, &e[i]);
                if (i < n && !one)
                        continue;
                if (going[slot].c)
                        image_import_wait(a, going[slot].e, going[slot].c);
                going[slot].c = one && session_alive(&a->session) ? image_import(a, &e[i]) : NULL;
                going[slot].e = one ? &e[i] : NULL;
                count++;
        }
        return count - AT_ONCE;
}

/* Reports one image after all imports. */
static void image_report(struct agent *a, struct entry *e, const struct images *now)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (e->state == STATE_SAME || images_have(&now->list, e->name)) {
                memcpy(record_entry(a, e)->digest, e->digest, SHA256_HEX);
                entry_report(a, e, e->state);
                return;
        }
        error_set(&err, EBADMSG, EXIT_STEP, "the imported archive has no image of that name");
        entry_failed(a, e, &err);
}

void apply_images(struct agent *a, struct entry *e, size_t n)
{
        struct images now = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        bool wanted = false, later = a->mode == APPLY_PLACE && !runtime_runs();
        for (size_t i = 0; i < n; i++)
                wanted |= e[i].state != STATE_SAME;
        if (wanted && !later && wait_for_runtime(a, &err) == 0) {
                images_look(a, &now);
                if (images_import(a, &now, e, n))
                        images_look(a, &now);
        }
        for (size_t i = 0; i < n && !a->session.cut; i++) {
                if (e[i].over)
                        continue;
                if (e[i].state != STATE_SAME && later)
                        entry_done(a, &e[i], STATE_SAME, "imported when the runtime is running");
                else if (e[i].state != STATE_SAME && err.code)
                        entry_failed(a, &e[i], &err);
                else
                        image_report(a, &e[i], &now);
        }
        str_release(&now.list);
}

/* Imports images while the old version runs, so that the change of the node does not wait for them.
 * The record stays unchanged until then. */
void images_stage(struct agent *a)
{
        struct images now = { 0 };
        size_t first = 0, n = 0;
        while (first < a->count && a->entries[first].kind != SPEC_IMAGE)
                first++;
        while (first + n < a->count && a->entries[first + n].kind == SPEC_IMAGE)
                n++;
        if (n && agent_whole(a) && runtime_runs()) {
                images_look(a, &now);
                images_import(a, &now, &a->entries[first], n);
        }
        str_release(&now.list);
}

void image_remove(struct agent *a, const char *name)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (runtime_runs())
                tool(&a->session, WORDS("ctr", "-n", "k8s.io", "images", "rm", name), LIST_SECONDS,
                        NULL, &err);
}

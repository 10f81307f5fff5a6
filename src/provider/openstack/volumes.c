/* Volumes of cinder: a machine's system disk (rootVolume) and its disks for data (volumes). They
 * are made before the server, with the mark in their metadata, because what nova makes by itself
 * has no name and stays behind. A volume's metadata also says which node it is of and which of its
 * volumes it is, and how the machine sees it: its path there has the volume's id, so the order of
 * disks does not matter. */
#include "provider/openstack/openstack.h"

#define GIB        ((int64_t)1 << 30)
#define READY_MS   1500
#define META_NODE  "slipway-node"
#define META_WHICH "slipway-volume" /* root, or the place in the file from 1 on */
#define META_BUS   "slipway-bus"    /* virtio, or scsi: how the image's machines see disks */
#define SERIAL_LEN 20               /* what virtio has of a volume's id */

const char *os_pair(const struct pairs *all, const char *key)
{
        for (size_t i = 0; i < all->n; i++)
                if (streq(all->v[i].key, key))
                        return all->v[i].value;
        return NULL;
}

const char *os_volume_node(const struct os_volume *v) { return os_pair(&v->metadata, META_NODE); }

void os_mark_args(const struct os *os, struct pair out[3])
{
        out[0] = (struct pair){ "mark", os->mark };
        out[1] = (struct pair){ "metadata",
                arena_printf(os->run->arena, "{\"" OS_META_MARK "\": \"%s\"}", os->mark) };
        out[2] = (struct pair){ 0 };
}

bool os_uses_volumes(const struct os *os)
{
        const struct cluster *c = os->run->cluster;
        for (size_t i = 0; i < c->pools.n; i++)
                if (c->pools.v[i].root_volume.src || c->pools.v[i].volumes.n)
                        return true;
        return false;
}

/* ---- which there are ---- */

static bool volume_is_good(const struct os_volume *v)
{
        return v->status && !has_prefix(v->status, "error") && !streq(v->status, "deleting");
}

/* 0: the system disk; otherwise the place in the file. -1: of no node of the file. */
static int volume_place(const struct os *os, const struct os_volume *v, const struct node **n)
{
        const char *name = os_volume_node(v), *which = os_pair(&v->metadata, META_WHICH);
        *n = name ? cluster_node(os->run->cluster, name) : NULL;
        if (!*n || !which)
                return -1;
        if (streq(which, "root"))
                return 0;
        unsigned long at = strtoul(which, NULL, 10);
        return at && at <= (*n)->pool->volumes.n ? (int)at : -1;
}

static const char *device_path(struct arena *a, const struct os_volume *v)
{
        const char *bus = os_pair(&v->metadata, META_BUS);
        if (bus && streq(bus, "virtio"))
                return arena_printf(a, "/dev/disk/by-id/virtio-%.*s", SERIAL_LEN, v->id);
        if (bus && streq(bus, "scsi"))
                return arena_printf(a, "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_%.64s", v->id);
        return NULL;
}

static void settle_devices(struct os *os, struct node *n)
{
        const struct os_spot *s = os_spot_of(os, n);
        struct arena *a = os->run->cluster->arena;
        if (n->pool->volumes.n && !n->devices)
                n->devices = arena_array(a, const char *, n->pool->volumes.n + 1);
        for (size_t i = 0; i < n->pool->volumes.n; i++)
                if (s->volumes[i + 1])
                        n->devices[i] = device_path(a, s->volumes[i + 1]);
}

/* A system disk that an interrupted replacement left: the file asks for another one now. */
static bool root_is_stale(const struct os *os, const struct node *n, const struct os_volume *v)
{
        const char *image = os_pair(&v->metadata, OS_META_IMAGE),
                   *root = os_pair(&v->metadata, OS_META_ROOT);
        return !v->attachments.n && streq(v->status, "available") &&
               ((image && !streq(image, os_image_name(os, n->pool))) ||
                       (root && !streq(root, os_root_text(os, n->pool))));
}

/* Of two with the same place the attached one counts: the other was made by a call that seemed
 * lost. */
void os_settle_volumes(struct os *os)
{
        struct cluster *c = os->run->cluster;
        const struct os_volume *all = os->found.volumes.v;
        const struct node *n;
        for (size_t i = 0; i < c->node_count; i++)
                os->found.spots[i].volumes = arena_array(&os->found.arena, const struct os_volume *,
                        c->nodes[i].pool->volumes.n + 1);
        os_spot_of(os, &os->bastion.node)->volumes =
                arena_array(&os->found.arena, const struct os_volume *, 1);
        for (size_t i = 0; i < os->found.volumes.n; i++) {
                int place = volume_is_good(&all[i]) ? volume_place(os, &all[i], &n) : -1;
                if (place < 0 || (!place && root_is_stale(os, n, &all[i])))
                        continue;
                const struct os_volume **to = &os_spot_of(os, n)->volumes[place];
                if (!*to || (!(*to)->attachments.n && all[i].attachments.n))
                        *to = &all[i];
        }
        for (size_t i = 0; i < c->node_count; i++)
                settle_devices(os, &c->nodes[i]);
}

bool os_volume_is_spare(const struct os *os, const struct os_volume *v)
{
        const struct node *n;
        int place = volume_place(os, v, &n);
        return place >= 0 && !v->attachments.n && !streq(v->status ? v->status : "", "deleting") &&
               (!volume_is_good(v) || os_spot_of(os, n)->volumes[place] != v);
}

/* ---- making them ---- */

static bool place_is_used(const struct pool *p, size_t place)
{
        return place || p->root_volume.src;
}

/* A machine that runs has its system disk, whatever it is. */
static bool place_is_missing(const struct os *os, const struct node *n, size_t place)
{
        const struct os_spot *s = os_spot_of(os, n);
        return place_is_used(n->pool, place) && !s->volumes[place] && (place || !s->server);
}

bool os_volumes_missing(const struct os *os, const struct node *n, int64_t *count, int64_t *gb)
{
        bool any = false;
        for (size_t i = 0; i <= n->pool->volumes.n; i++) {
                if (!place_is_missing(os, n, i))
                        continue;
                int64_t size = i ? n->pool->volumes.v[i - 1].size : n->pool->root_volume.size;
                *count += 1;
                *gb += (size + GIB - 1) / GIB;
                any = true;
        }
        return any;
}

static json_t *volume_body(const struct os *os, const struct node *n, size_t place)
{
        const struct volume *v = place ? &n->pool->volumes.v[place - 1] : NULL;
        const struct root_volume *root = &n->pool->root_volume;
        const struct os_image *image = os_image_of(os, n->pool);
        const char *type = v ? v->type : root->type, *zone = v ? v->zone : root->zone;
        const char *bus = image && image->bus ? image->bus : "virtio";
        char which[24];
        snprintf(which, sizeof(which), place ? "%zu" : "root%.0zu", place);
        json_t *o = json_pack("{s:s, s:I, s:{s:s, s:s, s:s, s:s}}", "name",
                arena_printf(os->run->arena, "%s-%s", n->name, which), "size",
                (json_int_t)(((v ? v->size : root->size) + GIB - 1) / GIB), "metadata",
                OS_META_MARK, os->mark, META_NODE, n->name, META_WHICH, which, META_BUS,
                streq(bus, "scsi") || streq(bus, "virtio") ? bus : "");
        if (type)
                json_object_set_new(o, "volume_type", json_string(type));
        if (zone)
                json_object_set_new(o, "availability_zone", json_string(zone));
        if (!place && image) {
                json_t *metadata = json_object_get(o, "metadata");
                json_object_set_new(o, "imageRef", json_string(image->id));
                json_object_set_new(
                        metadata, OS_META_IMAGE, json_string(os_image_name(os, n->pool)));
                json_object_set_new(metadata, OS_META_ROOT, json_string(os_root_text(os, n->pool)));
        }
        return o;
}

static void on_volume(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_found *f = &j->os->found;
        const struct call_row *row = &os_calls[OS_CREATE_VOLUME];
        struct os_volume *one = os_append(&f->arena, &f->volumes, row->answer);
        if (call_read(row, reply, &f->arena, one, &err) < 0) {
                f->volumes.n--;
                job_fail(j, &err);
        }
        os_settle_volumes(j->os);
}

static void volumes_make(struct os_job *j, const struct node *n)
{
        for (size_t i = 0; i <= n->pool->volumes.n; i++)
                if (place_is_missing(j->os, n, i))
                        job_ask(j, &(struct os_ask){ .call = OS_CREATE_VOLUME,
                                           .body = volume_body(j->os, n, i),
                                           .resource = n->name,
                                           .fn = on_volume });
}

/* j->node: only its own. */
void stage_volumes(struct os_job *j)
{
        const struct cluster *c = j->os->run->cluster;
        for (size_t i = 0; i < c->node_count; i++)
                if (!j->node || j->node == &c->nodes[i])
                        volumes_make(j, &c->nodes[i]);
}

/* ---- until they can be used ---- */

static const struct os_volume *volume_awaited(const struct os *os, const struct node *only)
{
        const struct cluster *c = os->run->cluster;
        for (size_t i = 0; i < c->node_count; i++)
                for (size_t k = 0; k <= c->nodes[i].pool->volumes.n; k++) {
                        const struct os_volume *v = os->found.spots[i].volumes[k];
                        if (v && (!only || only == &c->nodes[i]) &&
                                !streq(v->status, "available") && !streq(v->status, "in-use"))
                                return v;
                }
        return NULL;
}

static bool volume_failed(struct os_job *j)
{
        const struct os_volume *all = j->os->found.volumes.v;
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < j->os->found.volumes.n; i++) {
                const char *node = os_volume_node(&all[i]);
                if (!all[i].status || !has_prefix(all[i].status, "error") || all[i].attachments.n)
                        continue;
                error_set(&err, EIO, EXIT_STEP, "cinder could not make the volume %s of %s: %s",
                        all[i].id, node ? node : "no node", all[i].status);
                error_hint(&err, "run 'slipway up' again: it deletes the volume and makes another");
                job_fail(j, &err);
                return true;
        }
        return false;
}

static void on_volumes_again(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_found *f = &j->os->found;
        if (os_read_ours(j->os, OS_LIST_VOLUMES, reply, &f->arena, &f->volumes, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        os_settle_volumes(j->os);
        const struct os_volume *v = volume_failed(j) ? NULL : volume_awaited(j->os, j->node);
        if (!v || job_later(j, READY_MS))
                return;
        error_set(&err, ETIMEDOUT, EXIT_STEP, "the volume %s does not become available: %s", v->id,
                v->status);
        error_hint(&err, "see `openstack volume show`, and run 'slipway up' again");
        job_fail(j, &err);
}

void stage_volumes_ready(struct os_job *j)
{
        struct pair mark[3];
        if (!volume_awaited(j->os, j->node))
                return;
        os_mark_args(j->os, mark);
        job_ask(j,
                &(struct os_ask){ .call = OS_LIST_VOLUMES, .args = mark, .fn = on_volumes_again });
}

/* ---- at the server ---- */

static bool volume_is_at(const struct os_volume *v, const struct os_server *s)
{
        const struct os_attachment *a = v->attachments.v;
        for (size_t i = 0; i < v->attachments.n; i++)
                if (a[i].server && streq(a[i].server, s->id))
                        return true;
        return false;
}

bool os_volume_detached(const struct os *os, const struct node *n, size_t place)
{
        const struct os_spot *s = os_spot_of(os, n);
        const struct os_volume *v = place ? s->volumes[place] : NULL;
        const char *status = s->server && s->server->status ? s->server->status : "";
        return v && (streq(status, "ACTIVE") || streq(status, "SHUTOFF")) && !v->attachments.n &&
               !volume_is_at(v, s->server);
}

/* A volume that the file has since the machine was made, or that somebody detached. */
void stage_attach(struct os_job *j)
{
        const struct cluster *c = j->os->run->cluster;
        for (size_t i = 0; i < c->node_count; i++)
                for (size_t k = 1; k <= c->nodes[i].pool->volumes.n; k++) {
                        if (!os_volume_detached(j->os, &c->nodes[i], k))
                                continue;
                        const struct os_spot *s = &j->os->found.spots[i];
                        struct pair id[] = { { "id", s->server->id }, { 0 } };
                        job_ask(j,
                                &(struct os_ask){ .call = OS_ATTACH_VOLUME,
                                        .args = id,
                                        .body = json_pack("{s:s}", "volumeId", s->volumes[k]->id),
                                        .resource = c->nodes[i].name });
                }
}

static json_t *block_device(int boot, const char *source, const char *id, const char *destination)
{
        return json_pack("{s:i, s:s, s:s, s:s, s:b}", "boot_index", boot, "source_type", source,
                "uuid", id, "destination_type", destination, "delete_on_termination",
                (int)streq(destination, "local"));
}

/* The disks of a new server; NULL: only the image's. */
json_t *os_block_devices(const struct os *os, const struct node *n, const char *image)
{
        const struct os_spot *s = os_spot_of(os, n);
        const struct os_volume *root = n->pool->root_volume.src ? s->volumes[0] : NULL;
        if (!root && !n->pool->volumes.n)
                return NULL;
        json_t *all = json_array();
        json_array_append_new(all, root ? block_device(0, "volume", root->id, "volume")
                                        : block_device(0, "image", image, "local"));
        for (size_t i = 1; i <= n->pool->volumes.n; i++)
                if (s->volumes[i])
                        json_array_append_new(
                                all, block_device(-1, "volume", s->volumes[i]->id, "volume"));
        return all;
}

/* ---- deleting them ---- */

/* cinder refuses one that nova has not let go yet. */
static void on_volume_deleted(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct fault *f = reply->fault;
        if (!f || f->kind == FAULT_ABSENT || f->kind == FAULT_CONFLICT || f->kind == FAULT_WRONG ||
                f->lost)
                return;
        fault_error(f, &err);
        job_fail(j, &err);
}

void os_volume_delete(struct os_job *j, const struct os_volume *v)
{
        struct pair id[] = { { "id", v->id }, { 0 } };
        if (v->attachments.n || (v->status && streq(v->status, "deleting")))
                return;
        job_ask(j, &(struct os_ask){ .call = OS_DELETE_VOLUME,
                           .args = id,
                           .resource = v->id,
                           .fn = on_volume_deleted,
                           .optional = true });
}

void stage_volume_spares(struct os_job *j)
{
        const struct os_volume *all = j->os->found.volumes.v;
        for (size_t i = 0; i < j->os->found.volumes.n; i++)
                if (os_volume_is_spare(j->os, &all[i]))
                        os_volume_delete(j, &all[i]);
}

static bool volume_goes(const struct os_job *j, const struct os_volume *v)
{
        const char *node = os_volume_node(v), *which = os_pair(&v->metadata, META_WHICH);
        return node && streq(node, j->node->name) &&
               (!j->only_root || (which && streq(which, "root")));
}

static void on_volumes_of_node(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_found *f = &j->os->found;
        size_t left = 0;
        if (os_read_ours(j->os, OS_LIST_VOLUMES, reply, &f->arena, &f->volumes, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        os_settle_volumes(j->os);
        const struct os_volume *all = f->volumes.v;
        for (size_t i = 0; i < f->volumes.n; i++)
                if (volume_goes(j, &all[i])) {
                        os_volume_delete(j, &all[i]);
                        left++;
                }
        if (!left || job_later(j, READY_MS))
                return;
        error_set(&err, EBUSY, EXIT_STEP, "%zu volume%s of %s left", left,
                left == 1 ? " is" : "s are", j->node->name);
        error_hint(&err, "see what uses it with `openstack volume list`, and run again");
        job_fail(j, &err);
}

/* Of j->node, until the list has none. */
void stage_node_volumes_gone(struct os_job *j)
{
        struct pair mark[3];
        if (!os_has(j->line->session, "block-storage"))
                return;
        os_mark_args(j->os, mark);
        job_ask(j, &(struct os_ask){
                           .call = OS_LIST_VOLUMES, .args = mark, .fn = on_volumes_of_node });
}

/* The bytes of an image that slipway uploads: from the user's file; or from a URL, by glance itself
 * if it offers that, otherwise through the cache. They are checked before they are sent, and what
 * glance has afterwards is compared with them: its hash, or, of what it downloaded itself, all of
 * it, read back. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include "artifact/blob.h"
#include "artifact/http.h"
#include "pki/pki.h"
#include "provider/openstack/image.h"

#define PIECE       ((size_t)1 << 20)
#define TURN        ((size_t)8 << 20) /* read in one turn of the loop */
#define IMAGE_MAX   ((int64_t)64 << 30)
#define SOON_MS     500
#define LATER_MS    5000
#define SOON        20 /* times */
#define TRIES       5
#define STAGES_BACK 3 /* behind stage_image, to stage_image_fetch */

/* SHA-256 is the user's; glance has one of the others, or both. */
static const char *const sum_names[SUMS] = { "sha256", "sha512", "md5" };

static bool uploading(const struct os_job *j) { return j->os->upload && j->os->upload->image; }

static void PRINTF(3, 4) upload_fail(struct os_job *j, const char *hint, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        error_vset(&err, EBADMSG, EXIT_STEP, hint, fmt, ap);
        va_end(ap);
        job_fail(j, &err);
}

static void upload_say(const struct os_job *j, const char *what, int64_t now, int64_t all)
{
        int permille = all > 0 ? (int)((now < all ? now : all) * 1000 / all) : -1;
        char text[300];
        if (!j->say || permille == j->os->upload->permille)
                return;
        snprintf(text, sizeof(text), "%s image %s", what, j->os->options->image.name);
        j->os->upload->permille = permille;
        j->say(text, permille, j->arg);
}

/* ---- checksums ---- */

static void sums_begin(struct os_upload *u)
{
        for (size_t i = 0; i < SUMS; i++) {
                EVP_MD_CTX_free(u->sums[i]);
                u->sums[i] = EVP_MD_CTX_new();
                if (!u->sums[i] ||
                        !EVP_DigestInit_ex(u->sums[i], EVP_get_digestbyname(sum_names[i]), NULL)) {
                        EVP_MD_CTX_free(u->sums[i]); /* this OpenSSL has no MD5 */
                        u->sums[i] = NULL;
                }
        }
        u->done = 0;
}

static void sums_add(struct os_upload *u, const char *data, size_t n)
{
        for (size_t i = 0; i < SUMS; i++)
                if (u->sums[i])
                        EVP_DigestUpdate(u->sums[i], data, n);
        u->done += (int64_t)n;
}

static void sums_end(struct os_upload *u)
{
        unsigned char raw[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        for (size_t i = 0; i < SUMS; i++) {
                u->digits[i][0] = 0;
                if (!u->sums[i] || !EVP_DigestFinal_ex(u->sums[i], raw, &n))
                        continue;
                for (unsigned k = 0; k < n; k++)
                        snprintf(u->digits[i] + 2 * (size_t)k, 3, "%02x", raw[k]);
        }
}

void os_upload_end(struct os *os)
{
        struct os_upload *u = os->upload;
        if (!u)
                return;
        for (size_t i = 0; i < SUMS; i++)
                EVP_MD_CTX_free(u->sums[i]);
        if (u->open)
                close(u->fd);
        http_free(u->http);
        free(u->part);
        os->upload = NULL;
}

/* ---- the bytes ---- */

static void on_methods(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct os_methods m = { 0 };
        if (!reply->fault && call_read(&os_calls[OS_IMPORT_METHODS], reply, j->os->run->arena, &m,
                                     &ignored) == 0)
                j->os->upload->import = strings_contain(&m.names, "web-download");
}

void stage_image_methods(struct os_job *j)
{
        if (uploading(j) && j->os->options->image.url)
                job_ask(j, &(struct os_ask){
                                   .call = OS_IMPORT_METHODS, .fn = on_methods, .optional = true });
}

static int part_open(struct os_job *j, struct error *err)
{
        struct os_upload *u = j->os->upload;
        char *cache CLEANUP(free_p) = NULL;
        if (u->open)
                return 0;
        int r = cache_open(&cache, err);
        if (r == 0)
                r = http_new(j->line->base, &u->http, err);
        if (r < 0)
                return r;
        char *name CLEANUP(free_p) =
                xasprintf("image-%s-%s", j->os->options->image.sha256, j->os->mark);
        u->part = cache_path(cache, "partial", name);
        u->fd = open(u->part, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (u->fd < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot write %s: %s", u->part, strerror(errno));
        u->open = true;
        return 0;
}

static void image_on_fetch_progress(int64_t now, int64_t total, void *arg)
{
        upload_say(arg, "download", now, total);
}

/* What was cut goes on where it stopped; a part that the server does not accept may be whole: its
 * checksum decides. */
static void on_fetched(struct transfer *t, void *arg)
{
        struct os_job *j = arg;
        struct os_upload *u = j->os->upload;
        enum transfer_end end = transfer_end(t);
        if (end == TRANSFER_CUT && u->tries++ < TRIES)
                job_again(j, SOON_MS);
        else if (end != TRANSFER_OK && end != TRANSFER_RANGE)
                upload_fail(j, "run 'slipway up' again, or download the image and set file",
                        "cannot download %s: %s", os_image_source(j->os), transfer_why(t));
        job_continue(j);
}

void stage_image_fetch(struct os_job *j)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_upload *u = j->os->upload;
        struct transfer *t;
        if (!uploading(j) || u->import || !j->os->options->image.url)
                return;
        int r = part_open(j, &err);
        if (r == 0)
                r = transfer_start(u->http,
                        &(struct transfer_spec){ .url = j->os->options->image.url,
                                .fd = u->fd,
                                .offset = lseek(u->fd, 0, SEEK_END),
                                .max = IMAGE_MAX,
                                .on_progress = image_on_fetch_progress,
                                .on_done = on_fetched,
                                .arg = j },
                        &t, &err);
        if (r < 0)
                job_fail(j, &err);
        else
                j->open++;
}

static void file_checked(struct os_job *j)
{
        struct os_upload *u = j->os->upload;
        const struct os_image_options *o = &j->os->options->image;
        sums_end(u);
        u->size = u->done;
        if (streq(u->digits[0], o->sha256))
                return;
        if (u->part)
                unlink(u->part);
        upload_fail(j, "download it again, or correct provider.openstack.image.sha256",
                "image %s: the SHA-256 checksum of %s is %s, and the cluster's file says %s",
                o->name, os_image_source(j->os), u->digits[0], o->sha256);
}

/* A part of it in each turn, so that the loop goes on. */
void stage_image_digest(struct os_job *j)
{
        struct os_upload *u = j->os->upload;
        char *piece CLEANUP(free_p) = NULL;
        ssize_t n = 1;
        if (!uploading(j) || u->import)
                return;
        if (!u->open) {
                u->fd = open(os_image_path(j->os), O_RDONLY | O_CLOEXEC);
                u->open = u->fd >= 0;
        }
        if (!u->open) {
                upload_fail(j, "download the image to that path",
                        "provider.openstack.image.file: cannot read %s: %s", os_image_path(j->os),
                        strerror(errno));
                return;
        }
        if (!u->sums[0]) {
                sums_begin(u);
                lseek(u->fd, 0, SEEK_SET);
        }
        piece = xmalloc(PIECE);
        for (size_t k = 0; k < TURN / PIECE && n > 0; k++)
                if ((n = read(u->fd, piece, PIECE)) > 0)
                        sums_add(u, piece, (size_t)n);
        if (n < 0)
                upload_fail(j, NULL, "image %s: cannot read its file: %s",
                        j->os->options->image.name, strerror(errno));
        else if (n > 0)
                job_again(j, 0);
        else
                file_checked(j);
}

/* ---- into glance ---- */

static void image_on_sent(const char *data, size_t n, void *arg)
{
        struct os_job *j = arg;
        j->os->upload->done += (int64_t)n;
        upload_say(j, "upload", j->os->upload->done, j->os->upload->size);
}

/* Glance takes only addresses that its settings allow: then it is downloaded here. */
static void on_import(struct os_job *j, const struct call_reply *reply, void *arg)
{
        const struct fault *f = reply->fault;
        if (f && (f->kind == FAULT_WRONG || f->kind == FAULT_FORBIDDEN)) {
                j->os->upload->import = false;
                j->at -= STAGES_BACK;
        } else if (f)
                job_fault(j, &os_calls[OS_IMPORT_IMAGE], f);
}

static void image_send(struct os_job *j)
{
        struct os_upload *u = j->os->upload;
        const struct os_image_options *o = &j->os->options->image;
        struct pair id[] = { { "id", u->id }, { 0 } };
        u->stream = (struct stream){ u->fd, u->size, image_on_sent, j };
        u->done = 0;
        u->began = false;
        job_ask(j, &(struct os_ask){ .call = u->import ? OS_IMPORT_IMAGE : OS_SEND_IMAGE,
                           .args = id,
                           .body = u->import ? json_pack("{s:s, s:s}", "name", "web-download",
                                                       "uri", o->url)
                                             : NULL,
                           .resource = o->name,
                           .fn = u->import ? on_import : NULL,
                           .optional = u->import,
                           .stream = u->import ? NULL : &u->stream });
}

static void on_image_made(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_image made = { 0 };
        if (call_read(&os_calls[OS_CREATE_IMAGE], reply, j->os->run->arena, &made, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        j->os->upload->id = made.id;
        image_send(j);
}

/* A UUID, because copies that users make have all properties and another id. */
static const char *image_new_id(struct os_job *j)
{
        static const uint8_t cuts[] = { 0, 4, 6, 8, 10, 16 };
        struct str s CLEANUP(str_release) = { 0 };
        uint8_t raw[16];
        random_bytes(raw, sizeof(raw));
        raw[6] = (raw[6] & 0x0f) | 0x40; /* version 4 */
        raw[8] = (raw[8] & 0x3f) | 0x80;
        for (size_t i = 0; i + 1 < ARRAY_SIZE(cuts); i++) {
                if (i)
                        str_addc(&s, '-');
                str_add_hex(&s, raw + cuts[i], (size_t)(cuts[i + 1] - cuts[i]));
        }
        return arena_strdup(j->os->run->arena, str_text(&s));
}

static void image_make(struct os_job *j)
{
        const struct os_image_options *o = &j->os->options->image;
        const char *id = image_new_id(j);
        const struct os_upload *u = j->os->upload;
        json_t *body = json_object();
        for (size_t i = 0; i < o->properties.n; i++)
                json_object_set_new(
                        body, o->properties.v[i].key, json_string(o->properties.v[i].value));
        json_t *own = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "id", id, "name",
                o->name, "disk_format", u->format, "container_format", "bare", "visibility",
                "private", OS_META_MARK, j->os->mark, OS_META_MADE_AS, id, "min_disk",
                (json_int_t)u->image->min_disk);
        json_object_update(body, own);
        json_decref(own);
        job_ask(j, &(struct os_ask){ .call = OS_CREATE_IMAGE,
                           .body = body,
                           .resource = o->name,
                           .fn = on_image_made });
}

static bool image_is_half(const struct os_image *image)
{
        for (size_t i = 0; i < image->tags.n; i++)
                if (has_prefix(image->tags.v[i], IMAGE_SHA))
                        return false;
        return true;
}

static void image_delete(struct os_job *j, const char *id)
{
        struct pair args[] = { { "id", id }, { 0 } };
        job_ask(j, &(struct os_ask){ .call = OS_DELETE_IMAGE,
                           .args = args,
                           .resource = j->os->options->image.name });
}

/* What an interrupted run left is deleted, also one of this run whose answer was lost. */
static void on_uploads(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct answers all = { 0 };
        if (os_read_ours(j->os, OS_LIST_UPLOADS, reply, j->os->run->arena, &all, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        const struct os_image *images = all.v;
        for (size_t i = 0; i < all.n; i++)
                if (image_is_half(&images[i]))
                        image_delete(j, images[i].id);
        image_make(j);
}

static void uploads_list(struct os_job *j, os_answer fn)
{
        struct pair mark[] = { { "mark", j->os->mark }, { 0 } };
        job_ask(j, &(struct os_ask){ .call = OS_LIST_UPLOADS, .args = mark, .fn = fn });
}

void stage_image(struct os_job *j)
{
        if (uploading(j))
                uploads_list(j, on_uploads);
}

/* ---- until it can be used ---- */

static void on_tagged(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct os_upload *u = j->os->upload;
        u->image->id = u->id;
        u->image = NULL;
        if (u->part)
                unlink(u->part);
}

static void image_judge(struct os_job *j, bool good)
{
        const struct os_upload *u = j->os->upload;
        const struct os_image_options *o = &j->os->options->image;
        struct pair args[] = { { "id", u->id },
                { "tag", arena_printf(j->os->run->arena, IMAGE_SHA "%s", o->sha256) }, { 0 } };
        if (good) {
                job_ask(j, &(struct os_ask){ .call = OS_TAG_IMAGE,
                                   .args = args,
                                   .resource = o->name,
                                   .fn = on_tagged });
                return;
        }
        image_delete(j, u->id);
        upload_fail(j,
                u->import ? "correct provider.openstack.image: its url or its sha256"
                          : "run 'slipway up' again: it uploads the image anew",
                u->import
                        ? "image %s: what glance downloaded has another SHA-256 checksum than the cluster's file says"
                        : "image %s: glance has other bytes than were sent",
                o->name);
}

static void image_on_read(const char *data, size_t n, void *arg)
{
        struct os_job *j = arg;
        struct os_upload *u = j->os->upload;
        sums_add(u, data, n);
        upload_say(j, "check", u->done, u->size);
}

static void on_read_back(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct os_upload *u = j->os->upload;
        sums_end(u);
        image_judge(j, streq(u->digits[0], j->os->options->image.sha256));
}

/* Of what was sent, all checksums are known. */
static bool sent_is_same(const struct os_upload *u, const struct os_image *image)
{
        for (size_t i = 0; i < SUMS; i++)
                if (image->algorithm && image->hash && streq(image->algorithm, sum_names[i]))
                        return streq(image->hash, u->digits[i]);
        return image->checksum && *u->digits[2] ? streq(image->checksum, u->digits[2])
                                                : image->size == u->size;
}

static void image_check(struct os_job *j, const struct os_image *image)
{
        struct os_upload *u = j->os->upload;
        struct pair id[] = { { "id", u->id }, { 0 } };
        bool known = image->algorithm && image->hash && streq(image->algorithm, sum_names[0]);
        if (!u->import || known) {
                image_judge(j, u->import ? streq(image->hash, j->os->options->image.sha256)
                                         : sent_is_same(u, image));
                return;
        }
        sums_begin(u);
        u->size = image->size;
        u->stream = (struct stream){ .fd = -1,
                .size = image->size < IMAGE_MAX ? image->size : IMAGE_MAX,
                .fn = image_on_read,
                .arg = j };
        job_ask(j, &(struct os_ask){ .call = OS_READ_IMAGE,
                           .args = id,
                           .resource = image->name,
                           .fn = on_read_back,
                           .stream = &u->stream });
}

/* It waits in the state queued, and is there again when it has failed. */
static bool import_failed(struct os_upload *u, const struct os_image *image)
{
        bool queued = streq(image->status ? image->status : "", "queued");
        u->began |= !queued;
        return (image->failed && *image->failed) || (u->began && queued);
}

static void on_image_state(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_upload *u = j->os->upload;
        struct answers all = { 0 };
        const struct os_image *image = NULL;
        if (os_read_ours(j->os, OS_LIST_UPLOADS, reply, j->os->run->arena, &all, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        for (size_t i = 0; i < all.n; i++)
                if (streq(((const struct os_image *)all.v)[i].id, u->id))
                        image = &((const struct os_image *)all.v)[i];
        if (image && image->status && streq(image->status, "active"))
                image_check(j, image);
        else if (image && u->import && import_failed(u, image))
                upload_fail(j, "see `openstack image task list`, or download it and set file",
                        "image %s: glance could not download %s", image->name,
                        os_image_source(j->os));
        else if (!job_later(j, j->later < SOON ? SOON_MS : LATER_MS))
                upload_fail(j, "see `openstack image show`, and run 'slipway up' again",
                        "image %s does not become active", j->os->options->image.name);
}

void stage_image_ready(struct os_job *j)
{
        if (uploading(j))
                uploads_list(j, on_image_state);
}

#include <dirent.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include "artifact/pack.h"
#include "artifact/tar.h"
#include "base/sha256.h"
#include "base/str.h"

static int pack_to_blob(void *arg, const void *data, size_t n, struct error *err)
{
        return blob_add(arg, data, n, err);
}

static int to_digest(void *arg, const void *data, size_t n, struct error *err)
{
        EVP_DigestUpdate(arg, data, n);
        return 0;
}

/* ---- images ---- */

/* The directories above the program, a /tmp, and the program. */
static int write_layer(
        const struct tar *t, const struct pack_image *image, stop_flag stop, struct error *err)
{
        const char *path = image->path + 1;
        int r = tar_member(t, "tmp/", 01777, 0, err);
        for (const char *slash = path; r == 0 && (slash = strchr(slash, '/')); slash++) {
                char *dir CLEANUP(free_p) = xstrndup(path, (size_t)(slash - path) + 1);
                r = tar_member(t, dir, 0755, 0, err);
        }
        if (r == 0)
                r = image->file ? tar_file(t, path, 0755, image->file, stop, err)
                                : tar_data(t, path, 0755, image->data, image->len, err);
        return r == 0 ? tar_end(t, err) : r;
}

static int64_t layer_size(const struct pack_image *image)
{
        struct stat st = { .st_size = (off_t)image->len };
        /* reading it has reported the reason */
        if (image->file && stat(image->file, &st) < 0)
                return 0;
        int64_t n = tar_room(0) + tar_room(st.st_size) + TAR_END;
        for (const char *slash = image->path + 1; (slash = strchr(slash, '/')); slash++)
                n += tar_room(0);
        return n;
}

static int layer_digest(
        const struct pack_image *image, stop_flag stop, char digest[65], struct error *err)
{
        EVP_MD_CTX *sum = EVP_MD_CTX_new();
        EVP_DigestInit_ex(sum, EVP_sha256(), NULL);
        int r = write_layer(&(struct tar){ to_digest, sum }, image, stop, err);
        unsigned char raw[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        EVP_DigestFinal_ex(sum, raw, &n);
        for (unsigned i = 0; i < 32; i++)
                snprintf(digest + (size_t)2 * i, 3, "%02x", raw[i]);
        EVP_MD_CTX_free(sum);
        return r;
}

static char *image_config(const struct pack_image *image, const char *layer)
{
        static const char created[] = "1970-01-01T00:00:00Z";
        char *diff CLEANUP(free_p) = xasprintf("sha256:%s", layer);
        json_t *config = json_pack("{s:[s], s:[s]}", "Env",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "Entrypoint",
                image->path);
        if (image->user)
                json_object_set_new(config, "User", json_string(image->user));
        json_t *root = json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:[s]}, s:[{s:s}]}", "architecture",
                image->arch, "os", "linux", "created", created, "config", config, "rootfs", "type",
                "layers", "diff_ids", diff, "history", "created", created);
        char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(root);
        return text;
}

static char *image_manifest(const struct pack_image *image, const char *config, const char *layer)
{
        json_t *root = json_pack("[{s:s, s:[s], s:[s]}]", "Config", config, "RepoTags",
                image->reference, "Layers", layer);
        char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(root);
        return text;
}

int pack_image(const char *cache, const struct pack_image *image, stop_flag stop, char digest[65],
        int64_t *size, struct error *err)
{
        char layer[65] = "", id[65];
        int r = layer_digest(image, stop, layer, err);
        if (r < 0)
                return r;
        char *config CLEANUP(free_p) = image_config(image, layer);
        sha256_hex(config, strlen(config), id);
        char *config_name CLEANUP(free_p) = xasprintf("%s.json", id),
                          *layer_name CLEANUP(free_p) = xasprintf("%s.tar", layer);
        char *manifest CLEANUP(free_p) = image_manifest(image, config_name, layer_name);
        struct blob b CLEANUP(blob_release) = BLOB_INIT;
        struct tar t = { pack_to_blob, &b };
        int64_t room = layer_size(image);
        if ((r = blob_begin(&b, cache, err)) < 0 ||
                (r = tar_data(&t, "manifest.json", 0644, manifest, strlen(manifest), err)) < 0 ||
                (r = tar_data(&t, config_name, 0644, config, strlen(config), err)) < 0 ||
                (r = tar_member(&t, layer_name, 0644, room, err)) < 0)
                return r;
        int64_t before = b.size;
        if ((r = write_layer(&t, image, stop, err)) < 0)
                return r;
        if (b.size - before != room)
                return error_set(err, EIO, EXIT_INTERNAL, "cannot pack %s: %s changed meanwhile",
                        image->reference, image->file);
        if ((r = tar_pad(&t, room, err)) < 0 || (r = tar_end(&t, err)) < 0)
                return r;
        return blob_end(&b, digest, size, err);
}

/* ---- sets ---- */

static int is_plain(const struct dirent *e) { return e->d_name[0] != '.'; }

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

int pack_set(const char *cache, const char *dir, stop_flag stop, char digest[65], int64_t *size,
        struct error *err)
{
        struct dirent **list = NULL;
        int n = scandir(dir, &list, is_plain, by_bytes);
        if (n <= 0) {
                free(list);
                return error_set(err, n < 0 ? errno : ENOENT, EXIT_INTERNAL, "cannot pack %s: %s",
                        dir, n < 0 ? strerror(errno) : "it is empty");
        }
        struct blob b CLEANUP(blob_release) = BLOB_INIT;
        struct tar t = { pack_to_blob, &b };
        int r = blob_begin(&b, cache, err);
        for (int i = 0; i < n; i++) {
                char *path CLEANUP(free_p) = xasprintf("%s/%s", dir, list[i]->d_name);
                if (r == 0)
                        r = tar_file(&t, list[i]->d_name, 0755, path, stop, err);
                free(list[i]);
        }
        free(list);
        if (r == 0)
                r = tar_end(&t, err);
        return r == 0 ? blob_end(&b, digest, size, err) : r;
}

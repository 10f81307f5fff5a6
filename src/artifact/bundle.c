/* Bundles: the blobs of a cluster and their lock in one directory. */
#include <fcntl.h>
#include <sys/stat.h>

#include "artifact/fetch_impl.h"
#include "base/file.h"

/* Writes a blob into the bundle, which is a cache with only blobs; a killed run leaves
 * no partial blob. */
static int add_blob(const char *dir, const struct item *item, struct error *err)
{
        char digest[65];
        int64_t size;
        if (blob_there(dir, item->digest, item->size))
                return 0;
        int r = blob_copy(dir, item->path, NULL, digest, &size, err);
        if (r == 0 && !streq(digest, item->digest)) {
                char *bad CLEANUP(free_p) = blob_path(dir, digest);
                unlink(bad);
                error_set(err, EBADMSG, EXIT_STATE,
                        "the cache is damaged: %s has the digest %.12s…", item->path, digest);
                return error_hint(err, "remove that file and run again: it is fetched anew");
        }
        return r;
}

int bundle_write(const char *dir, const char *arch, const struct item *items, size_t count,
        struct error *err)
{
        struct locked lock CLEANUP(locked_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, "bundle.lock");
        char *blobs CLEANUP(free_p) = path_join(dir, "blobs/sha256"),
                    *tmp CLEANUP(free_p) = path_join(dir, "tmp");
        int r = dir_make(blobs, 0755, err);
        if (r == 0)
                r = dir_remove(tmp, err); /* of a killed run */
        if (r == 0)
                r = dir_make(tmp, 0755, err);
        if (r == 0)
                r = locked_read(&lock, path, err);
        for (size_t i = 0; r == 0 && i < count; i++) {
                char *key CLEANUP(free_p) = item_key(&items[i], arch);
                struct lock_entry e = { .size = items[i].size };
                memcpy(e.digest, items[i].digest, sizeof(e.digest));
                snprintf(e.source, sizeof(e.source), "bundle");
                r = add_blob(dir, &items[i], err);
                locked_put(&lock, key, &e);
        }
        if (r == 0)
                r = locked_write(&lock, path, err); /* last, when everything that it names exists */
        rmdir(tmp);
        return r < 0 ? error_wrap(err, "the bundle %s", dir) : 0;
}

static int verify_entry(
        const char *dir, const char *key, const struct lock_entry *e, struct error *err)
{
        char *path CLEANUP(free_p) = blob_path(dir, e->digest);
        char digest[65];
        int64_t size;
        if (access(path, F_OK) < 0)
                return error_set(
                        err, ENOENT, EXIT_STATE, "%s is missing: there is no %s", key, path);
        int r = file_digest(path, NULL, digest, &size, err);
        if (r == 0 && (!streq(digest, e->digest) || size != e->size))
                return error_set(err, EBADMSG, EXIT_STATE,
                        "%s is damaged: %s has %" PRId64 " bytes and the digest %.12s…", key, path,
                        size, digest);
        return r;
}

int bundle_verify(const char *dir, size_t *items, int64_t *bytes, struct error *err)
{
        struct locked lock CLEANUP(locked_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, "bundle.lock");
        *items = 0;
        *bytes = 0;
        if (access(path, F_OK) < 0) {
                error_set(err, errno, EXIT_STATE, "%s is no bundle: there is no bundle.lock in it",
                        dir);
                return error_hint(err, BUNDLE_FROM);
        }
        int r = locked_read(&lock, path, err);
        const char *key;
        json_t *value;
        json_object_foreach(lock.items, key, value)
        {
                struct lock_entry e;
                if (r == 0 && locked_get(&lock, key, &e))
                        r = verify_entry(dir, key, &e, err);
                if (r < 0)
                        break;
                ++*items;
                *bytes += e.size;
        }
        if (r < 0) {
                error_wrap(err, "the bundle %s", dir);
                return err->hint ? r : error_hint(err, "copy it again: " BUNDLE_FROM);
        }
        return 0;
}

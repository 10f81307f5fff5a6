#include <fcntl.h>
#include <sys/stat.h>

#include "provider/openstack/image.h"

#define GIB     ((int64_t)1 << 30)
#define MIB     ((int64_t)1 << 20)
#define ISO_AT  32769 /* of "CD001" */
#define SIZE_AT 24    /* of qcow2's virtual size, eight bytes */

/* ---- its words ---- */

/* What servers say they were made from: what the file says, and of an upload which bytes. */
void os_image_begin(struct os *os)
{
        const struct os_image_options *o = &os->options->image;
        struct str s CLEANUP(str_release) = { 0 };
        os->image = o->name;
        if (os_uploads(os))
                str_addf(&s, "%s, sha256 %.16s", o->name, o->sha256);
        else if (o->properties.n)
                str_add(&s, o->name ? o->name : "");
        for (size_t i = 0; !os_uploads(os) && i < o->properties.n; i++)
                str_addf(&s, "%s%s=%s", s.len ? ", " : "", o->properties.v[i].key,
                        o->properties.v[i].value);
        if (s.len)
                os->image = os_words(os->run->cluster->arena, str_text(&s));
}

const char *os_image_name(const struct os *os, const struct pool *p)
{
        return p->image ? p->image : os->image;
}

const struct os_image *os_image_of(const struct os *os, const struct pool *p)
{
        for (size_t i = 0; i < os->looked.image_count; i++)
                if (streq(os->looked.images[i].name, os_image_name(os, p)))
                        return os->looked.images[i].image;
        return NULL;
}

const char *os_image_path(const struct os *os)
{
        const struct os_image_options *o = &os->options->image;
        return cluster_path(os->run->arena, o->src, o->file);
}

const char *os_image_source(const struct os *os)
{
        const char *url = os->options->image.url;
        int n = url ? (int)strcspn(url, "?#") : 0;
        return url ? arena_printf(os->run->arena, "%.*s%s", n, url, url[n] ? "?…" : "")
                   : os_image_path(os);
}

/* ---- which there are ---- */

void os_look_up_image(struct os_job *j, const struct pool *p)
{
        struct os_looked *l = &j->os->looked;
        const struct os_image_options *o = &j->os->options->image;
        const char *words = os_image_name(j->os, p), *name = p->image ? p->image : o->name;
        bool own = !p->image && os_uploads(j->os);
        size_t more = p->image || own ? 0 : o->properties.n, n = 0;
        struct pair *args = arena_array(j->os->run->arena, struct pair, more + 2);
        for (size_t k = 0; k < l->image_count; k++)
                if (streq(l->images[k].name, words))
                        return;
        if (name)
                args[n++] = (struct pair){ own || !os_is_id(name) ? "name" : "id", name };
        for (size_t i = 0; i < more; i++)
                args[n++] = (struct pair){ arena_printf(j->os->run->arena, "?%s",
                                                   o->properties.v[i].key),
                        o->properties.v[i].value };
        struct os_image_of *row = &l->images[l->image_count++];
        *row = (struct os_image_of){ .name = words, .own = own };
        os_look_up(j, own ? OS_LIST_UPLOADS : OS_LIST_IMAGES, args, &row->found);
}

bool os_image_is_whole(const struct os *os, const struct os_image *image)
{
        const struct os_image_options *o = &os->options->image;
        return os_uploads(os) && os_marked(os, os_mark_of(OS_LIST_UPLOADS, image)) && image->name &&
               streq(image->name, o->name) && image->status && streq(image->status, "active") &&
               strings_contain(
                       &image->tags, arena_printf(os->run->arena, IMAGE_SHA "%s", o->sha256));
}

bool os_image_is_used(const struct os *os, const struct os_image *image)
{
        const struct os_server *servers = os->found.servers.v;
        for (size_t i = 0; i < os->found.servers.n; i++)
                if (servers[i].image && streq(servers[i].image, image->id))
                        return true;
        return os_image_is_whole(os, image);
}

/* ---- the file ---- */

/* Its format by its first bytes, and how much disk it needs. */
static const char *file_format(int fd, int64_t size, int64_t *disk)
{
        static const struct {
                off_t at;
                const char *bytes, *format;
        } formats[] = { { 0, "QFI\xfb", "qcow2" }, { ISO_AT, "CD001", "iso" },
                { 0, "KDMV", "vmdk" }, { 0, "vhdxfile", "vhdx" } };
        unsigned char head[8];
        uint64_t all = 0;
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
                size_t n = strlen(formats[i].bytes);
                if (pread(fd, head, n, formats[i].at) != (ssize_t)n ||
                        memcmp(head, formats[i].bytes, n))
                        continue;
                for (size_t k = 0; i == 0 && pread(fd, head, 8, SIZE_AT) == 8 && k < 8; k++)
                        all = all * 256 + head[k];
                *disk = all <= INT64_MAX ? (int64_t)all : INT64_MAX;
                return formats[i].format;
        }
        *disk = size;
        return "raw";
}

static void file_survey(struct os *os, struct survey *out)
{
        const struct os_image_options *o = &os->options->image;
        struct os_upload *u = os->upload;
        const char *path = os_image_path(os), *seen = NULL;
        struct stat st = { 0 };
        int64_t disk = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
                survey_problem(os->run, out, "download the image to that path",
                        "provider.openstack.image.file: cannot read %s: %s", path,
                        fd < 0 ? strerror(errno) : "it is not a file with an image");
        else
                seen = file_format(fd, st.st_size, &disk);
        if (fd >= 0)
                close(fd);
        if (!seen)
                return;
        if (o->format && !streq(seen, "raw") && !streq(seen, o->format))
                survey_problem(os->run, out, "leave format out",
                        "provider.openstack.image.format: %s has the format %s", path, seen);
        u->format = o->format ? o->format : seen;
        if (disk > 0 && disk / GIB < INT32_MAX)
                u->image->min_disk = (disk + GIB - 1) / GIB;
        survey_line(os->run, out, "upload image %s, %" PRId64 " MiB", o->name,
                ((int64_t)st.st_size + MIB - 1) / MIB);
}

/* ---- what is to do ---- */

static void upload_survey(struct os *os, struct survey *out, struct os_image_of *row)
{
        const struct os_image_options *o = &os->options->image;
        os_upload_end(os);
        struct os_upload *u = os->upload = arena_new(os->run->arena, struct os_upload);
        row->image = u->image = arena_new(os->run->arena, struct os_image);
        *u->image = (struct os_image){
                .id = "", .name = o->name, .bus = os_pair(&o->properties, "hw_disk_bus")
        };
        u->format = o->format;
        if (o->file)
                file_survey(os, out);
        else
                survey_line(os->run, out, "upload image %s from %s", o->name, os_image_source(os));
        out->changes = true;
}

static void own_survey(struct os *os, struct survey *out, struct os_image_of *row)
{
        const char *name = os->options->image.name, *foreign = NULL;
        const struct os_image *all = row->found.v;
        for (size_t i = 0; i < row->found.n; i++) {
                if (os_image_is_whole(os, &all[i]))
                        row->image = &all[i];
                else if (all[i].name && streq(all[i].name, name) &&
                         !os_marked(os, os_mark_of(OS_LIST_UPLOADS, &all[i])))
                        foreign = all[i].id;
        }
        if (row->image)
                return;
        if (foreign)
                survey_problem(os->run, out,
                        "choose another name, or name only that image to use it",
                        "provider.openstack.image: the cloud has an image %s that this cluster did not upload: %s",
                        name, foreign);
        else
                upload_survey(os, out, row);
}

void os_image_survey(struct os *os, struct survey *out, struct os_image_of *row)
{
        size_t n = row->found.n;
        if (row->own)
                own_survey(os, out, row);
        else if (n == 1)
                row->image = row->found.v;
        else
                survey_problem(os->run, out, n ? "give its id" : "see `openstack image list`",
                        n ? "provider.openstack.image: there are several images called %s"
                          : "provider.openstack.image: there is no image %s",
                        row->name);
}

/* Disks: a service that formats a device if it is blank, and a mount unit after it. */
#include "node/context.h"
#include "node/template.h"

bool disks_any(const struct pool *p) { return p->disks.n || p->volumes.n; }

void unit_escape(struct str *s, const char *path)
{
        size_t start = s->len;
        while (*path) {
                path += strspn(path, "/");
                if (*path && s->len > start)
                        str_addc(s, '-');
                for (; *path && *path != '/'; path++) {
                        bool plain = (*path >= 'a' && *path <= 'z') ||
                                     (*path >= 'A' && *path <= 'Z') ||
                                     (*path >= '0' && *path <= '9') || *path == ':' ||
                                     *path == '_' || *path == '.';
                        if (plain && !(*path == '.' && s->len == start))
                                str_addc(s, *path);
                        else
                                str_addf(s, "\\x%02x", (unsigned char)*path);
                }
        }
        if (s->len == start)
                str_addc(s, '-');
}

static const char *unit_name(
        struct arena *a, const char *prefix, const char *path, const char *suffix)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, prefix);
        unit_escape(&s, path);
        str_add(&s, suffix);
        return arena_strdup(a, str_text(&s));
}

/* Device of the n-th disk that a provider adds after the first. */
static const char *volume_device(const struct context *x, size_t n)
{
        if (x->node->devices && x->node->devices[n])
                return x->node->devices[n];
        if (x->cluster->provider.kind == PROVIDER_AWS)
                return arena_printf(x->arena, "/dev/nvme%zun1", n + 1);
        return arena_printf(x->arena, "/dev/vd%c", (char)('b' + n));
}

static void unit_file_add(const struct context *x, struct nodespec *s, const char *name,
        const char *template, const json_t *values)
{
        struct str text CLEANUP(str_release) = { 0 };
        template_render(template, values, &text);
        file_add(x, s, CLASS_IMMUTABLE, arena_printf(&s->arena, "/etc/systemd/system/%s", name),
                0644, str_text(&text), text.len);
}

static void disk_add(const struct context *x, struct nodespec *s, const struct disk *d)
{
        const char *mount = unit_name(&s->arena, "", d->mount, ".mount"),
                   *format = unit_name(&s->arena, "slipway-format-", d->mount, ".service");
        json_t *v = json_object();
        json_put(v, "device", d->device);
        json_put(v, "device_unit", unit_name(x->arena, "", d->device, ".device"));
        json_put(v, "filesystem", d->filesystem);
        json_put(v, "mount", d->mount);
        json_put(v, "mount_unit", mount);
        json_put(v, "format_unit", format);
        json_put(v, "options", strings_join(x->arena, &d->options, ","));
        unit_file_add(x, s, format, "disk-format.service", v);
        unit_file_add(x, s, mount, "disk.mount", v);
        json_decref(v);
        struct spec_entry *e = nodespec_add(s, SPEC_MOUNT, CLASS_IMMUTABLE);
        e->path = arena_strdup(&s->arena, d->mount);
        e->name = arena_strdup(&s->arena, d->device);
        e->target = arena_strdup(&s->arena, d->filesystem);
        e = nodespec_add(s, SPEC_UNIT, CLASS_IMMUTABLE);
        e->name = mount;
        e->flags = SPEC_ENABLE | SPEC_START;
        e->units = format;
}

void disks_add(const struct context *x, struct nodespec *s)
{
        static const char *const options[] = { "defaults", "noatime" };
        const struct pool *p = x->node->pool;
        for (size_t i = 0; i < p->disks.n; i++)
                disk_add(x, s, &p->disks.v[i]);
        for (size_t i = 0; i < p->volumes.n; i++) {
                const struct volume *v = &p->volumes.v[i];
                struct disk d = {
                        .device = v->device ? v->device : volume_device(x, i),
                        .filesystem = v->filesystem,
                        .mount = v->mount,
                        .options = { ARRAY_SIZE(options), (const char **)(uintptr_t)options },
                };
                disk_add(x, s, &d);
        }
}

/* Disks are mounted before packages are installed, because a mount would hide what a package put
 * under its mount point. The only hook of cloud-init that early is a boothook, which runs before
 * write_files, so it writes the files for disks itself. It runs at every boot and does not change
 * existing files. It may fail (mkfs.xfs is in a package): the same units are started again after
 * the packages. */
#include "base/quote.h"
#include "deliver/encode.h"

static bool is_mount_unit(const struct spec_entry *e)
{
        return e->kind == SPEC_UNIT && has_suffix(e->name, ".mount");
}

/* A mount unit, or the unit before it, which formats the device. */
static bool disk_unit(const struct nodespec *s, const char *name)
{
        for (size_t i = 0; i < s->count; i++)
                if (is_mount_unit(&s->entries[i]) &&
                        (streq(s->entries[i].name, name) || word_in(s->entries[i].units, name)))
                        return true;
        return false;
}

static bool disk_unit_file(const struct nodespec *s, const struct spec_entry *e)
{
        const char *unit = unit_path(e);
        return unit && disk_unit(s, unit);
}

/* Units of disks, and the programs that they run. */
bool boothook_has(const struct nodespec *s, const struct spec_entry *e)
{
        if (e->kind != SPEC_FILE || disk_unit_file(s, e))
                return e->kind == SPEC_FILE;
        char *program CLEANUP(free_p) = xasprintf("=%s ", e->path);
        for (size_t i = 0; i < s->count; i++)
                if (disk_unit_file(s, &s->entries[i]) && strstr(s->entries[i].content, program))
                        return true;
        return false;
}

static const char head[] =
        "#!/bin/sh\n"
        "# Formats and mounts the disks of this node before packages are installed.\n"
        "put() {\n"
        "        [ -e \"$1\" ] && return 0\n"
        "        mkdir -p \"${1%/*}\"\n"
        "        printf '%s' \"$3\" >\"$1\"\n"
        "        chmod \"$2\" \"$1\"\n"
        "}\n";

bool boothook_write(const struct nodespec *s, struct str *out)
{
        size_t files = 0;
        for (size_t i = 0; i < s->count; i++) {
                const struct spec_entry *e = &s->entries[i];
                if (!boothook_has(s, e))
                        continue;
                if (!files++)
                        str_add(out, head);
                str_add(out, "put ");
                quote_shell(out, e->path);
                str_addf(out, " %04o ", e->mode & 07777);
                quote_shell(out, e->content);
                str_addc(out, '\n');
        }
        if (!files)
                return false;
        str_add(out, "systemctl daemon-reload\nsystemctl start");
        for (size_t i = 0; i < s->count; i++)
                if (is_mount_unit(&s->entries[i])) {
                        str_addc(out, ' ');
                        quote_shell(out, s->entries[i].name);
                }
        str_add(out,
                " || echo 'not all disks are mounted yet: tried again after the packages' >&2\n");
        return true;
}

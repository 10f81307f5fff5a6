/* cloud-init. Its stages give the order: bootcmd and write_files early, packages in the final
 * stage, then runcmd, with the entries in their order. */
#include "base/quote.h"
#include "deliver/encode.h"
#include "deliver/userdata.h"

/* [a, "b c"]: a command as a list of words, which cloud-init quotes for the shell.
 * Ends with NULL. */
static void cloudinit_command(struct str *out, const char *const *words)
{
        str_add(out, "  - [");
        for (size_t i = 0; words[i]; i++) {
                str_add(out, i ? ", " : "");
                quote_json(out, words[i]); /* valid YAML inside brackets */
        }
        str_add(out, "]\n");
}
#define COMMAND(out, ...) cloudinit_command((out), (const char *const[]){ __VA_ARGS__, NULL })

/* Writes the key before the first item of its list. */
static void cloudinit_heading(struct str *out, const char *key, bool *done)
{
        if (!*done)
                str_addf(out, "%s:\n", key);
        *done = true;
}

static void cloudinit_write_list(struct str *out, const char *key, const struct strings *l)
{
        bool headed = false;
        for (size_t i = 0; i < l->n; i++) {
                cloudinit_heading(out, key, &headed);
                str_add(out, "  - ");
                quote_yaml(out, l->v[i]);
                str_addc(out, '\n');
        }
}

/* A proxy with a password is a secret: the agent writes its file, and then installs packages, which
 * need it. */
static bool proxy_secret(const struct proxies *p)
{
        return (p->http && url_has_credentials(p->http)) ||
               (p->https && url_has_credentials(p->https));
}

static void cloudinit_write_packages(
        const struct cluster *c, const struct nodespec *s, struct str *out)
{
        bool headed = false;
        if (proxy_secret(&c->proxy))
                return;
        for (size_t i = 0; i < s->count; i++) {
                if (s->entries[i].kind != SPEC_PACKAGE)
                        continue;
                cloudinit_heading(out, "packages", &headed);
                str_add(out, "  - ");
                quote_yaml(out, s->entries[i].name);
                str_addc(out, '\n');
        }
        if (headed)
                str_add(out, "package_update: true\n");
}

/* Before packages: masks their units that would conflict. */
static void cloudinit_write_bootcmd(const struct nodespec *s, struct str *out)
{
        bool headed = false;
        for (size_t i = 0; i < s->count; i++)
                if (s->entries[i].kind == SPEC_UNIT && s->entries[i].flags & SPEC_DISABLE) {
                        cloudinit_heading(out, "bootcmd", &headed);
                        COMMAND(out, "systemctl", "mask", s->entries[i].name);
                }
}

/* As a literal block, or as base64 if it is not plain text. */
static void cloudinit_write_content(const struct spec_entry *e, struct str *out)
{
        const char *p = e->content, *end = e->content + e->len;
        if (!e->len || !plain_text(p, e->len)) {
                str_add(out, "    encoding: b64\n    content: \"");
                str_add_base64(out, p, e->len);
                str_add(out, "\"\n");
                return;
        }
        /* 2: keeps blanks at the start of the first line; then how newlines at the end are kept */
        str_addf(out, "    content: |2%s\n",
                end[-1] != '\n'                  ? "-"
                : e->len == 1 || end[-2] == '\n' ? "+"
                                                 : "");
        while (p < end) {
                const char *nl = memchr(p, '\n', (size_t)(end - p));
                size_t n = (size_t)((nl ? nl : end) - p);
                str_add(out, n ? "      " : "");
                str_addn(out, p, n);
                str_addc(out, '\n');
                p += n + 1;
        }
}

static void cloudinit_write_files(const struct nodespec *s, struct str *out)
{
        bool headed = false;
        for (size_t i = 0; i < s->count; i++) {
                const struct spec_entry *e = &s->entries[i];
                if (e->kind != SPEC_FILE || boothook_has(s, e))
                        continue;
                cloudinit_heading(out, "write_files", &headed);
                str_add(out, "  - path: ");
                quote_yaml(out, e->path);
                str_addf(out, "\n    permissions: \"%04o\"\n", e->mode & 07777);
                if (e->owner) { /* a package may create the user */
                        str_add(out, "    owner: ");
                        quote_yaml(out, e->owner);
                        str_add(out, "\n    defer: true\n");
                }
                cloudinit_write_content(e, out);
        }
}

static void cloudinit_run_entry(const struct spec_entry *e, struct str *out)
{
        char mode[8];
        if (e->kind == SPEC_DIR) {
                snprintf(mode, sizeof(mode), "%04o", e->mode & 07777);
                COMMAND(out, "install", "-d", "-m", mode, "--", e->path);
                if (e->owner)
                        COMMAND(out, "chown", "--", e->owner, e->path);
        } else if (e->kind == SPEC_LINK) {
                char *dir CLEANUP(free_p) =
                        xstrndup(e->path, (size_t)(strrchr(e->path, '/') - e->path));
                if (*dir)
                        COMMAND(out, "mkdir", "-p", "--", dir);
                COMMAND(out, "ln", "-sfn", "--", e->target, e->path);
        } else if (e->kind == SPEC_UNIT) {
                if (e->flags & SPEC_DISABLE)
                        COMMAND(out, "systemctl", "stop", e->name);
                if (e->flags & SPEC_ENABLE)
                        COMMAND(out, "systemctl", "enable", e->name);
                if (e->flags & SPEC_START)
                        COMMAND(out, "systemctl", "start", e->name);
        }
}

/* After packages, in the order of the entries; kernel modules and settings first, because units may
 * need them. */
static void cloudinit_write_runcmd(const struct nodespec *s, struct str *out)
{
        struct str lines CLEANUP(str_release) = { 0 };
        bool sysctl = false, unit = false;
        for (size_t i = 0; i < s->count; i++) {
                sysctl |= s->entries[i].kind == SPEC_SYSCTL;
                unit |= s->entries[i].kind == SPEC_UNIT;
                if (s->entries[i].kind == SPEC_MODULE)
                        COMMAND(&lines, "modprobe", "--", s->entries[i].name);
        }
        if (sysctl)
                COMMAND(&lines, "sysctl", "--system");
        if (unit)
                COMMAND(&lines, "systemctl", "daemon-reload");
        for (size_t i = 0; i < s->count; i++)
                cloudinit_run_entry(&s->entries[i], &lines);
        if (lines.len)
                str_addf(out, "runcmd:\n%s", lines.data);
}

/* Slipway's own login, whatever user the image has. A user that exists gets key and sudo too. */
static void cloudinit_write_login(const struct login *l, struct str *out)
{
        if (!l->key)
                return;
        str_add(out, "users:\n  - default\n  - name: ");
        quote_yaml(out, l->user);
        str_add(out,
                "\n    shell: /bin/bash\n    lock_passwd: true\n    sudo: ALL=(ALL) NOPASSWD:ALL\n    ssh_authorized_keys:\n      - ");
        quote_yaml(out, l->key);
        str_addc(out, '\n');
}

static void cloudinit_write_config(
        const struct cluster *c, const struct nodespec *s, struct str *out)
{
        str_add(out, "#cloud-config\nhostname: ");
        quote_yaml(out, s->node->name);
        str_addc(out, '\n');
        cloudinit_write_list(out, "ssh_authorized_keys", &c->os.authorized_keys);
        cloudinit_write_login(&c->login, out);
        cloudinit_write_packages(c, s, out);
        cloudinit_write_bootcmd(s, out);
        cloudinit_write_files(s, out);
        cloudinit_write_runcmd(s, out);
}

static void cloudinit_write_part(struct str *out, const char *boundary, const char *type,
        const char *name, const struct str *body)
{
        bool plain = plain_text(body->data, body->len);
        str_addf(out,
                "--%s\nContent-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: %s\nContent-Disposition: attachment; "
                "filename=\"%s\"\n\n",
                boundary, type, plain ? "7bit" : "base64", name);
        if (plain)
                str_addn(out, body->data, body->len);
        for (size_t i = 0; !plain && i < body->len; i += 57) { /* MIME: 76 characters per line */
                str_add_base64(out, body->data + i, body->len - i < 57 ? body->len - i : 57);
                str_addc(out, '\n');
        }
        str_addc(out, '\n');
}

void cloudinit_write(const struct cluster *c, const struct nodespec *s, struct str *out)
{
        struct str config CLEANUP(str_release) = { 0 }, hook CLEANUP(str_release) = { 0 };
        userdata_assert(s);
        cloudinit_write_config(c, s, &config);
        if (!boothook_write(s, &hook)) {
                str_addn(out, config.data, config.len);
                return;
        }
        /* deterministic, and not contained in the parts */
        char boundary[32] = "slipway";
        for (unsigned i = 1; strstr(config.data, boundary) || strstr(hook.data, boundary); i++)
                snprintf(boundary, sizeof(boundary), "slipway-part-%u", i);
        str_addf(out, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n\n",
                boundary);
        cloudinit_write_part(out, boundary, "text/cloud-boothook", "disks", &hook);
        cloudinit_write_part(out, boundary, "text/cloud-config", "node", &config);
        str_addf(out, "--%s--\n", boundary);
}

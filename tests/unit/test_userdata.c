/* User-data of hand-made NodeSpecs, and the directory writer. What real programs think of real
 * renderings: tests/judges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <cmocka.h>
#include <jansson.h>
#include <zlib.h>

#include "base/file.h"
#include "deliver/encode.h"
#include "deliver/outdir.h"
#include "deliver/userdata.h"

static struct cluster cluster;
static const struct node node = { .name = "w1", .index = 1 };

static struct spec_entry *add(struct nodespec *s, enum spec_kind kind)
{
        s->node = &node;
        return nodespec_add(s, kind, CLASS_IMMUTABLE);
}

static void file(struct nodespec *s, const char *path, unsigned mode, const char *content)
{
        struct spec_entry *e = add(s, SPEC_FILE);
        e->path = path;
        e->mode = mode;
        e->content = content;
        e->len = strlen(content);
}

static struct spec_entry *unit(
        struct nodespec *s, const char *name, unsigned flags, const char *after)
{
        struct spec_entry *e = add(s, SPEC_UNIT);
        e->name = name;
        e->flags = flags;
        e->units = after;
        return e;
}

static void named(struct nodespec *s, enum spec_kind kind, const char *name)
{
        add(s, kind)->name = name;
}

static void contains(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("not in the text: %s\n--- text:\n%s", part, text);
}

static void lacks(const char *text, const char *part)
{
        if (strstr(text, part))
                fail_msg("in the text: %s\n--- text:\n%s", part, text);
}

static void gunzip(const char *data, size_t n, struct str *out)
{
        z_stream z = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)n };
        assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
        int r;
        do {
                str_reserve(out, 65536);
                z.next_out = (Bytef *)out->data + out->len;
                z.avail_out = 65536;
                r = inflate(&z, Z_NO_FLUSH);
                out->len += 65536 - z.avail_out;
                out->data[out->len] = 0;
        } while (r == Z_OK);
        assert_int_equal(r, Z_STREAM_END);
        inflateEnd(&z);
}

static void test_gzip_same_bytes(void **state)
{
        struct str a CLEANUP(str_release) = { 0 }, b CLEANUP(str_release) = { 0 },
                     back CLEANUP(str_release) = { 0 };
        gzip_add(&a, "hello hello hello", 17);
        gzip_add(&b, "hello hello hello", 17);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data, b.data, a.len);
        assert_memory_equal(a.data + 4, "\0\0\0\0", 4); /* no time */
        gunzip(a.data, a.len, &back);
        assert_string_equal(back.data, "hello hello hello");
        str_truncate(&a, 0);
        gzip_add(&a, "", 0);
        str_truncate(&back, 0);
        gunzip(a.data, a.len, &back);
        assert_int_equal(back.len, 0);
}

static void test_data_url(void **state)
{
        static const struct {
                const char *in, *out;
        } table[] = {
                { "", "data:," },
                { "a b\n", "data:,a%20b%0A" },
                { "100%\"#&?+'", "data:,100%25%22%23%26%3F%2B%27" },
                { "\xc3\xa9", "data:;base64,w6k=" },
                { "\r", "data:;base64,DQ==" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct str s CLEANUP(str_release) = { 0 };
                data_url_add(&s, table[i].in, strlen(table[i].in));
                assert_string_equal(s.data, table[i].out);
        }
}

static void test_words(void **state)
{
        assert_true(word_in("a.mount b.service", "a.mount"));
        assert_true(word_in("xa.mount a.mount", "a.mount"));
        assert_false(word_in("xa.mount", "a.mount"));
        assert_false(word_in("a.mountx", "a.mount"));
        assert_false(word_in(NULL, "a"));
        assert_true(url_has_credentials("http://u:p@proxy:3128"));
        assert_true(url_has_credentials("http://u@proxy"));
        assert_false(url_has_credentials("http://proxy/a@b"));
        assert_false(url_has_credentials("http://proxy:3128"));
}

static void test_cloudinit_plain(void **state)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        file(&s, "/etc/sysctl.d/k.conf", 0644, "a = 1\n\n  b = 2\n");
        file(&s, "/etc/none", 0600, "no newline");
        file(&s, "/etc/two", 0600, "two newlines\n\n");
        file(&s, "/etc/bin", 0755, "\xff\x01");
        file(&s, "/etc/empty", 0644, "");
        struct spec_entry *d = add(&s, SPEC_DIR);
        d->path = "/var/lib/x y";
        d->mode = 0700;
        d->owner = "etcd:etcd";
        struct spec_entry *l = add(&s, SPEC_LINK);
        l->path = "/opt/a/b";
        l->target = "/usr/bin/b";
        named(&s, SPEC_PACKAGE, "conntrack");
        named(&s, SPEC_MODULE, "overlay");
        named(&s, SPEC_SYSCTL, "a");
        unit(&s, "haproxy.service", SPEC_DISABLE, NULL);
        unit(&s, "kubelet.service", SPEC_ENABLE | SPEC_START, NULL);
        cloudinit_write(&cluster, &s, &out);
        assert_true(has_prefix(out.data, "#cloud-config\nhostname: w1\n"));
        contains(out.data, "packages:\n  - conntrack\npackage_update: true\n");
        contains(out.data, "bootcmd:\n  - [\"systemctl\", \"mask\", \"haproxy.service\"]\n");
        contains(out.data,
                "  - path: /etc/sysctl.d/k.conf\n    permissions: \"0644\"\n    content: |2\n      a = 1\n\n        b = 2\n  - path");
        contains(out.data, "    content: |2-\n      no newline\n");
        contains(out.data, "    content: |2+\n      two newlines\n\n  - path");
        contains(out.data, "    encoding: b64\n    content: \"/wE=\"\n");
        contains(out.data,
                "  - path: /etc/empty\n    permissions: \"0644\"\n    encoding: b64\n    content: \"\"\n");
        contains(out.data,
                "runcmd:\n  - [\"modprobe\", \"--\", \"overlay\"]\n  - [\"sysctl\", \"--system\"]\n  - [\"systemctl\", \"daemon-reload\"]\n"
                "  - [\"install\", \"-d\", \"-m\", \"0700\", \"--\", \"/var/lib/x y\"]\n  - [\"chown\", \"--\", \"etcd:etcd\", \"/var/lib/x y\"]\n"
                "  - [\"mkdir\", \"-p\", \"--\", \"/opt/a\"]\n  - [\"ln\", \"-sfn\", \"--\", \"/usr/bin/b\", \"/opt/a/b\"]\n"
                "  - [\"systemctl\", \"stop\", \"haproxy.service\"]\n"
                "  - [\"systemctl\", \"enable\", \"kubelet.service\"]\n  - [\"systemctl\", \"start\", \"kubelet.service\"]\n");
}

static void disks(struct nodespec *s)
{
        file(s, "/usr/local/sbin/format", 0755, "#!/bin/sh\necho 'it'\n");
        file(s, "/etc/systemd/system/format-x.service", 0644,
                "[Service]\nExecStart=/usr/local/sbin/format /dev/vdb ext4\n");
        file(s, "/etc/systemd/system/var-lib-x.mount", 0644,
                "[Mount]\nWhat=/dev/vdb\nWhere=/var/lib/x\n");
        file(s, "/etc/other", 0644, "other\n");
        unit(s, "format-x.service", 0, NULL);
        unit(s, "var-lib-x.mount", SPEC_ENABLE | SPEC_START, "format-x.service");
}

static void test_cloudinit_disks(void **state)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        disks(&s);
        cloudinit_write(&cluster, &s, &out);
        assert_true(has_prefix(out.data,
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"slipway\"\n\n--slipway\n"));
        contains(out.data, "Content-Type: text/cloud-boothook; charset=\"utf-8\"\n");
        contains(out.data, "\n\n#!/bin/sh\n");
        contains(out.data, "put /usr/local/sbin/format 0755 '#!/bin/sh\necho '\\''it'\\''\n'\n");
        contains(out.data, "put /etc/systemd/system/format-x.service 0644 ");
        contains(out.data, "systemctl start var-lib-x.mount ||");
        contains(out.data, "write_files:\n  - path: /etc/other\n");
        lacks(out.data, "path: /etc/systemd/system/var-lib-x.mount");
        assert_true(has_suffix(out.data, "--slipway--\n"));
}

static void test_boundary_not_in_parts(void **state)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        disks(&s);
        file(&s, "/etc/x", 0644, "--slipway--\n--slipway-part-1\n");
        cloudinit_write(&cluster, &s, &out);
        contains(out.data, "boundary=\"slipway-part-2\"");
}

static void test_proxies(void **state)
{
        struct str out CLEANUP(str_release) = { 0 };
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct cluster c = { .proxy = {
                                     .http = "http://proxy:3128", .https = "http://proxy:3129" } };
        named(&s, SPEC_PACKAGE, "socat");
        cloudinit_write(&c, &s, &out);
        contains(out.data, "packages:\n  - socat\n");
        str_truncate(&out, 0);
        c.proxy.http = "http://me:hunter2@proxy:3128"; /* neither the secret nor what needs it */
        cloudinit_write(&c, &s, &out);
        ignition_write(&c, &s, &out);
        lacks(out.data, "hunter2");
        lacks(out.data, "packages:");
}

static void test_login(void **state)
{
        struct cluster c = { .login = { "debian", "ssh-ed25519 AAAA slipway" },
                .provider = { .kind = PROVIDER_OPENSTACK, .openstack.user = "core" } };
        struct nodespec s CLEANUP(nodespec_release) = { .node = &node };
        struct str out CLEANUP(str_release) = { 0 };
        cloudinit_write(&c, &s, &out);
        contains(out.data,
                "users:\n  - default\n  - name: debian\n    shell: /bin/bash\n    lock_passwd: true\n    sudo: ALL=(ALL) NOPASSWD:ALL\n"
                "    ssh_authorized_keys:\n      - \"ssh-ed25519 AAAA slipway\"\n");
        str_truncate(&out, 0);
        ignition_write(&c, &s, &out);
        contains(out.data, "\"ssh-ed25519 AAAA slipway\"");
}

static void test_keys(void **state)
{
        const char *keys[] = { "ssh-ed25519 AAAA a@b: \"x\"" };
        struct cluster c = { .os.authorized_keys = { 1, keys },
                .provider = { .kind = PROVIDER_OPENSTACK, .openstack.user = "core" } };
        struct nodespec s CLEANUP(nodespec_release) = { .node = &node };
        struct str out CLEANUP(str_release) = { 0 };
        cloudinit_write(&c, &s, &out);
        contains(out.data, "ssh_authorized_keys:\n  - \"ssh-ed25519 AAAA a@b: \\\"x\\\"\"\n");
        str_truncate(&out, 0);
        ignition_write(&c, &s, &out);
        json_t *j = json_loads(out.data, 0, NULL),
               *u = json_array_get(json_object_get(json_object_get(j, "passwd"), "users"), 0);
        assert_string_equal(json_string_value(json_object_get(u, "name")), "core");
        assert_string_equal(
                json_string_value(json_array_get(json_object_get(u, "sshAuthorizedKeys"), 0)),
                keys[0]);
        json_decref(j);
}

static json_t *find(
        json_t *root, const char *room, const char *list, const char *key, const char *value)
{
        json_t *e;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(root, room), list), i,
                e) if (streq(json_string_value(json_object_get(e, key)), value)) return e;
        fail_msg("no %s.%s with %s = %s", room, list, key, value);
        return NULL;
}

static void test_ignition(void **state)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        char big[4096];
        memset(big, 'x', sizeof(big) - 1);
        big[sizeof(big) - 1] = 0;
        disks(&s);
        file(&s, "/etc/systemd/system/kubelet.service.d/10-x.conf", 0644, "[Service]\n");
        file(&s, "/etc/systemd/system/odd.service", 0600, "[Service]\n");
        file(&s, "/etc/systemd/system.conf", 0644, "[Manager]\n");
        file(&s, "/etc/big", 0644, big);
        unit(&s, "locksmithd.service", SPEC_DISABLE, NULL);
        struct spec_entry *d = add(&s, SPEC_DIR);
        d->path = "/var/lib/etcd";
        d->mode = 0700;
        d->owner = "etcd:etcd";
        struct spec_entry *l = add(&s, SPEC_LINK);
        l->path = "/etc/l";
        l->target = "/t";
        named(&s, SPEC_PACKAGE, "socat");
        ignition_write(&cluster, &s, &out);
        json_t *j = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(j);
        assert_true(json_is_true(json_object_get(
                find(j, "systemd", "units", "name", "var-lib-x.mount"), "enabled")));
        assert_non_null(json_object_get(
                find(j, "systemd", "units", "name", "var-lib-x.mount"), "contents"));
        assert_null(json_object_get(
                find(j, "systemd", "units", "name", "format-x.service"), "enabled"));
        assert_true(json_is_true(json_object_get(
                find(j, "systemd", "units", "name", "locksmithd.service"), "mask")));
        assert_int_equal(
                json_array_size(json_object_get(
                        find(j, "systemd", "units", "name", "kubelet.service"), "dropins")),
                1);
        find(j, "storage", "files", "path", "/etc/systemd/system/odd.service");
        find(j, "storage", "files", "path", "/etc/systemd/system.conf");
        find(j, "storage", "files", "path", "/etc/hostname");
        assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(find(j, "storage", "files", "path", "/etc/big"),
                                            "contents"),
                                    "compression")),
                "gzip");
        assert_int_equal(
                json_integer_value(json_object_get(
                        find(j, "storage", "directories", "path", "/var/lib/etcd"), "mode")),
                0700);
        find(j, "storage", "links", "path", "/etc/l");
        json_decref(j);
}

/* Text that does not compress: a simple generator, the same every time. */
static char *noise(size_t n)
{
        char *p = xmalloc(n + 1);
        uint32_t x = 1;
        for (size_t i = 0; i < n; i++) {
                x = x * 1664525 + 1013904223;
                p[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[x >> 26];
        }
        p[n] = 0;
        return p;
}

static void test_fit(void **state)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 }, back CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        char *even CLEANUP(free_p) = xmalloc(60001), *a CLEANUP(free_p) = noise(9000),
                   *b CLEANUP(free_p) = noise(60000);
        memset(even, 'x', 60000);
        even[60000] = 0;
        file(&s, "/etc/even", 0644, even);
        assert_int_equal(
                userdata_fit(&cluster, &s, USER_DATA_CLOUD_INIT, PROVIDER_LOCAL, &out, &err), 0);
        assert_true(has_prefix(out.data, "#cloud-config"));
        str_truncate(&out, 0);
        assert_int_equal(
                userdata_fit(&cluster, &s, USER_DATA_CLOUD_INIT, PROVIDER_OPENSTACK, &out, &err),
                0); /* 60,000 bytes are 80,000 of base64 */
        gunzip(out.data, out.len, &back);
        assert_true(has_prefix(back.data, "#cloud-config"));
        str_truncate(&out, 0);
        file(&s, "/etc/a", 0644, a);
        file(&s, "/etc/a2", 0644, a);
        file(&s, "/etc/b", 0644, b);
        file(&s, "/etc/small", 0644, "x");
        assert_int_equal(
                userdata_fit(&cluster, &s, USER_DATA_CLOUD_INIT, PROVIDER_AWS, &out, &err), -E2BIG);
        assert_int_equal(err.status, EXIT_CONFIG);
        contains(err.message, "node w1: the user-data is ");
        contains(err.message,
                "bytes after compression, but AWS takes at most 16384; the biggest entries: /etc/b (60000 bytes), /etc/even (60000 bytes), /etc/a (9000 bytes)");
        lacks(err.message, "/etc/a2");
        assert_non_null(err.hint);
        assert_int_equal(out.len, 0);
        error_release(&err);
        assert_int_equal(
                userdata_fit(&cluster, &s, USER_DATA_IGNITION, PROVIDER_OPENSTACK, &out, &err),
                -E2BIG);
        contains(err.message, "of base64 after compression, but OpenStack takes at most 65535");
}

static void test_fit_ignition(void **state)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        char paths[200][32];
        for (int i = 0; i < 200; i++) {
                snprintf(paths[i], sizeof(paths[i]), "/etc/file-%d", i);
                file(&s, paths[i], 0644,
                        "the same text in every file, over and over, so that the whole is easy to compress\n");
        }
        assert_int_equal(
                userdata_fit(&cluster, &s, USER_DATA_IGNITION, PROVIDER_AWS, &out, &err), 0);
        assert_true(out.len < USERDATA_LIMIT_AWS);
        json_t *j = json_loads(out.data, 0, NULL);
        json_t *r = json_object_get(
                json_object_get(json_object_get(j, "ignition"), "config"), "replace");
        assert_string_equal(json_string_value(json_object_get(r, "compression")), "gzip");
        assert_true(
                has_prefix(json_string_value(json_object_get(r, "source")), "data:;base64,H4sI"));
        json_decref(j);
}

static const char *const marks[] = { "mark", NULL };

static char *temp_dir(void)
{
        char *p = xstrdup("/tmp/slipway-outdir-XXXXXX");
        assert_non_null(mkdtemp(p));
        return p;
}

static void test_outdir(void **state)
{
        char *dir CLEANUP(free_p) = temp_dir();
        char *old CLEANUP(free_p) = path_join(dir, "n/old"),
                  *new CLEANUP(free_p) = path_join(dir, "n/a/b/new"),
                  *mark CLEANUP(free_p) = path_join(dir, "n/mark");
        struct error err CLEANUP(error_release) = { 0 };
        struct outroot root = { 0 };
        struct stat st;
        assert_int_equal(outroot_open(dir, &root, &err), 0);
        for (int i = 0; i < 2; i++) {
                struct outdir d CLEANUP(outdir_release) = { 0 };
                assert_int_equal(outdir_begin(&root, "n", 0700, marks, &d, &err), 0);
                assert_int_equal(outdir_file(&d, "mark", "m", 1, 0644, &err), 0);
                assert_int_equal(outdir_file(&d, i ? "a/b/new" : "old", "x", 1, 0666, &err), 0);
                assert_int_equal(outdir_dir(&d, "a/b", 0500, &err), 0);
                assert_int_equal(outdir_link(&d, "a/l", "/nowhere", &err), 0);
                assert_true(outdir_file(&d, "a/../x", "", 0, 0600, &err) < 0);
                error_release(&err);
                assert_int_equal(access(mark, F_OK), i ? 0 : -1); /* not before commit */
                assert_int_equal(outdir_commit(&d, &err), 0);
        }
        assert_int_equal(access(old, F_OK), -1);
        assert_int_equal(stat(new, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0666);
        outroot_release(&root);
        assert_int_equal(dir_remove(dir, &err), 0);
}

static void test_outdir_refuses(void **state)
{
        char *dir CLEANUP(free_p) = temp_dir();
        char *mine CLEANUP(free_p) = path_join(dir, "n/thesis.tex");
        struct error err CLEANUP(error_release) = { 0 };
        struct outroot root = { 0 }, second = { 0 };
        struct outdir d = { 0 };
        char *sub CLEANUP(free_p) = path_join(dir, "n");
        assert_int_equal(dir_make(sub, 0755, &err), 0);
        assert_int_equal(file_write(mine, "x", 1, 0600, 0, NULL, &err), 0);
        assert_int_equal(outroot_open(dir, &root, &err), 0);
        assert_int_equal(outdir_begin(&root, "n", 0755, marks, &d, &err), -EEXIST);
        contains(err.message, "exists and was not written by slipway render");
        error_release(&err);
        assert_int_equal(access(mine, F_OK), 0);
        assert_int_equal(outroot_open(dir, &second, &err), -EAGAIN); /* two at once */
        assert_int_equal(err.status, EXIT_STATE);
        error_release(&err);
        outroot_release(&root);
        assert_int_equal(dir_remove(dir, &err), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gzip_same_bytes),
                cmocka_unit_test(test_data_url),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_cloudinit_plain),
                cmocka_unit_test(test_cloudinit_disks),
                cmocka_unit_test(test_boundary_not_in_parts),
                cmocka_unit_test(test_proxies),
                cmocka_unit_test(test_login),
                cmocka_unit_test(test_keys),
                cmocka_unit_test(test_ignition),
                cmocka_unit_test(test_fit),
                cmocka_unit_test(test_fit_ignition),
                cmocka_unit_test(test_outdir),
                cmocka_unit_test(test_outdir_refuses),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/file.h"
#include "base/proc.h"
#include "deliver/userdata.h"
#include "provider/login.h"

/* Both files get temporary names first and the private one is renamed last: if it
 * exists, both do. */
int key_pair_make(const char *path, const char *comment, struct error *err)
{
        char *tmp CLEANUP(free_p) = xasprintf("%s.new", path),
                  *tmp_pub CLEANUP(free_p) = xasprintf("%s.new.pub", path);
        char *pub CLEANUP(free_p) = xasprintf("%s.pub", path);
        if (access(path, F_OK) == 0)
                return 0;
        unlink(tmp);
        unlink(tmp_pub);
        const char *const argv[] = { "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment,
                "-f", tmp, NULL };
        struct str out CLEANUP(str_release) = { 0 };
        int r = proc_must(argv, &out, err);
        if (r == 0 && (rename(tmp_pub, pub) < 0 || rename(tmp, path) < 0))
                r = error_set(err, errno, EXIT_INTERNAL, "cannot write the key %s: %s", path,
                        strerror(errno));
        return r;
}

int login_key_make(const char *state, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(state, "ssh/id_ed25519"),
                   *dir CLEANUP(free_p) = path_join(state, "ssh");
        int r = dir_make(state, 0700, err);
        if (r == 0)
                r = dir_make(dir, 0700, err);
        return r == 0 ? key_pair_make(path, "slipway", err) : r;
}

void login_target(const struct provider_run *run, const struct node *n, const char *user,
        struct link_target *out)
{
        *out = (struct link_target){ .name = n->name,
                .host = n->address,
                .user = user,
                .key = arena_printf(run->arena, "%s/ssh/id_ed25519", run->state),
                .known_hosts = arena_printf(run->arena, "%s/known_hosts", run->state),
                .port = 22,
                .sudo = !streq(user, "root"),
                .accept_new = true };
}

/* By ssh-keygen: where ssh's configuration asks for it, names in the file are hashed. */
int login_forget(const struct provider_run *run, const char *address, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(run->state, "known_hosts");
        const char *const argv[] = { "ssh-keygen", "-f", path, "-R", address, NULL };
        struct str out CLEANUP(str_release) = { 0 };
        return address && access(path, F_OK) == 0 ? proc_must(argv, &out, err) : 0;
}

int login_remove(const struct provider_run *run, struct error *err)
{
        static const char *const names[] = { "ssh", "known_hosts", "known_hosts.old" };
        int r = 0;
        for (size_t i = 0; r == 0 && !run->abandoned && i < ARRAY_SIZE(names); i++) {
                char *path CLEANUP(free_p) = path_join(run->state, names[i]);
                r = dir_remove(path, err);
        }
        return r;
}

int provider_user_data(const struct provider_run *run, const struct node *n, enum user_data format,
        const char *user, struct str *out, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(run->state, "ssh/id_ed25519.pub");
        struct str key CLEANUP(str_release) = { 0 };
        struct cluster c = *run->cluster;
        struct facts facts = { 0 };
        struct nodespec spec CLEANUP(nodespec_release) = { 0 };
        bool bastion = !n->pool->roles;
        int r = file_read(path, 4096, &key, err);
        if (r == 0 && !bastion)
                r = facts_for(NULL, n, &facts, err);
        if (r == 0 && !bastion)
                r = node_render_immutable(
                        &(struct spec_input){ .cluster = run->cluster, .node = n, .facts = &facts },
                        &spec, err);
        if (bastion)
                spec.node = n;
        if (r < 0)
                return r;
        str_truncate(&key, strcspn(str_text(&key), "\n"));
        c.login = (struct login){ user, str_text(&key) };
        return userdata_fit(&c, &spec, format, c.provider.kind, out, err);
}

/* The login key pair, and the machines' host keys. Host keys are created before the machines boot,
 * so the first connection is checked like any later one. */
#include <dirent.h>
#include <sys/stat.h>

#include "provider/local/local.h"
#include "provider/login.h"

char *ssh_key_path(const struct local *l) { return path_join(l->state, "ssh/id_ed25519"); }
char *known_hosts_path(const struct local *l) { return path_join(l->state, "known_hosts"); }

int ssh_key_make(const struct local *l, struct error *err) { return login_key_make(l->state, err); }

int host_key_make(const char *dir, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, "host_key");
        return key_pair_make(path, "machine", err);
}

void host_key_line(const char *dir, const char *address, struct str *out)
{
        char *path CLEANUP(free_p) = path_join(dir, "host_key.pub");
        struct str text CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        if (file_read(path, 4096, &text, &ignored) < 0)
                return;
        char *next = text.data, *type = strsep(&next, " "),
             *key = next ? strsep(&next, " \n") : NULL;
        if (key)
                str_addf(out, "%s %s %s\n", address, type, key);
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Written from the existing machines, so that the key of a removed one is removed too. */
int known_hosts_write(const struct local *l, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = known_hosts_path(l), **lines CLEANUP(free_p) = NULL;
        size_t n = 0;
        DIR *d = opendir(l->machines);
        for (struct dirent *e; d && (e = readdir(d));) {
                struct local_machine m CLEANUP(machine_release) = { 0 };
                struct error ignored CLEANUP(error_release) = { 0 };
                struct str line CLEANUP(str_release) = { 0 };
                char *dir CLEANUP(free_p) = path_join(l->machines, e->d_name);
                if (*e->d_name == '.' || machine_read(dir, &m, &ignored) <= 0)
                        continue;
                host_key_line(dir, m.address, &line);
                lines = xrealloc(lines, (n + 1) * sizeof(*lines));
                lines[n++] = str_take(&line);
        }
        if (d)
                closedir(d);
        if (n)
                qsort(lines, n, sizeof(*lines), by_text);
        for (size_t i = 0; i < n; i++) {
                str_add(&text, lines[i]);
                free(lines[i]);
        }
        return file_write(path, str_text(&text), text.len, 0644, 0, NULL, err);
}

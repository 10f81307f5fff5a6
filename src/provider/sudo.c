#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/file.h"
#include "provider/sudo.h"

#define VARIABLE     "SLIPWAY_SUDO_PASSWORD"
#define PASSWORD_MAX 1024

static char given[PASSWORD_MAX + 1]; /* from the terminal or the environment */
static bool have;

static void wipe_given(void) { wipe(given, sizeof(given)); }

static void sudo_keep(const char *text, size_t n)
{
        n = n < PASSWORD_MAX ? n : PASSWORD_MAX;
        if (!have)
                atexit(wipe_given);
        wipe_given();
        memcpy(given, text, n);
        have = true;
}

void sudo_password_take(void)
{
        char *text = getenv(VARIABLE);
        if (!text)
                return;
        if (*text)
                sudo_keep(text, strlen(text));
        wipe(text, strlen(text)); /* /proc would show it */
        unsetenv(VARIABLE);
}

/* ---- the terminal ---- */

static volatile sig_atomic_t interrupted;

static void sudo_on_signal(int signal) { interrupted = signal; }

/* An interrupted question must not leave the terminal without echo: the signal is raised again
 * after the terminal is restored. */
static ssize_t sudo_read_line(int fd, char *line, size_t max)
{
        static const char prompt[] = "sudo password on the nodes: ";
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
        struct sigaction action = { .sa_handler = sudo_on_signal }, old[ARRAY_SIZE(signals)];
        struct termios before, quiet;
        if (tcgetattr(fd, &before) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaction(signals[i], &action, &old[i]);
        quiet = before;
        quiet.c_lflag = (quiet.c_lflag & ~(tcflag_t)ECHO) | ICANON;
        (void)!write(fd, prompt, sizeof(prompt) - 1);
        tcsetattr(fd, TCSAFLUSH, &quiet);
        ssize_t n = read(fd, line, max);
        tcsetattr(fd, TCSAFLUSH, &before);
        (void)!write(fd, "\n", 1);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaction(signals[i], &old[i], NULL);
        if (interrupted)
                raise(interrupted);
        return n < 0 ? 0 : n;
}

int sudo_password_ask(struct error *err)
{
        char line[PASSWORD_MAX];
        int fd CLEANUP(close_p) = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
        ssize_t n = fd < 0 ? -1 : sudo_read_line(fd, line, sizeof(line));
        if (n < 0) {
                error_set(err, ENOTTY, EXIT_USAGE, "--ask-sudo-password: no terminal to ask at");
                return error_hint(
                        err, "set " VARIABLE ", or provider.ssh.sudoPasswordFile in cluster.yaml");
        }
        while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
                n--;
        if (n)
                sudo_keep(line, (size_t)n);
        wipe(line, sizeof(line));
        if (n)
                return 0;
        return error_set(err, ECANCELED, EXIT_USAGE, "--ask-sudo-password: no password was given");
}

/* ---- the file ---- */

static int sudo_from_file(const char *path, const char **out, struct error *err)
{
        static char kept[PASSWORD_MAX + 1];
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = file_read_secret(path, PASSWORD_MAX, &text, err);
        if (r < 0) {
                err->status = EXIT_CONFIG;
                return error_wrap(err, "provider.ssh.sudoPasswordFile");
        }
        size_t n = strcspn(str_text(&text), "\r\n");
        if (!n || str_text(&text)[n + strspn(str_text(&text) + n, "\r\n")])
                return error_set(err, EINVAL, EXIT_CONFIG, "provider.ssh.sudoPasswordFile: %s %s",
                        path, n ? "has more than one line" : "is empty");
        wipe(kept, sizeof(kept));
        memcpy(kept, text.data, n);
        *out = kept;
        return 0;
}

int sudo_password(struct arena *a, const struct cluster *c, const char **out, struct error *err)
{
        const struct provider_ssh *s = &c->provider.ssh;
        *out = NULL;
        if (have)
                *out = given;
        else if (s->sudo_password_file)
                return sudo_from_file(cluster_path(a, tree_get(s->src, "sudoPasswordFile"),
                                              s->sudo_password_file),
                        out, err);
        return 0;
}

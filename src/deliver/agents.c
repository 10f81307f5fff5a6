/* The agent for each architecture: that of the program is embedded, the other is a
 * file beside it. */
#include <elf.h>

#include "base/file.h"
#include "deliver/link/state.h"

#define AGENT_MAX ((size_t)8 << 20)

/* As in `uname -m`, in Go and Kubernetes, and in an ELF header. */
static const struct {
        const char *machine, *arch;
        uint16_t elf;
} kinds[] = { { "x86_64", "amd64", EM_X86_64 }, { "aarch64", "arm64", EM_AARCH64 } };

static struct link_agent agents[ARRAY_SIZE(kinds)];

/* Index of its kind; -1: not a program of a known kind. */
static int agent_kind(const void *bytes, size_t n)
{
        uint16_t machine = 0;
        if (n >= sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0) /* may be unaligned */
                memcpy(&machine, (const char *)bytes + offsetof(Elf64_Ehdr, e_machine),
                        sizeof(machine));
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (kinds[i].elf == machine)
                        return (int)i;
        return -1;
}

const struct link_agent *link_agent_own(void)
{
        static struct link_agent own;
        size_t n;
        const void *bytes = agent_bytes(&n);
        int kind = agent_kind(bytes, n);
        if (bytes != own.bytes)
                sha256_hex(bytes, n, own.hash);
        own.bytes = bytes;
        own.len = n;
        own.machine = kind < 0 ? NULL : kinds[kind].machine;
        return &own;
}

/* From SLIPWAY_AGENTS, beside the program, or in libexec of an installed one. */
static bool agent_read(size_t kind)
{
        static const char *const dirs[] = { "%s", "%s/../libexec/slipway" };
        const char *given = getenv("SLIPWAY_AGENTS");
        char here[4096];
        ssize_t n = given ? -1 : readlink("/proc/self/exe", here, sizeof(here) - 1);
        char *slash = n > 0 ? (here[n] = 0, strrchr(here, '/')) : NULL;
        if (slash)
                *slash = 0;
        for (size_t i = 0; (given && !i) || (slash && i < ARRAY_SIZE(dirs)); i++) {
                char *dir CLEANUP(free_p) = xasprintf(dirs[i], given ? given : here),
                          *path CLEANUP(free_p) =
                                  xasprintf("%s/agent-%s", dir, kinds[kind].machine);
                struct str text = { 0 };
                struct error ignored CLEANUP(error_release) = { 0 };
                if (file_read(path, AGENT_MAX, &text, &ignored) == 0 &&
                        agent_kind(text.data, text.len) == (int)kind) {
                        agents[kind] = (struct link_agent){
                                .machine = kinds[kind].machine, .bytes = text.data, .len = text.len
                        }; /* never freed */
                        sha256_hex(text.data, text.len, agents[kind].hash);
                        return true;
                }
                str_release(&text);
        }
        return false;
}

const struct link_agent *link_agent(const char *machine)
{
        const struct link_agent *own = link_agent_own();
        if (!own->machine || !machine || !*machine || streq(machine, own->machine))
                return own;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (streq(machine, kinds[i].machine))
                        return agents[i].bytes || agent_read(i) ? &agents[i] : NULL;
        return NULL;
}

const struct link_agent *link_agent_other(void)
{
        const char *own = link_agent_own()->machine;
        for (size_t i = 0; own && i < ARRAY_SIZE(kinds); i++)
                if (!streq(own, kinds[i].machine))
                        return link_agent(kinds[i].machine);
        return NULL;
}

const void *agent_for(const char *arch, size_t *n)
{
        const struct link_agent *a = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (streq(arch, kinds[i].arch))
                        a = link_agent(kinds[i].machine);
        *n = a ? a->len : 0;
        return a ? a->bytes : NULL;
}

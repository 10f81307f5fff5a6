/* The agent that is embedded in the program. */
#include "base/embed.h"
#include "deliver/link/link.h"

extern struct embed agent_program;

const void *agent_bytes(size_t *n)
{
        *n = agent_program.files[0].size;
        return embed_text(&agent_program, &agent_program.files[0]);
}

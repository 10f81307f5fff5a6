#include "provider/provider.h"
#include "provider/local/local.h"
#include "provider/ssh.h"

const struct provider_ops *provider_for(const struct cluster *c)
{
        static const struct provider_ops *const table[] = {
                [PROVIDER_LOCAL] = &local_ops, [PROVIDER_SSH] = &ssh_ops, [PROVIDER_AWS] = NULL
        };
        return table[c->provider.kind];
}

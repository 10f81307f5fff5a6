#include "cluster/site/peer.h"

char *etcd_peer_url(const struct node *n)
{
        char host[IP_TEXT + 2];
        return xasprintf("https://%s:2380", ip_host(&n->ip[0], host));
}

const struct etcd_peer *etcd_peer_of(
        const struct etcd_peer *peers, size_t n, const struct node *node)
{
        char *url CLEANUP(free_p) = etcd_peer_url(node);
        for (size_t i = 0; i < n; i++)
                if (streq(peers[i].name, node->name))
                        return &peers[i];
        for (size_t i = 0; i < n; i++)
                if (!*peers[i].name && streq(peers[i].peer, url))
                        return &peers[i];
        return NULL;
}

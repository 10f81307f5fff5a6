#include "provider/address.h"

static int ip_order(const struct ip *a, const struct ip *b)
{
        return a->family != b->family ? (a->family < b->family ? -1 : 1) : memcmp(a->b, b->b, 16);
}

/* Where the address is in the list, or would be. */
static size_t address_place(const struct address_pool *p, const struct ip *ip)
{
        size_t from = 0, to = p->taken_count;
        while (from < to) {
                size_t middle = from + (to - from) / 2;
                if (ip_order(&p->taken[middle], ip) < 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

static bool address_is_taken(const struct address_pool *p, const struct ip *ip)
{
        size_t i = address_place(p, ip);
        return i < p->taken_count && ip_equal(&p->taken[i], ip);
}

void address_taken(struct address_pool *p, const struct ip *ip)
{
        size_t at = address_place(p, ip);
        if (at < p->taken_count && ip_equal(&p->taken[at], ip))
                return;
        if (p->taken_count == p->taken_cap) {
                size_t cap = p->taken_cap ? p->taken_cap * 2 : 64;
                struct ip *all = arena_array(p->arena, struct ip, cap);
                if (p->taken_count)
                        memcpy(all, p->taken, p->taken_count * sizeof(*all));
                p->taken = all;
                p->taken_cap = cap;
        }
        memmove(p->taken + at + 1, p->taken + at, (p->taken_count - at) * sizeof(*p->taken));
        p->taken[at] = *ip;
        p->taken_count++;
}

bool address_take(struct address_pool *p, struct ip *out)
{
        unsigned bits = cidr_host_bits(&p->net);
        uint64_t size = (uint64_t)1 << (bits > 32 ? 32 : bits);
        for (uint64_t i = p->next > ADDRESS_FIRST ? p->next : ADDRESS_FIRST; i + 1 < size; i++) {
                struct ip ip;
                if (!cidr_nth(&p->net, i, &ip) || (p->to.family && ip_order(&ip, &p->to) > 0))
                        return false;
                if ((p->from.family && ip_order(&ip, &p->from) < 0) || address_is_taken(p, &ip))
                        continue;
                p->next = i + 1;
                address_taken(p, &ip);
                *out = ip;
                return true;
        }
        return false;
}

void node_set_address(struct cluster *c, struct node *n, const struct ip *ip)
{
        char text[IP_TEXT];
        ip_format(ip, text);
        n->ip[0] = *ip;
        if (!n->address || !streq(n->address, text))
                n->address = arena_strdup(c->arena, text);
}

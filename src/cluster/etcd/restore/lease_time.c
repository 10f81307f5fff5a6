/* The time up to which a store has data. etcd's entries have no time, but the control plane renews
 * its Leases every two seconds, and a Lease contains its time. */
#include "cluster/etcd/restore/restore.h"

struct bytes {
        const unsigned char *p;
        size_t n;
};

/* ---- a minimal protobuf reader ---- */

static bool varint(struct bytes *b, uint64_t *out)
{
        *out = 0;
        for (unsigned shift = 0; b->n && shift < 64; shift += 7) {
                unsigned char c = *b->p++;
                b->n--;
                *out |= (uint64_t)(c & 0x7f) << shift;
                if (!(c & 0x80))
                        return true;
        }
        return false;
}

/* The first field with that number: its bytes or its value. Returns false if it is
 * missing or truncated. */
static bool field(struct bytes in, uint64_t wanted, struct bytes *out, uint64_t *number)
{
        uint64_t tag, value;
        while (in.n && varint(&in, &tag)) {
                unsigned wire = tag & 7;
                struct bytes body = in;
                value = wire == 1 ? 8 : 4;
                if (wire == 0 || wire == 2 ? !varint(&in, &value) : wire != 1 && wire != 5)
                        return false;
                if (wire != 0) {
                        if (value > in.n)
                                return false;
                        body = (struct bytes){ in.p, (size_t)value };
                        in = (struct bytes){ in.p + value, in.n - (size_t)value };
                }
                if (tag >> 3 == wanted) {
                        *out = body;
                        *number = value;
                        return true;
                }
        }
        return false;
}

/* ---- Leases ---- */

/* runtime.Unknown.raw (2) → Lease.spec (2) → renewTime (4) → seconds (1) */
static int64_t renewed(struct bytes value)
{
        static const uint64_t way[] = { 2, 2, 4, 1 };
        uint64_t number = 0;
        for (size_t i = 0; i < ARRAY_SIZE(way); i++)
                if (!field(value, way[i], &value, &number))
                        return 0;
        return number < (uint64_t)1 << 40 ? (int64_t)number : 0;
}

static int digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int64_t lease_newest(const char *hex)
{
        static const unsigned char magic[] = { 'k', '8', 's', 0 };
        size_t n = 0;
        int64_t newest = 0;
        unsigned char *data = xmalloc(strlen(hex) / 2 + 1);
        for (; digit(hex[0]) >= 0 && digit(hex[1]) >= 0; hex += 2)
                data[n++] = (unsigned char)(digit(hex[0]) << 4 | digit(hex[1]));
        for (unsigned char *at = n ? memmem(data, n, magic, sizeof(magic)) : NULL, *next; at;
                at = next) {
                unsigned char *from = at + sizeof(magic), *end = data + n;
                next = memmem(from, (size_t)(end - from), magic, sizeof(magic));
                int64_t t = renewed((struct bytes){ from, (size_t)((next ? next : end) - from) });
                newest = t > newest ? t : newest;
        }
        free(data);
        return newest;
}

#include "base/tar_header.h"

/* Where the fields are. */
enum { NAME = 0, MODE = 100, SIZE = 124, SUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };
enum { NAME_LEN = 100, NUMBER_LEN = 8, SIZE_LEN = 12, PREFIX_LEN = 155 };

static bool tar_octal(const uint8_t *p, size_t n, uint64_t *out)
{
        size_t i = 0;
        *out = 0;
        while (i < n && p[i] == ' ')
                i++;
        for (; i < n && p[i] && p[i] != ' '; i++) {
                if (p[i] < '0' || p[i] > '7' || *out >> 60)
                        return false;
                *out = *out << 3 | (uint64_t)(p[i] - '0');
        }
        return true;
}

static bool tar_sum_right(const uint8_t *h)
{
        uint64_t want, sum = 0;
        for (size_t i = 0; i < TAR_BLOCK; i++)
                sum += i >= SUM && i < SUM + NUMBER_LEN ? ' ' : h[i];
        return tar_octal(h + SUM, NUMBER_LEN, &want) && want == sum;
}

static void tar_name(const uint8_t *h, char *out, size_t size)
{
        char full[PREFIX_LEN + 1 + NAME_LEN + 1];
        bool prefix = memcmp(h + MAGIC, "ustar", 6) == 0 && h[PREFIX]; /* GNU's has a blank there */
        snprintf(full, sizeof(full), "%.*s%s%.*s", prefix ? PREFIX_LEN : 0,
                (const char *)h + PREFIX, prefix ? "/" : "", NAME_LEN, (const char *)h + NAME);
        const char *p = full;
        while (has_prefix(p, "./"))
                p += 2;
        snprintf(out, size, "%s", p);
}

bool tar_header_read(const uint8_t h[TAR_BLOCK], struct tar_header *out)
{
        uint64_t mode;
        bool large = h[SIZE] & 0x80;
        if (!tar_sum_right(h) || (!large && !tar_octal(h + SIZE, SIZE_LEN, &out->size)))
                return false;
        if (large)
                out->size = UINT64_MAX;
        out->mode = tar_octal(h + MODE, NUMBER_LEN, &mode) ? (unsigned)mode : 0;
        out->type = (char)(h[TYPE] ? h[TYPE] : '0');
        tar_name(h, out->name, sizeof(out->name));
        return true;
}

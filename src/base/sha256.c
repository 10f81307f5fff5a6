/* Our own, because the agent is linked with musl and the packaged static libraries do not serve
 * there: nettle's is built for glibc (it wants
 * __fprintf_chk) and libmd's reads a tenth of what the processor's own instructions do. Tested with
 * the NIST vectors, both ways. */
#include "base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t K[64] __attribute__((aligned(16))) = {
        0x428a2f98,
        0x71374491,
        0xb5c0fbcf,
        0xe9b5dba5,
        0x3956c25b,
        0x59f111f1,
        0x923f82a4,
        0xab1c5ed5,
        0xd807aa98,
        0x12835b01,
        0x243185be,
        0x550c7dc3,
        0x72be5d74,
        0x80deb1fe,
        0x9bdc06a7,
        0xc19bf174,
        0xe49b69c1,
        0xefbe4786,
        0x0fc19dc6,
        0x240ca1cc,
        0x2de92c6f,
        0x4a7484aa,
        0x5cb0a9dc,
        0x76f988da,
        0x983e5152,
        0xa831c66d,
        0xb00327c8,
        0xbf597fc7,
        0xc6e00bf3,
        0xd5a79147,
        0x06ca6351,
        0x14292967,
        0x27b70a85,
        0x2e1b2138,
        0x4d2c6dfc,
        0x53380d13,
        0x650a7354,
        0x766a0abb,
        0x81c2c92e,
        0x92722c85,
        0xa2bfe8a1,
        0xa81a664b,
        0xc24b8b70,
        0xc76c51a3,
        0xd192e819,
        0xd6990624,
        0xf40e3585,
        0x106aa070,
        0x19a4c116,
        0x1e376c08,
        0x2748774c,
        0x34b0bcb5,
        0x391c0cb3,
        0x4ed8aa4a,
        0x5b9cca4f,
        0x682e6ff3,
        0x748f82ee,
        0x78a5636f,
        0x84c87814,
        0x8cc70208,
        0x90befffa,
        0xa4506ceb,
        0xbef9a3f7,
        0xc67178f2,
};

static inline uint32_t ror(uint32_t v, int n) { return v >> n | v << (32 - n); }
static inline uint32_t be32(const uint8_t *p)
{
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* One round; the caller turns the names instead of moving the values. */
#define ROUND(a, b, c, d, e, f, g, h, i) \
        do { \
                uint32_t t = (h) + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + \
                             ((g) ^ ((e) & ((f) ^ (g)))) + K[i] + w[(i)&15]; \
                (d) += t; \
                (h) = t + (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + \
                      (((a) & (b)) | ((c) & ((a) | (b)))); \
        } while (0)

static void schedule(uint32_t w[16])
{
        for (int i = 0; i < 16; i++) {
                uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
                w[i] += (ror(x, 7) ^ ror(x, 18) ^ x >> 3) + w[(i + 9) & 15] +
                        (ror(y, 17) ^ ror(y, 19) ^ y >> 10);
        }
}

static void blocks_plain(uint32_t h[8], const uint8_t *p, size_t n)
{
        for (; n; n--, p += 64) {
                uint32_t w[16], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5],
                                g = h[6], k = h[7];
                for (int i = 0; i < 16; i++)
                        w[i] = be32(p + 4 * i);
                for (int i = 0; i < 64; i += 8) {
                        if (i && !(i & 15))
                                schedule(w);
                        ROUND(a, b, c, d, e, f, g, k, i);
                        ROUND(k, a, b, c, d, e, f, g, i + 1);
                        ROUND(g, k, a, b, c, d, e, f, i + 2);
                        ROUND(f, g, k, a, b, c, d, e, i + 3);
                        ROUND(e, f, g, k, a, b, c, d, i + 4);
                        ROUND(d, e, f, g, k, a, b, c, i + 5);
                        ROUND(c, d, e, f, g, k, a, b, i + 6);
                        ROUND(b, c, d, e, f, g, k, a, i + 7);
                }
                h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g,
                        h[7] += k;
        }
}

#if defined(__x86_64__)
/* The processor's own instructions keep the state as (a b e f) and (c d g h), the
 * highest lane first. */
__attribute__((target("sha,sse4.1"))) static void blocks_ni(
        uint32_t h[8], const uint8_t *p, size_t n)
{
        const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
        __m128i abef = _mm_set_epi32((int)h[0], (int)h[1], (int)h[4], (int)h[5]),
                cdgh = _mm_set_epi32((int)h[2], (int)h[3], (int)h[6], (int)h[7]);
        for (; n; n--, p += 64) {
                __m128i w[4], abef0 = abef, cdgh0 = cdgh;
                for (int i = 0; i < 4; i++)
                        w[i] = _mm_shuffle_epi8(
                                _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
#pragma GCC unroll 16
                for (int i = 0; i < 16; i++) {
                        __m128i *now = &w[i & 3], last = w[(i + 3) & 3];
                        if (i >= 4)
                                *now = _mm_sha256msg2_epu32(
                                        _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]),
                                                _mm_alignr_epi8(last, w[(i + 2) & 3], 4)),
                                        last);
                        __m128i k = _mm_add_epi32(
                                *now, _mm_load_si128((const __m128i *)(const void *)(K + 4 * i)));
                        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
                        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
                }
                abef = _mm_add_epi32(abef, abef0);
                cdgh = _mm_add_epi32(cdgh, cdgh0);
        }
        uint32_t x[4], y[4];
        _mm_storeu_si128((__m128i *)(void *)x, abef);
        _mm_storeu_si128((__m128i *)(void *)y, cdgh);
        memcpy(h, (uint32_t[8]){ x[3], x[2], y[3], y[2], x[1], x[0], y[1], y[0] }, 32);
}

static bool has_sha(void)
{
        unsigned a, b, c, d;
        bool sse41 = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1 && c & bit_SSSE3;
        return sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}
#endif

static void blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
        static int sha = -1; /* the same answer whoever asks first */
        /* for the tests of the other way */
        if (sha < 0)
                sha = has_sha() && !getenv("SLIPWAY_SHA256_PLAIN");
        if (sha) {
                blocks_ni(h, p, n);
                return;
        }
#endif
        blocks_plain(h, p, n);
}

void sha256_init(struct sha256 *s)
{
        *s = (struct sha256){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                      0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *s, const void *data, size_t n)
{
        const uint8_t *p = data;
        size_t have = s->len % 64;
        s->len += n;
        if (have) {
                size_t take = n < 64 - have ? n : 64 - have;
                memcpy(s->block + have, p, take);
                p += take;
                n -= take;
                if (have + take < 64)
                        return;
                blocks(s->h, s->block, 1);
        }
        if (n >= 64)
                blocks(s->h, p, n / 64);
        if (n % 64)
                memcpy(s->block, p + n / 64 * 64, n % 64);
}

void sha256_end(struct sha256 *s, char out[SHA256_HEX])
{
        uint64_t bits = s->len * 8;
        uint8_t pad[72] = { 0x80 };
        size_t n = (s->len % 64 < 56 ? 56 : 120) - s->len % 64;
        for (int i = 0; i < 8; i++)
                pad[n + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
        sha256_add(s, pad, n + 8);
        for (int i = 0; i < 8; i++)
                snprintf(out + 8 * i, 9, "%08" PRIx32, s->h[i]);
        wipe(s, sizeof(*s));
}

void sha256_hex(const void *data, size_t n, char out[SHA256_HEX])
{
        struct sha256 s;
        sha256_init(&s);
        sha256_add(&s, data, n);
        sha256_end(&s, out);
}

int sha256_fd(int fd, char out[SHA256_HEX])
{
        struct sha256 s;
        static const size_t size = 128 << 10;
        char *buf CLEANUP(free_p) = xmalloc(size);
        ssize_t n;
        sha256_init(&s);
        while ((n = read(fd, buf, size)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                sha256_add(&s, buf, (size_t)n);
        }
        wipe(buf, size);
        sha256_end(&s, out);
        return 0;
}

bool sha256_valid(const char *text)
{
        return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

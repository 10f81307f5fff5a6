#include <zlib.h>

#include "deliver/encode.h"

void gzip_add(struct str *out, const void *data, size_t n)
{
        z_stream z = { 0 };
        gz_header head = { .os = 255 };
        if (n > STR_MAX || deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9,
                                   Z_DEFAULT_STRATEGY) != Z_OK)
                abort();
        deflateSetHeader(&z, &head);
        uLong bound = deflateBound(&z, (uLong)n);
        str_reserve(out, bound);
        z.next_in = (Bytef *)(uintptr_t)data;
        z.avail_in = (uInt)n;
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)bound;
        if (deflate(&z, Z_FINISH) != Z_STREAM_END)
                abort();
        out->len += z.total_out;
        out->data[out->len] = 0;
        deflateEnd(&z);
}

/* Characters that RFC 3986 allows in the path of a URL, without those that JSON may escape. */
static bool url_plain(unsigned char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr("-_.~!$()*,;=:@/", c));
}

void data_url_add(struct str *out, const void *data, size_t n)
{
        const unsigned char *p = data;
        if (!plain_text(data, n)) {
                str_add(out, "data:;base64,");
                str_add_base64(out, data, n);
                return;
        }
        str_add(out, "data:,");
        for (size_t i = 0; i < n; i++)
                if (url_plain(p[i]))
                        str_addc(out, (char)p[i]);
                else
                        str_addf(out, "%%%02X", p[i]);
}

bool plain_text(const char *data, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if ((data[i] < ' ' && data[i] != '\n' && data[i] != '\t') || data[i] > '~')
                        return false;
        return true;
}

bool word_in(const char *list, const char *word)
{
        size_t n = strlen(word);
        for (const char *p = list; p && (p = strstr(p, word)); p += n)
                if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
                        return true;
        return false;
}

const char *unit_path(const struct spec_entry *e)
{
        static const char prefix[] = "/etc/systemd/system/";
        return e->kind == SPEC_FILE && has_prefix(e->path, prefix) ? e->path + sizeof(prefix) - 1
                                                                   : NULL;
}

void userdata_assert(const struct nodespec *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->entries[i].class != CLASS_IMMUTABLE)
                        abort();
}

bool url_has_credentials(const char *url)
{
        const char *host = strstr(url, "://");
        host = host ? host + 3 : url;
        return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

/* Build tool: packs files into one C file, so that the program carries them (base/embed.h). Usage:
 * pack OUT.c NAME FILE… NAME is the struct embed that stands for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static unsigned char *text;
static size_t len;

/* Appends a file and the NUL that ends it. */
static int pack_append(const char *path)
{
        FILE *in = fopen(path, "rb");
        size_t n = 1;
        while (in && n) {
                unsigned char *more = realloc(text, len + (1 << 16));
                if (!more)
                        break;
                text = more;
                n = fread(text + len, 1, (1 << 16) - 1, in);
                len += n;
        }
        if (!in || n || ferror(in) || fclose(in)) {
                perror(path);
                return -1;
        }
        text[len++] = '\0';
        return 0;
}

static int write_packed(FILE *out)
{
        uLongf size = compressBound(len);
        unsigned char *packed = malloc(size);
        if (!packed || compress2(packed, &size, text, len, Z_BEST_COMPRESSION) != Z_OK)
                return -1;
        fputs("static const unsigned char packed[] = {", out);
        for (size_t i = 0; i < size; i++)
                fprintf(out, "%s%d,", i % 32 ? "" : "\n", packed[i]);
        fputs("\n};\n\n", out);
        free(packed);
        return 0;
}

int main(int argc, char **argv)
{
        FILE *out = argc > 3 ? fopen(argv[1], "w") : NULL;
        if (!out)
                return 1;
        fputs("#include \"base/embed.h\"\n\nstatic const struct embed_file files[] = {\n", out);
        for (int i = 3; i < argc; i++) {
                const char *slash = strrchr(argv[i], '/');
                size_t at = len;
                if (pack_append(argv[i]) < 0)
                        return 1;
                fprintf(out, "{ \"%s\", %zu, %zu },\n", slash ? slash + 1 : argv[i], at,
                        len - at - 1);
        }
        fputs("};\n\n", out);
        if (write_packed(out) < 0)
                return 1;
        fprintf(out,
                "extern struct embed %s;\nstruct embed %s = { packed, sizeof(packed), %zu, files, %d, NULL };\n",
                argv[2], argv[2], len, argc - 3);
        free(text);
        return fclose(out) ? 1 : 0;
}

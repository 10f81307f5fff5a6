/* Build tool: turns the templates into one C file, so that the program carries them. Usage: embed OUT.c TEMPLATE… */
#include <stdio.h>
#include <string.h>

static void write_text(FILE *in, FILE *out)
{
        int c;
        fputs("\"", out);
        while ((c = fgetc(in)) != EOF) {
                if (c == '\n')
                        fputs("\\n\"\n\"", out);
                else if (c == '"' || c == '\\')
                        fprintf(out, "\\%c", c);
                else if (c < 0x20 || c > 0x7e)
                        fprintf(out, "\\%03o", (unsigned)c);
                else
                        fputc(c, out);
        }
        fputs("\"", out);
}

int main(int argc, char **argv)
{
        FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
        if (!out)
                return 1;
        fputs("#include \"node/embed.h\"\n\nstruct template_file template_files[] = {\n", out);
        for (int i = 2; i < argc; i++) {
                FILE *in = fopen(argv[i], "r");
                const char *slash = strrchr(argv[i], '/');
                if (!in) {
                        perror(argv[i]);
                        return 1;
                }
                fprintf(out, "{ \"%s\", ", slash ? slash + 1 : argv[i]);
                write_text(in, out);
                fputs(", 0 },\n", out);
                fclose(in);
        }
        fprintf(out, "};\nconst unsigned long template_file_count = %d;\n", argc - 2);
        return fclose(out) ? 1 : 0;
}

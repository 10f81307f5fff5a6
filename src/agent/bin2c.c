/* Build tool: turns the agent into a C file, so that the program carries it. Usage: bin2c OUT.c AGENT */
#include <stdio.h>

int main(int argc, char **argv)
{
        FILE *in = argc == 3 ? fopen(argv[2], "rb") : NULL, *out = in ? fopen(argv[1], "w") : NULL;
        int c;
        unsigned n = 0;
        if (!out)
                return 1;
        fputs("#include \"deliver/link.h\"\n\nstatic const unsigned char agent[] = {", out);
        while ((c = fgetc(in)) != EOF)
                fprintf(out, "%s%d,", n++ % 32 ? "" : "\n", c);
        fputs("\n};\n\nconst void *agent_bytes(size_t *size)\n{\n        *size = sizeof(agent);\n        return agent;\n}\n", out);
        fclose(in);
        return fclose(out) ? 1 : 0;
}

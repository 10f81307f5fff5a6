/* The templates as embed.c wrote them into the program. */
#ifndef SLIPWAY_EMBED_H
#define SLIPWAY_EMBED_H

struct template_part;

struct template_file {
        const char *name, *text;
        struct template_part *parts; /* parsed on first use */
};

extern struct template_file template_files[];
extern const unsigned long template_file_count;

#endif

/* The one table of what cluster.yaml can say. Parser, defaults, ranges, help, JSON Schema, CRD and
 * docs/config.md come from it. */
#ifndef SLIPWAY_SCHEMA_H
#define SLIPWAY_SCHEMA_H

#include "config/cluster.h"
#include "config/problem.h"

enum field_type {
        T_STRING,   /* const char *; one of `names` where they are given */
        T_BOOL,     /* bool */
        T_INT,      /* long, min..max */
        T_DURATION, /* int64_t seconds: 90s, 5m, 24h, 365d, 1h30m; min..max in seconds */
        T_MILLIS,   /* int64_t milliseconds: 100ms, 1s */
        T_SIZE,     /* int64_t bytes: 20GiB, 512Mi, 10G */
        T_ENUM,     /* int, index into names */
        T_AMOUNT,   /* struct amount: 2 or 20% */
        T_VERSION,  /* struct version */
        T_NAME,     /* const char *: RFC 1123 label */
        T_HOST,     /* const char *: a DNS name or an address */
        T_HOSTPORT, /* const char *: host or host:port, [v6]:port */
        T_ADDRESS,  /* const char *: an IP address, kept as canonical text */
        T_CIDR,     /* struct cidr */
        T_CIDRS,    /* struct cidrs: one, a list, or "a,b" */
        T_IPS,      /* struct ips: one or a list */
        T_URL,      /* const char *: http or https */
        /* const char *: a path on this computer; ~ and relative to the file are resolved at use */
        T_PATH,
        T_ABSPATH, /* const char *: an absolute path on the node */
        T_TEXT,    /* const char *: may have several lines */
        /* struct pairs: string values (plain numbers and booleans are refused unless F_LOOSE) */
        T_PAIRS,
        T_LABELS, /* struct pairs: Kubernetes label rules */
        T_GATES,  /* struct pairs: boolean values */
        /* struct strings; `item` is the type of each (T_STRING if 0), `names` if items are an enum;
         * a scalar is a list of one */
        T_STRINGS,
        T_NUMBERS, /* struct numbers: each min..max; a number is a list of one */
        T_ROLES,   /* unsigned: bits by index into names */
        T_TAINTS,  /* struct taints: "key=value:Effect" or {key, value, effect} */
        T_ANY,     /* const struct tree *: kept as it is */
        T_STRUCT,  /* the struct itself, by sub */
        T_STRUCTS, /* { size_t n; void *v }, elements by sub */
};

enum field_flags {
        F_REQUIRED = 1,
        F_LOOSE = 2,   /* T_PAIRS: numbers and booleans are taken as their text */
        F_ONE_OF = 4,  /* exactly at most one field of this struct may be written (provider) */
        F_KEY = 8,     /* T_STRUCTS: elements must differ in this string field */
        F_SECRET = 16, /* never printed */
        F_EMPTY = 32,  /* T_STRING: may be empty */
};

/* Help texts are long, and rarely asked for: the program carries them packed (base/embed.h). The
 * build tool help_pack.c is schema.c compiled with SCHEMA_HELP, and writes them to the file that is
 * packed. Everywhere else a row only says that it has a text. */
#ifdef SCHEMA_HELP
#define HELP_MEMBER const char *help
#else
#define HELP_MEMBER bool help : 1
#endif

struct schema;

struct field {
        const char *name; /* camelCase */
        enum field_type type : 8;
        unsigned flags : 8;
        uint16_t offset;
        enum field_type item : 8;
        HELP_MEMBER; /* a sentence for docs and schema: HELP("…") writes it, schema_help reads it */
        const struct schema *sub;
        const char *const *names; /* enum values, NULL-terminated */
        /* default as it would be written, not range-checked; NULL: none. A YAML flow
         * value for lists */
        const char *def;
        int64_t min, max;    /* both 0: no range */
        const char *example; /* as it would be written, or NULL */
        /* nothing acts on it yet: it is refused, with this hint of what works now, and not decoded.
         * NULL: it acts */
        const char *later;
};

struct schema {
        const char *name; /* for docs anchors: "pool" */
        HELP_MEMBER;
        const struct field *fields;
        size_t count;
        size_t size;           /* sizeof the C struct */
        const char *shorthand; /* a scalar instead of a map sets this field */
};

extern const struct schema cluster_schema; /* of spec */

/* The help text of a field, or of the struct itself (f: NULL). */
const char *schema_help(const struct schema *s, const struct field *f);

/* What is gone, and what to use instead: a field or enum value that is refused with
 * more than "unknown". */
struct gone {
        const char *where; /* schema name */
        const char *word;  /* field name, or "field=value" */
        const char *why, *instead;
};
extern const struct gone gone_table[];
extern const size_t gone_count;

/* Whether the option at this path ("pools.flavor") is refused, for rules that would ask for it. */
bool schema_refused(const char *path);

/* Fills the struct at `out` from the tree (NULL: all defaults), reporting every problem. */
void schema_decode(const struct schema *s, const struct tree *t, void *out, struct arena *a,
        struct problems *p);

void schema_json(struct str *out); /* JSON Schema 2020-12 of the whole object */
void schema_crd(struct str *out);  /* CustomResourceDefinition YAML */
void schema_docs(struct str *out); /* docs/config.md */

/* cross-field rules; called by cluster_load after decoding */
void cluster_rules(struct cluster *c, struct problems *p);
/* pools → nodes; called by cluster_load before the rules */
void cluster_expand(struct cluster *c, struct problems *p);

#endif

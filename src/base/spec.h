/* The kinds of entries in a NodeSpec. In this room because the agent uses them too, and includes
 * no other room. */
#ifndef SLIPWAY_SPEC_H
#define SLIPWAY_SPEC_H

#include <stdbool.h>

enum spec_class {
        CLASS_IMMUTABLE, /* belongs to the host permanently: may be in user-data */
        CLASS_MUTABLE,   /* has a version, an address or a peer in it: only over SSH */
        CLASS_SECRET,    /* only over SSH, never printed */
};

enum spec_kind {
        SPEC_DIR,  /* path, mode */
        SPEC_FILE, /* path, mode, content */
        SPEC_LINK, /* path, target */
        /* name, enable, start; its file is a SPEC_FILE of its own (or comes with a package) */
        SPEC_UNIT,
        SPEC_ARTIFACT, /* name, version, path (a directory for a set), mode */
        SPEC_IMAGE,    /* name: loaded into the runtime */
        SPEC_SYSCTL,   /* name, target = value; the file that keeps it is an entry too */
        SPEC_MODULE,   /* name; likewise */
        SPEC_MOUNT,    /* path, name = device, target = filesystem; its units are entries too */
        SPEC_PACKAGE,  /* name, as the node's own package manager knows it */
        SPEC_USER,     /* name, target = home: a system user with a group of the same name */
        SPEC_BLOCK,    /* path, content: lines of ours in a file that others write too */
        /* name, content = words, each with a NUL after it, target = seconds: run once */
        SPEC_COMMAND,
        SPEC_KIND_COUNT
};

enum spec_flags {
        /* written only where nothing is: the node's own program takes it
         * over (rotated certificates) */
        SPEC_ONCE = 1,
        SPEC_ENABLE = 2,  /* unit: at boot */
        SPEC_START = 4,   /* unit: now */
        SPEC_DISABLE = 8, /* unit: stopped and masked (a package's own that would get in the way) */
        SPEC_RELOAD = 16, /* unit: reload instead of restart when what it reads changed */
        /* with ONCE: what is there is of no use any more, so it is written all the same. No part of
         * the spec's digest: it is said once */
        SPEC_AGAIN = 64,
        /* artifact: a set of programs; its path is a directory and its blob a tar whose members
         * land in it */
        SPEC_SET = 32,
};

/* Whether what is there stays as it is. */
static inline bool spec_keeps(unsigned flags)
{
        return (flags & (SPEC_ONCE | SPEC_AGAIN)) == SPEC_ONCE;
}

#endif

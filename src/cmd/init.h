/* Shared by the files of `init`. */
#ifndef SLIPWAY_CMD_INIT_H
#define SLIPWAY_CMD_INIT_H

#include "cmd/cmd.h"
#include "config/kubespray/kubespray.h"

/* The path of the file: -f, or cluster.yaml; "-" is standard output. Refuses an existing
 * file without --force. */
int init_path(const struct options *o, const char **path, struct error *err);
int init_write(const char *path, const struct str *text, struct error *err);
/* Reports what was done as text or (-o json) as an object. `notes` may be NULL; `before` is what to
 * do before `slipway check`, or "". */
void init_report(
        const struct options *o, const char *path, const struct notes *notes, const char *before);

int init_from_kubespray(const struct options *o, struct error *err); /* kubespray.c */

#endif

/* The nodes for other programs that log in to them: an OpenSSH configuration, or an Ansible
 * inventory with Kubespray's groups and one group per pool. Uses only the file and the record. */
#ifndef SLIPWAY_SITE_INVENTORY_H
#define SLIPWAY_SITE_INVENTORY_H

#include <jansson.h>

struct site;
struct str;

void site_inventory_ssh(const struct site *s, struct str *out);
json_t *site_inventory(const struct site *s); /* in the format of a dynamic inventory */
/* The same as a file that Ansible reads. */
void site_inventory_yaml(const struct site *s, json_t *inventory, struct str *out);

#endif

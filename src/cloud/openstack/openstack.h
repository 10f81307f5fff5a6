/* A session with an OpenStack cloud: a token that is renewed in time, the catalogue's addresses,
 * and the versions of the APIs. */
#ifndef SLIPWAY_CLOUD_OPENSTACK_H
#define SLIPWAY_CLOUD_OPENSTACK_H

#include "cloud/cloud.h"

struct os_session;

struct openstack_options {
        const char *cloud;  /* of clouds.yaml; NULL: see os_cloud_load */
        const char *region; /* NULL: the cloud's */
};

/* Reads files and environment, and asks nobody yet. */
int os_open(struct cloud *c, const struct openstack_options *o, struct os_session **out,
        struct error *err);
void os_free(struct os_session *s); /* its calls end with it, without callbacks; NULL is fine */
struct session *os_session(struct os_session *s);
void os_hide(struct os_session *s, const char *secret); /* no message has it; NULL is fine */
/* From the token: NULL before the first call, or without a project. Never from the file: a name
 * there may be another project's. */
const char *os_project(const struct os_session *s);
const char *os_user(const struct os_session *s);
/* The catalogue has the service; after the first call. */
bool os_has(const struct os_session *s, const char *service);
const json_t *os_roles(const struct os_session *s); /* of the token: [{"name"}] */
/* What clouds.yaml and the environment say, and keystone's address with its version. */
struct os_cloud;
const struct os_cloud *os_entry(const struct os_session *s);
const char *os_auth_address(const struct os_session *s);
const char *os_compute_version(const struct os_session *s); /* "2.64" or "2.53"; NULL: lists only */

#endif

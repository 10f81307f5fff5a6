/* clouds.yaml with secure.yaml and clouds-public.yaml, and OS_* of the environment, by the rules of
 * openstacksdk. */
#ifndef SLIPWAY_CLOUD_CLOUDS_H
#define SLIPWAY_CLOUD_CLOUDS_H

#include "base/tree.h"

enum os_auth { OS_PASSWORD, OS_TOKEN, OS_APPLICATION_CREDENTIAL };

struct os_cloud {
        const char *name;
        enum os_auth auth;
        const char *auth_url;
        const char *username, *user_id, *password, *user_domain_id, *user_domain_name;
        const char *token;
        const char *credential_id, *credential_name, *credential_secret;
        const char *project_id, *project_name, *project_domain_id, *project_domain_name;
        const char *domain_id, *domain_name, *system_scope; /* scopes beside the project */
        const char *region;                                 /* NULL: whichever the catalogue has */
        const char *interface;                              /* public, internal, admin */
        const char *ca_file, *cert_file, *key_file;
        bool insecure;
        const struct tree *settings[3]; /* most important first: what has a name of its own is
                                           looked up in them */
        bool environment;               /* OS_* instead of a file */
};

/* `name` NULL: OS_CLOUD, the environment, or the only one there is. `region` NULL: the cloud's. */
int os_cloud_load(struct arena *a, const char *name, const char *region, struct os_cloud *out,
        struct error *err);
/* A setting at the top of the cloud ("compute_endpoint_override"), - and _ are the same. NULL. */
const char *os_setting(struct arena *a, const struct os_cloud *c, const char *name);

#endif

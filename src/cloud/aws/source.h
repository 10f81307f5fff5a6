/* Where AWS credentials come from: environment, profile, web identity, container, instance. Finding
 * the source asks nobody; keys.h fetches from it. */
#ifndef SLIPWAY_CLOUD_SOURCE_H
#define SLIPWAY_CLOUD_SOURCE_H

#include "cloud/aws/ini.h"

enum source_kind {
        SOURCE_NONE, /* calls are not signed */
        SOURCE_STATIC,
        SOURCE_PROCESS,
        SOURCE_ROLE, /* AssumeRole with the keys of `from` */
        SOURCE_WEB,  /* AssumeRoleWithWebIdentity */
        SOURCE_CONTAINER,
        SOURCE_INSTANCE, /* IMDSv2 */
};

struct source {
        enum source_kind kind;
        const char *origin; /* "profile ops in /home/x/.aws/config": for sentences */
        const char *id, *secret, *token;
        const char *command;
        const char *role, *session_name, *external_id, *duration;
        const char *token_file; /* web identity */
        const char *url, *authorization, *authorization_file;
        const struct source *from;
};

struct aws_files {
        struct arena arena;
        struct ini config, credentials;
        const char *profile;
        bool explicit; /* the profile was asked for, not found in the environment */
};

/* Reads both files. `profile` NULL: AWS_DEFAULT_PROFILE, AWS_PROFILE, default. */
int aws_files_load(struct aws_files *f, const char *profile, struct error *err);
void aws_files_release(struct aws_files *f);
/* An option of a profile; what credentials says wins. NULL. */
const char *aws_option(const struct aws_files *f, const char *profile, const char *option);
const char *aws_region(const struct aws_files *f);
/* The address that the user set for this service ("ec2"), or NULL. */
const char *aws_endpoint_option(struct aws_files *f, const char *service);
/* Lives as long as the files. */
int aws_source_find(struct aws_files *f, const struct source **out, struct error *err);

#endif

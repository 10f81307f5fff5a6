/* How slipway logs in to machines that it makes: its own key pair and known_hosts in the state
 * directory, and the user-data that creates the login. */
#ifndef SLIPWAY_PROVIDER_LOGIN_H
#define SLIPWAY_PROVIDER_LOGIN_H

#include "provider/provider.h"

/* Makes a key pair if there is none. */
int key_pair_make(const char *path, const char *comment, struct error *err);
/* STATE/ssh/id_ed25519. */
int login_key_make(const char *state, struct error *err);
/* A machine of a cloud, reached as `user`. Its host key is recorded at the first connection. */
void login_target(const struct provider_run *run, const struct node *n, const char *user,
        struct link_target *out);
/* Before a machine is made: whatever had its address before had another host key. */
int login_forget(const struct provider_run *run, const char *address, struct error *err);
/* When the cluster goes. */
int login_remove(const struct provider_run *run, struct error *err);

/* A node's user-data within the limit of its platform: immutable entries, and the login; a
 * bastion's is the login. The key must have been made. */
int provider_user_data(const struct provider_run *run, const struct node *n, enum user_data format,
        const char *user, struct str *out, struct error *err);

#endif

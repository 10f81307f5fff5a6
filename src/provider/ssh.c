/* Existing hosts: nothing to create, only how to reach them. The link finds out
 * whether one answers. */
#include <event2/event.h>

#include "provider/ssh.h"
#include "provider/sudo.h"

/* Settings of a host override those of the provider. */
static void ssh_host_target(
        const struct provider_run *run, const struct node *n, struct link_target *t)
{
        const struct provider_ssh *s = &run->cluster->provider.ssh;
        const char *user = n->host && n->host->user ? n->host->user : s->user;
        *t = (struct link_target){
                .name = n->name,
                .host = n->address,
                .user = user,
                .key = s->key ? cluster_path(run->arena, tree_get(s->src, "key"), s->key) : NULL,
                .bastion = s->bastion,
                .port = n->host && n->host->port ? n->host->port : s->port,
                .options = &s->options,
                .sudo = s->sudo && !streq(user, "root"),
                .accept_new = true,
        };
}

int ssh_host_find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err)
{
        *out = (struct machine){ .node = n, .state = MACHINE_RUNNING };
        ssh_host_target(run, n, &out->target);
        return out->target.sudo
                       ? sudo_password(run->arena, run->cluster, &out->target.sudo_password, err)
                       : 0;
}

static int ssh_host_list(struct provider_run *run, struct machine *out, struct error *err)
{
        const struct cluster *c = run->cluster;
        int r = 0;
        for (size_t i = 0; r == 0 && i < c->node_count; i++)
                r = ssh_host_find(run, &c->nodes[i], &out[i], err);
        return r;
}

/* Callers are told from the event loop, never from within the call. */
struct told {
        struct machine *m;
        void (*prepared)(struct error *err, void *arg);
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
};

static void ssh_host_tell(int fd, short what, void *arg)
{
        struct told t = *(struct told *)arg;
        free(arg);
        if (t.prepared)
                t.prepared(NULL, t.arg);
        else
                t.fn(t.m, NULL, t.arg);
}

static void ssh_host_tell_soon(struct provider_run *run, struct told t)
{
        struct told *copy = xmalloc(sizeof(*copy));
        *copy = t;
        event_base_once(run->base, -1, EV_TIMEOUT, ssh_host_tell, copy, &(struct timeval){ 0 });
}

void ssh_host_prepare(struct provider_run *run,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        ssh_host_tell_soon(run, (struct told){ .prepared = fn, .arg = arg });
}

/* Creating and deleting do nothing: the host is the user's. `reset` removes
 * what slipway installed. */
void ssh_host_nothing(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        ssh_host_tell_soon(run, (struct told){ .m = m, .fn = fn, .arg = arg });
}

int ssh_host_cleanup(struct provider_run *run, struct error *err) { return 0; }

const struct provider_ops ssh_ops = { .name = "ssh",
        .list = ssh_host_list,
        .find = ssh_host_find,
        .prepare = ssh_host_prepare,
        .create = ssh_host_nothing,
        .destroy = ssh_host_nothing,
        .cleanup = ssh_host_cleanup };

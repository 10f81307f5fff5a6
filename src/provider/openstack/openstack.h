/* Provider openstack: machines in an OpenStack cloud, found again by marks, without a state file.
 *
 * Everything it makes has the mark M = slipway-P (P: identity.prefix) from the call that creates
 * it: `description` in neutron, a tag in nova and octavia, metadata in cinder. Names: NAME-P for
 * what the cluster has once, a node's own name for its port and server. The port comes before its
 * server and keeps the address: it binds to one server, so a lost answer makes no twin, and a
 * machine that is made again has the same address.
 *
 *   list     look.c       what there is, in a few calls, and addresses for what there is not
 *            named.c      networks by their names
 *   survey   survey.c     what is missing, quotas, images, flavors; nothing is sent that changes
 *   prepare  image.c      the image: found, or to be uploaded
 *            upload.c     its bytes
 *            network.c    network, subnet, router, security group
 *            ports.c      ports and floating IPs
 *            attached.c   ports on further networks, security, addresses of pairs
 *            trunks.c     trunks whose parents the nodes' ports are
 *            balancer.c   Octavia, or nothing
 *            bastion.c    its group and, at the end, its server, made like those of nodes
 *   create   servers.c    one server a node; one list waits for all of them
 *            volumes.c    volumes of cinder, before their servers
 *   retire   outdated.c   servers that were made from another flavor or image
 *            credential.c the application credential of the cloud's controller and CSI driver
 *   destroy, cleanup      remove.c */
#ifndef SLIPWAY_PROVIDER_OPENSTACK_H
#define SLIPWAY_PROVIDER_OPENSTACK_H

#include "cloud/openstack/calls.h"
#include "cloud/openstack/openstack.h"
#include "provider/bastion.h"

extern const struct provider_ops openstack_ops;

#define OS_MARK "slipway-" /* and identity.prefix */

struct event;
struct os;
struct os_job;
struct os_wait;
struct leaks_job;
struct proof;

/* A session on one event loop: the run's, or one of its own for who must not return before the
 * answer. */
struct os_line {
        struct event_base *base;
        struct cloud *cloud;
        struct os_session *session;
};

struct os_spot { /* of a node, by its place in the file */
        const struct os_port *port;
        const struct os_port **further; /* of ports.networks, in the file's order; NULL: none */
        const struct os_server *server;
        const struct os_floating_ip *floating;
        /* of its system disk, if that is one, and then of pool.volumes, in the file's order */
        const struct os_volume **volumes;
};

/* What the lists said, and what was made since. */
struct os_found {
        struct arena arena;
        const struct os_network *network;
        const struct os_subnet *subnet;
        const struct os_router *router;
        const struct os_group *group, *bastion_group;
        const struct os_balancer *balancer;
        const struct os_port *vip;                 /* of the API's address */
        const struct os_floating_ip *vip_floating; /* of that port */
        bool interface;                            /* the router is in the subnet */
        bool floating_asked;
        /* as they came; of networks, subnets and routers more than one may have a name */
        struct answers networks, subnets, routers, groups, balancers;
        struct answers ports, servers, floating, members, volumes;
        struct answers named;       /* networks that were asked for by name, all of them at once */
        struct answers credentials; /* for the cloud's controller and CSI driver */
        struct os_spot *spots;      /* of the nodes, and then of the bastion */
};

struct os_image_of { /* by the words in the file */
        const char *name;
        bool own; /* slipway uploads it */
        struct answers found;
        const struct os_image *image;
};

/* What only creating needs; asked by survey. */
struct os_looked {
        struct arena arena;
        struct answers flavors, zones, server_groups, volume_types, extensions;
        struct os_image_of *images;
        size_t image_count;
        const char *external;                   /* id of the external network */
        struct answers externals, named_groups; /* as they came */
        struct os_compute_limits compute;
        struct os_volume_limits volume;
        struct os_network_quota network;
        struct os_balancer_quota balancer;
        bool has_compute, has_network, has_balancer, has_volume;
};

struct os {
        struct provider_run *run;
        const struct provider_openstack *options;
        const char *mark, *name; /* slipway-P, NAME-P; NULL: no Identity yet */
        struct os_line sync, async;
        struct os_found found;
        struct os_looked looked;
        struct bastion_machine bastion;
        const char *image;        /* of machines whose pool names none: the file's words */
        struct os_upload *upload; /* image.h */
        struct ip vip;            /* the API's address, once it is chosen */
        bool any_address;         /* the cloud chooses: one that was chosen here is taken */
        struct proof *proof;
        struct leaks_job *leaking;
        struct os_job *jobs;
        struct os_wait *waits; /* for servers */
        struct event *poll;
        struct call *polling;
};

/* The run's state, made when it is asked for first. */
int os_of(struct provider_run *run, struct os **out, struct error *err);
void os_close(struct provider_run *run);
/* The session on the run's own loop. */
int os_line_async(struct os *os, struct error *err);

bool os_is_id(const char *text);            /* a uuid */
const char *os_region(const struct os *os); /* NULL: the cloud has one only */
/* Of who is logged in; known since list, on whose session it was. */
static inline const char *os_user_id(const struct os *os) { return os_user(os->sync.session); }
static inline bool os_managed(const struct os *os) { return !os->options->network.name; }
bool os_own_group(const struct os *os); /* securityGroups: managed */
bool os_wants_vip(const struct os *os); /* the API has an address of its own */

/* ---- bastion.c ---- */
void os_bastion_begin(struct os *os);
static inline const struct node *os_bastion(const struct os *os) /* NULL: the file wants none */
{
        return os->bastion.wanted ? &os->bastion.node : NULL;
}
bool os_is_bastion_name(const struct os *os, const char *name); /* wanted or not */
/* Of a node, or of the bastion. By name also NULL. */
struct os_spot *os_spot_of(const struct os *os, const struct node *n);
struct os_spot *os_spot_named(const struct os *os, const char *name);
/* Something of a bastion is there that the file does not want. */
bool os_bastion_is_left(const struct os *os);
void os_bastion_settle(struct os *os);
bool os_bastion_missing(const struct os *os); /* or stopped */
const struct machine *openstack_bastion(struct provider_run *run);
/* Makes, starts or removes it. fn once. */
void os_bastion_make(struct os *os, void (*fn)(struct error *err, void *arg), void *arg);

/* ---- jobs: job.c ---- */

/* Stages one after the other; the calls of a stage go at the same time, and the next begins when
 * all are answered. A stage makes what `found` lacks, so it can be done again: when an answer was
 * lost, or something existed already, the lists are read again first. */
typedef void (*os_stage)(struct os_job *j);
struct os_job {
        struct os *os;
        struct os_line *line;
        const os_stage *stages; /* ends with NULL */
        size_t at, back;        /* back: the stage that is done again after looking */
        unsigned open, tries;
        bool again, looking, starting;
        unsigned later;          /* how often a stage was put off */
        size_t row;              /* of a stage that goes through a table */
        const struct node *node; /* of stages that are about one; NULL: all */
        bool only_root;          /* of its volumes, only the system disk */
        struct error err;
        void (*say)(const char *what, int permille, void *arg);
        void (*done)(struct os_job *j, struct error *err);
        void (*fn)(struct error *err, void *arg); /* of the provider's operation, with its arg */
        void *arg;
        struct os_job *next;
};
typedef void (*os_answer)(struct os_job *j, const struct call_reply *reply, void *arg);

struct os_ask {
        enum os_call call;
        const struct pair *args;
        json_t *body; /* taken */
        const char *resource;
        os_answer fn; /* of a success; may be NULL */
        void *arg;
        const struct stream *stream; /* NULL: none, and the usual time limit */
        bool optional;               /* fn is also told of a refusal, which is no error */
};
void job_ask(struct os_job *j, const struct os_ask *ask);
void job_fail(struct os_job *j, const struct error *err);
/* A call's refusal: an error, unless it says that what is deleted was not there. */
void job_fault(struct os_job *j, const struct call_row *row, const struct fault *f);
/* The stage is done once more, after the next turn of the loop. */
void job_again(struct os_job *j, unsigned ms);
/* What a stage waited for, counted in `open`, is over. */
void job_continue(struct os_job *j);
/* The stage is done once more, a little later. False: that was often enough. */
bool job_later(struct os_job *j, unsigned ms);
/* A creating call whose answer becomes *into; body is taken. */
void job_make(
        struct os_job *j, enum os_call call, json_t *body, const char *what, const void **into);
/* On the loop of its own, until it has ended. */
int job_run(struct os *os, const os_stage *stages, struct error *err);
/* The same for stages about one node. */
void job_start_for(struct os *os, const os_stage *stages, const struct node *n, bool only_root,
        void (*fn)(struct error *err, void *arg), void *arg);
/* On the run's loop; fn once, from the loop. Only prepare reads the lists again: machines that are
 * being made use them. */
void job_start(struct os *os, const os_stage *stages,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg);

/* ---- marks.c ---- */
bool os_marked(const struct os *os, const char *description);
/* The mark of an object of this call's answer, this cluster's or another's; NULL: it has none. */
const char *os_mark_of(enum os_call call, const void *object);
/* Of a list that was asked for by the mark, the objects that have it. */
int os_read_ours(const struct os *os, enum os_call call, const struct call_reply *reply,
        struct arena *a, struct answers *out, struct error *err);

/* ---- look.c ---- */
extern const os_stage os_look_stages[];
struct os_list {
        enum os_call call;
        struct answers *into;
        bool ours; /* only what has the mark */
};
void job_list(struct os_job *j, enum os_call call, const struct pair *args, struct answers *into);
int openstack_list(struct provider_run *run, struct machine *out, struct error *err);
int openstack_find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err);
int openstack_others(struct provider_run *run, struct strings *out, struct error *err);
/* What a server says about its machine. */
void os_machine(struct os *os, const struct node *n, const struct os_server *s,
        const struct os_port *p, const struct os_floating_ip *f, struct machine *m);
/* The first address of a port; family 0: it has none. */
struct ip os_port_ip(const struct os_port *p);
/* A second server of a node, which failed: nova began it with a call that seemed lost. */
bool os_is_twin(const struct os *os, const struct os_server *s);
/* After ports or floating IPs came: the spots, the nodes' addresses and the balancer. */
void os_settle(struct os *os);
/* Appends to a list of answers; returns the element. */
void *os_append(struct arena *a, struct answers *list, const struct answer_schema *s);

/* ---- named.c ---- */
/* Networks beside the machines' own are known by their names. */
bool os_has_names(const struct os *os);
/* Asks for all names at once. False: there are none. */
bool os_look_named(struct os_job *j);
/* The network that exists already. */
int os_look_network(struct os *os, struct error *err);
void stage_look_own(struct os_job *j);
const struct os_subnet *os_subnet_of_ports(struct os *os);
/* The id of a network of the file, of which `found` has the names; NULL: there is not exactly one.
 */
const char *os_network_id(const struct os *os, const char *word);

/* ---- volumes.c ---- */
#define OS_META_MARK    "slipway-mark"
#define OS_META_MADE_AS "slipway-id"                           /* of an image: its own id */
const char *os_pair(const struct pairs *all, const char *key); /* NULL: there is none */
const char *os_volume_node(const struct os_volume *v);
/* What lists by the mark are asked with. */
void os_mark_args(const struct os *os, struct pair out[3]);
bool os_uses_volumes(const struct os *os);
void os_settle_volumes(struct os *os);
/* Made twice, or in the state error; nothing uses it. */
bool os_volume_is_spare(const struct os *os, const struct os_volume *v);
/* Adds how many the node lacks, and their size. */
bool os_volumes_missing(const struct os *os, const struct node *n, int64_t *count, int64_t *gb);
bool os_volume_detached(const struct os *os, const struct node *n, size_t place);
json_t *os_block_devices(const struct os *os, const struct node *n, const char *image);
void os_volume_delete(struct os_job *j, const struct os_volume *v);
void stage_volume_spares(struct os_job *j);
void stage_volumes(struct os_job *j);
void stage_volumes_ready(struct os_job *j);
void stage_attach(struct os_job *j);
void stage_node_volumes_gone(struct os_job *j);

/* ---- survey.c ---- */
int openstack_survey(
        struct provider_run *run, struct machine *machines, struct survey *out, struct error *err);
void os_look_up(struct os_job *j, enum os_call call, const struct pair *args, struct answers *into);
const struct os_flavor *os_flavor_of(const struct os *os, const struct pool *p);
const char *os_zone_of(const struct os *os, const struct node *n); /* NULL: the cloud chooses */
const struct os_server_group *os_server_group_of(const struct os *os, const struct pool *p);
const char *os_server_group_name(const struct os *os, const struct pool *p);

/* ---- image.c, upload.c ---- */
void os_image_begin(struct os *os);
void os_upload_end(struct os *os);
const char *os_image_name(const struct os *os, const struct pool *p); /* the file's words */
const struct os_image *os_image_of(const struct os *os, const struct pool *p);
void os_look_up_image(struct os_job *j, const struct pool *p);
/* Of one with our mark: the file wants it, or a server was made from it. */
bool os_image_is_used(const struct os *os, const struct os_image *image);

/* ---- outdated.c ---- */

/* What a server was made from, in the file's own words: in its metadata. */
#define OS_META_FLAVOR   "slipway-flavor"
#define OS_META_IMAGE    "slipway-image"
#define OS_META_ROOT     "slipway-root"
#define OS_META_NETWORKS "slipway-networks"
/* As they fit there: of longer ones the first part and a digest. */
const char *os_words(struct arena *a, const char *text);
const char *os_root_text(const struct os *os, const struct pool *p);
/* The file may ask for something else than the server was made from: flavors and images must be
 * looked up to tell. */
bool os_may_be_outdated(const struct os *os, const struct node *n);
/* What it is, once they are looked up; NULL: nothing else. */
const char *os_outdated(const struct os *os, const struct node *n);
void openstack_retire(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);

/* ---- what prepare makes ---- */
void stage_login(struct os_job *j);
void stage_twins(struct os_job *j);
void stage_network(struct os_job *j);
void stage_server_group(struct os_job *j, const struct pool *p);
/* After a lost answer: they have no mark, and a second one of the same name could be made. */
void stage_server_groups_again(struct os_job *j);
void stage_subnet(struct os_job *j);
void stage_rules(struct os_job *j);
void stage_rules_old(struct os_job *j); /* when what the file wants is there */
void stage_ports(struct os_job *j);
void stage_floating(struct os_job *j);
void stage_balancer(struct os_job *j);
void stage_members(struct os_job *j);
void stage_clients_begin(struct os_job *j);
void stage_clients(struct os_job *j);
void stage_clients_tag(struct os_job *j);
const char *os_own_cidr(const struct os *os);
/* Octavia lets in only some networks. */
bool os_api_restricted(const struct os *os);
size_t os_rules_missing(struct os *os); /* of our groups; all of one that is not there */
bool os_members_differ(const struct os *os);
bool os_clients_differ(const struct os *os); /* of the balancer: access.api */
void openstack_members(struct provider_run *run, const struct node *const *nodes, size_t n,
        void (*fn)(struct error *err, void *arg), void *arg);

/* Of a node's port: what of `ports` in the file it does not have. p NULL: false. */
bool os_port_differs(const struct os *os, const struct node *n, const struct os_port *p);
json_t *os_port_settings(const struct os *os, const struct node *n, const struct os_port *p);

/* ---- attached.c ---- */
bool os_no_security(const struct os *os);
bool os_names_groups(const struct os *os); /* all groups must be listed */
const char *os_group_id(const struct os *os, const char *name);
/* Says which of them there are not exactly once. */
void os_survey_groups(
        struct os *os, struct survey *out, const char *field, const struct strings *names);
const char *os_main_network(const struct os *os); /* id, NULL */
bool os_is_main_port(const struct os *os, const struct os_port *p);
void os_settle_further(struct os *os, struct os_spot *s, const struct os_port *p);
const struct os_port *os_further_port(const struct os *os, const struct node *n, size_t place);
const char *os_networks_text(const struct os *os);
bool os_same_networks(const struct os *os, const struct os_server *s);
void os_survey_further(struct os *os, struct survey *out, int64_t *ports);
void os_needs_further(struct os *os, struct survey *out);
void stage_further_attach(struct os_job *j);
void stage_ports_set(struct os_job *j);
void stage_node_ports_old(struct os_job *j);
/* No machine has it, and the file does not name its network. */
bool os_port_is_loose(const struct os *os, const struct os_port *p);

/* ---- trunks.c ---- */
bool os_trunk_missing(const struct os *os, const struct node *n);
void stage_trunks(struct os_job *j);
void stage_node_trunks_gone(struct os_job *j);

/* ---- credential.c ---- */
bool os_wants_credential(const struct os *os);
bool os_credential_missing(const struct os *os);
void os_look_credentials(struct os_job *j);
void stage_credential(struct os_job *j);
void stage_credential_old(struct os_job *j);
/* After list: cluster.cloud_config and what belongs to it. */
int os_conf(struct os *os, struct error *err);

/* ---- servers.c ---- */
enum waits_for { WAIT_ACTIVE, WAIT_GONE, WAIT_CLEAR };

struct os_wait {
        struct os *os;
        struct machine *m;
        enum waits_for what;
        const char *id;  /* NULL: it may have been made; looked for by its name */
        const char *why; /* what nova said of one that failed */
        unsigned posts;
        int64_t since, not_before;
        int64_t sent, post_after; /* of a call whose answer was lost */
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
        struct os_wait *next;
};

struct os_wait *os_wait_new(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
void os_wait_end(struct os_wait *w, struct error *err);
/* body is taken. */
void os_server_call(struct os_wait *w, enum os_call call, json_t *body, call_fn fn);
/* Deletes it and waits until it is gone; NULL: it is gone. */
void os_server_end(struct os_wait *w, const struct os_server *s);
/* After it, nova's list decides. */
void os_server_acted(const struct call_reply *reply, void *arg);
void openstack_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
void openstack_destroy(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
int openstack_console(
        struct provider_run *run, const struct machine *m, struct str *out, struct error *err);
int openstack_stop(struct provider_run *run, const struct machine *m, bool hard, struct error *err);
int openstack_start(struct provider_run *run, const struct machine *m, struct error *err);
void os_waits_free(struct os *os);

/* ---- remove.c ---- */
#define OS_SWEEP_COUNT 15
extern const struct sweep_row {
        const char *kind;
        enum os_call list, delete;
        /* It has no mark: its name begins with this, or its description ends with it; %s is NAME-P
         */
        const char *named, *ends;
        bool controller; /* the cloud's controller made it */
} os_sweep[OS_SWEEP_COUNT];
static inline bool sweep_unmarked(const struct sweep_row *row) { return row->named || row->ends; }
/* Arguments of a list, and of a call that deletes `id` (NULL: none). */
struct sweep_args {
        struct pair v[4];
};
struct sweep_args sweep_args(
        const struct os_job *j, const struct sweep_row *row, bool marked, const char *id);
/* All structs of answers that are swept begin with id and name (of a floating IP, its address). */
struct swept {
        const char *id, *name;
};
bool sweep_wanted(const struct os *os, const struct sweep_row *row);
bool sweep_optional(const struct os *os, const struct sweep_row *row); /* a refusal: none */
bool sweep_takes(const struct os *os, const struct sweep_row *row, const struct swept *s);
const struct swept *swept_at(const struct sweep_row *row, const struct answers *all, size_t i);
int openstack_cleanup(struct provider_run *run, struct error *err);

/* ---- leaks.c ---- */
int openstack_leaks(struct provider_run *run, struct leaks *out, struct error *err);
int openstack_leak_delete(struct provider_run *run, const struct leak *l, struct error *err);
/* An error if the cloud has a cluster of this name with another prefix, and nothing of ours: the
 * state directory is somewhere else or lost, and a second cluster would be made beside the first.
 */
int os_same_name(const struct os *os, struct error *err);

#endif

/* Provider aws: what a cluster has in AWS, found again by its tags.
 *
 * A *thing* is one row of what the cluster needs (things.c): a resource such as a subnet, or a step
 * that has no id of its own, such as a route. Each has a kind (kinds.c), which says how it is
 * found, made and recognised in an answer. A job (job.c) makes those that are missing, in the order
 * of their needs and otherwise all at once.
 *
 * Every resource is tagged in the call that creates it:
 *   slipway.dev/mark       slipway-PREFIX, the mark of the cluster
 *   slipway.dev/cluster    the cluster's name
 *   slipway.dev/role       which of its things it is: "vpc", "private/ZONE", "node/NAME"
 * Instances also have what the file asked for when they were made (outdated.c):
 *   slipway.dev/image      an id, NAME of OWNER, or the name of a parameter
 *   slipway.dev/root       size, type, key and IOPS of the system disk
 * Roles and instance profiles are found by their path, /slipway-PREFIX/; the load balancer and its
 * target group by their names. */
#ifndef SLIPWAY_PROVIDER_AWS_IMPL_H
#define SLIPWAY_PROVIDER_AWS_IMPL_H

#include "base/index.h"
#include "cloud/aws/aws.h"
#include "cloud/aws/calls.h"
#include "provider/aws/aws.h"
#include "provider/bastion.h"

#define AWS_MARK    "slipway-" /* and identity.prefix */
#define AWS_BASTION "bastion"
#define AWS_BALANCE "balancer" /* role of the load balancer's security group */
#define TAG_MARK    "slipway.dev/mark"
#define TAG_CLUSTER "slipway.dev/cluster"
#define TAG_ROLE    "slipway.dev/role"
#define TAG_IMAGE   "slipway.dev/image"
#define TAG_ROOT    "slipway.dev/root"

/* What Kubernetes' controllers put on what they make, with NAME-PREFIX: OWNER/NAME-PREFIX is
 * "owned", or BALANCERS is NAME-PREFIX. */
#define TAG_OWNER     "kubernetes.io/cluster/"
#define TAG_BALANCERS "elbv2.k8s.aws/cluster"

struct event;

/* ---- what AWS has (lists.c) ---- */

enum list_id {
        LIST_NONE,
        LIST_VPCS,
        LIST_GATEWAYS,
        LIST_SUBNETS,
        LIST_TABLES,
        LIST_NATS,
        LIST_ADDRESSES,
        LIST_GROUPS,
        LIST_INTERFACES,
        LIST_VOLUMES,
        LIST_INSTANCES,
        LIST_BALANCERS,
        LIST_TARGET_GROUPS,
        LIST_HEALTH, /* needs the target group */
        LIST_PROFILES,
        LIST_ROLES, /* asked only when they go */
        LIST_ZONES,
        LIST_RECORD, /* needs the zone */
        /* what the controllers made for Services; asked only when the cluster goes */
        LIST_SERVICE_BALANCERS,
        LIST_SERVICE_CLASSICS,
        LIST_SERVICE_TARGETS,
        LIST_SERVICE_GROUPS,
        LISTS,
};

struct list {
        struct answers v;     /* the live ones; of instances also the dead */
        struct index by_role; /* the best of each role */
        bool asked;           /* it is known */
        /* whoever waits for the list to be asked again (list_again) */
        struct list_wait *waiting, *asking;
        struct event *timer;
        struct aws_run *run;
        size_t labelled; /* rows whose tags were asked for */
        unsigned lost;   /* how often one of them went meanwhile */
};

typedef void (*list_fn)(const struct fault *fault, void *arg);

/* ---- what the cluster needs ---- */

enum kind_id {
        KIND_VPC,
        KIND_VPC_NAMES,
        KIND_GATEWAY,
        KIND_GATEWAY_ON,
        KIND_SUBNET,
        KIND_TABLE,
        KIND_ROUTE,
        KIND_TABLE_ON,
        KIND_ADDRESS,
        KIND_NAT,
        KIND_GROUP,
        KIND_RULES,
        KIND_RULES_GONE, /* rules that the file no longer asks for */
        KIND_ROLE,
        KIND_POLICY,
        KIND_PROFILE,
        KIND_PROFILE_ROLE,
        KIND_TARGET_GROUP,
        KIND_TARGET_SETTINGS,
        KIND_BALANCER,
        KIND_LISTENER,
        KIND_TARGETS,
        KIND_ZONE_VPC,
        KIND_RECORD,
        KIND_INTERFACE,
        KIND_FORWARDING,
        KIND_ADDRESS_ON,
        KIND_VOLUME,
        KIND_INSTANCE,
        KIND_VOLUME_ON,
        KINDS,
};

struct thing {
        enum kind_id kind;
        const char *role; /* the tag's value; of a step: what it is about */
        const char *zone;
        const struct node *node;
        size_t nth; /* of volumes */
        struct thing **needs;
        size_t need_count;
        bool given; /* it is the user's: neither made nor removed */
        bool there, busy;
        const char *id;   /* once it is there */
        const void *is;   /* its row of the list, or of the answer that made it; may be NULL */
        const char *with; /* a range or an address it is made with */
        unsigned generation;
};

/* Parameters of a call. */
struct args {
        struct arena *arena;
        struct pair *v;
        size_t n, cap;
        const char *text; /* of XML */
        json_t *body;
};
void arg_put(struct args *a, const char *key, const char *value); /* NULL: left out */
void arg_putf(struct args *a, const char *value, const char *key, ...) PRINTF(3, 4);
void arg_number(struct args *a, const char *key, int64_t value);
struct call_args arg_call(struct args *a, const char *resource);

struct aws_run;

struct kind {
        const char *word; /* "VPC": in sentences */
        enum list_id list;
        enum aws_call make;
        const char *tagged; /* resource type of its tags; "Tags": of ELB and IAM; NULL: none */
        bool token;         /* with a ClientToken */
        bool twins;         /* made twice it is there twice: a lost answer is looked for first */
        void (*args)(struct aws_run *w, const struct thing *t, struct args *a);
        /* Whether it is there, and `id` and `is`. NULL: the list's best of its role; without a
         * list: as soon as something that needs it is there. */
        bool (*found)(struct aws_run *w, struct thing *t);
        bool (*ready)(const struct thing *t); /* NULL: as soon as it was made */
        const char *done;                     /* a code which says that it is there already */
};
extern const struct kind kinds[KINDS];
void tags_put(struct aws_run *w, const struct thing *t, const char *prefix, struct args *a);
bool thing_find(struct aws_run *w, struct thing *t);
const char *thing_name(struct aws_run *w, const struct thing *t); /* "NAME-PREFIX-ROLE" */

/* ---- a run ---- */

struct aws_loop { /* the same session on two loops: call_do needs one of its own */
        struct event_base *base;
        struct cloud *cloud;
        struct aws_session *session;
};

struct aws_run {
        struct provider_run *run;
        const struct provider_aws *config;
        const char *mark;  /* slipway-PREFIX; NULL: nothing can be ours */
        const char *full;  /* NAME-PREFIX: Kubernetes' name of the cluster in AWS */
        const char *owner; /* TAG_OWNER NAME-PREFIX */
        const char *zone;  /* of dns; NULL: none */
        struct arena arena;
        struct event_base *own_base;
        struct aws_loop sync, async, *loop; /* loop: where lists are asked again */
        struct list lists[LISTS];
        struct thing **things; /* needs come before who needs them */
        size_t count, cap;
        struct bastion_machine bastion;
        struct index by_role;            /* "KIND ROLE" → thing */
        const struct aws_image **images; /* by pool, and the bastion's */
        struct strings deleted;          /* nodes whose leaks were deleted */
};

int aws_of(struct provider_run *run, struct aws_run **out, struct error *err);
void aws_close(struct provider_run *run);
/* The session on the run's own loop. */
int aws_async(struct aws_run *w, struct session **out, struct error *err);

/* Asks for all lists at once, and then for those that need an answer. */
int lists_ask(struct aws_run *w, struct error *err);
/* Of security groups: also those of another operator's cluster of this name. */
void list_by_name(struct aws_run *w, struct args *a);
struct call *list_call(
        struct aws_run *w, struct session *s, enum list_id id, call_fn fn, void *arg);
int list_take(
        struct aws_run *w, enum list_id id, const struct call_reply *reply, struct error *err);
bool list_absent(const struct call_reply *reply); /* what is asked for by name or id */
void list_index(struct aws_run *w, enum list_id id);
/* Asks for one list again after `ms`; whoever waits for the same list is told together. */
void list_again(struct aws_run *w, enum list_id id, unsigned ms, list_fn fn, void *arg);
void lists_release(struct aws_run *w);
static inline bool list_of_services(enum list_id id)
{
        return id >= LIST_SERVICE_BALANCERS && id <= LIST_SERVICE_GROUPS;
}
/* The call that has the tags of a list's rows; AWS_CALLS: they are in the list. */
enum aws_call list_labels(enum list_id id);
/* Forgets rows that are no controller's of this cluster: their own tags say so. */
void list_keep_services(struct aws_run *w, enum list_id id);
/* The lists of services anew, on the loop of its own. */
int services_ask(struct aws_run *w, struct error *err);
const char *tag_of(const struct pairs *tags, const char *key); /* "" */
bool tags_of_service(const struct aws_run *w, const struct pairs *tags);
const struct pairs *row_tags(enum list_id id, const void *row);
const void *list_row(const struct aws_run *w, enum list_id id, size_t i);
/* Rows that another row of the same role makes superfluous, and that nothing uses. */
bool row_is_spare(struct aws_run *w, enum list_id id, const void *row);
bool row_is_gone(enum list_id id, const void *row);
size_t list_size(enum list_id id); /* of a row */
bool instance_is_dead(const struct aws_instance *i);
struct answers instances_flat(struct aws_run *w, const struct answers *reservations);

/* Builds and finds the things of the cluster. */
int things_build(struct aws_run *w, struct error *err);
void things_find(struct aws_run *w);
struct thing *thing_of(const struct aws_run *w, enum kind_id kind, const char *role);
struct thing *node_thing(const struct aws_run *w, enum kind_id kind, const struct node *n);
const char *node_zone(const struct aws_run *w, const struct node *n);
void node_devices(struct aws_run *w, const struct node *n);

/* ---- parts that several files name ---- */

const char *vpc_id(const struct aws_run *w); /* NULL until it is there */
const char *node_subnet(const struct aws_run *w, const struct node *n, bool public);
const char *balancer_name(const struct aws_run *w);
/* access.api has a range with all addresses. */
bool api_is_open(const struct aws_run *w);
/* One that was made without a security group and would need it for access.api. */
const struct aws_balancer *balancer_unguarded(const struct aws_run *w);
bool balancer_group_wanted(const struct aws_run *w);
/* An Elastic IP address from which the cluster itself reaches the load balancer. */
bool balancer_client(const struct aws_run *w, const struct thing *t);
bool target_is_there(const struct aws_run *w, const char *address); /* of the balancer */
bool iam_is_managed(const struct aws_run *w);
const char *iam_path(const struct aws_run *w);
/* The profile's name, or NULL. */
const char *iam_profile(const struct aws_run *w, const struct node *n);
const char *dns_zone_id(const struct aws_run *w); /* NULL: it was not found */
const char *dns_record_name(const struct aws_run *w);

const struct aws_record *record_row(struct aws_run *w);
void removal_record(struct aws_run *w, struct args *a);
/* Takes our VPC out of the private zone again; false: it is in none. */
bool removal_zone_vpc(struct aws_run *w, const char *vpc, struct args *a);
bool list_wanted_to_remove(const struct aws_run *w, enum list_id id);
bool list_has(const struct aws_run *w, enum list_id id, const char *which);
const char *record_change(struct aws_run *w, const char *action, const char *values);
/* The pool's AMI, once images_find was called. */
const struct aws_image *image_of(const struct aws_run *w, const struct pool *p);
/* Finds the AMIs of all pools with a missing machine, or with one that may be outdated; adds
 * problems. */
int images_find(struct aws_run *w, struct survey *out, struct error *err);
/* What the file says of it, as text. */
const char *image_text(const struct aws_run *w, const struct pool *p);
int survey_check(
        struct aws_run *w, struct machine *machines, struct survey *out, struct error *err);
/* ---- outdated.c ---- */
const char *root_text(const struct aws_run *w, const struct pool *p);
/* The node's instance, if it is there. */
const struct aws_instance *node_instance(const struct aws_run *w, const struct node *n);
bool may_be_outdated(const struct aws_run *w, const struct node *n);
/* Once AMIs were found; NULL: it is as the file says. */
const char *outdated_text(const struct aws_run *w, const struct node *n);
bool machine_is_missing(const struct aws_run *w, const struct node *n);

/* ---- bastion.c ---- */
void aws_bastion_begin(struct aws_run *w);
const struct node *aws_bastion_node(const struct aws_run *w); /* NULL: the file wants none */
/* The i-th of all pools or nodes and then the bastion's; NULL: there are no more. */
const struct pool *aws_pool(const struct aws_run *w, size_t i);
const struct node *aws_node(const struct aws_run *w, size_t i);
const char *aws_pool_words(const struct aws_run *w, const struct pool *p); /* "pool control" */
/* Something of a bastion is there that the file does not want; its group, or NULL. */
bool bastion_is_left(struct aws_run *w);
const struct aws_group *bastion_group_left(struct aws_run *w);
int bastion_forget(struct aws_run *w, struct error *err);
void survey_bastion(struct aws_run *w, struct survey *out);

/* ---- several questions at once ---- */

struct ask {
        enum aws_call call;
        struct args args;
        json_t *answer; /* the list or the body; NULL after a fault */
        struct fault fault;
        struct answers rows; /* of a list */
};
struct ask *ask_new(struct aws_run *w, struct ask **all, size_t *n, enum aws_call call);
/* Faults are the caller's. */
void asks_run(struct aws_run *w, struct ask *all, size_t n);
void asks_release(struct ask *all, size_t n);

/* ---- removal ---- */

/* Removes what the role belongs to: a node's things, or all (node NULL). fn once. */
void removal_start(struct aws_run *w, const struct node *n,
        void (*fn)(struct error *err, void *arg), void *arg);
/* The same on the loop of its own, until it has ended. */
int removal_run(struct aws_run *w, const struct node *n, struct error *err);
/* Nothing of the cluster is left, or an error with the ids of what is. */
int removal_proof(struct aws_run *w, struct error *err);

/* ---- jobs ---- */

struct job;
typedef bool (*job_takes)(const struct thing *t, const void *arg);
/* Makes the missing things that `takes` says; fn once, from the loop. */
void aws_job_start(struct aws_run *w, job_takes takes, const void *takes_arg,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg);

#endif

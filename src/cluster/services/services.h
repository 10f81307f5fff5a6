/* services.*: namespaces, manifests and charts of the file. Observed before the plan, applied after
 * DNS; see docs/services.md. */
#ifndef SLIPWAY_SERVICES_H
#define SLIPWAY_SERVICES_H

#include "addon/service.h"
#include "cluster/plan/plan_steps.h"
#include "cluster/services/helm.h"

/* Reads the manifests, and looks for the charts that are on this computer; an error names the file
 * and the position. */
int services_check(const struct cluster *c, struct error *err);
/* The step that observes; NULL: the file has no services, and the cluster never had any. */
struct step *services_observe_step(struct site *s);
/* The steps of a plan that those of services have to do with. */
struct services_around {
        struct plan_step *objects; /* before the chart of the fabric: without it no pod starts */
        struct plan_step *dns;     /* after that chart, and before everything else */
        struct plan_step *verify;  /* after the addons whose promises it checks */
};
/* Adds the steps for all changes to the plan. */
void services_steps(struct site *s, struct plan *p, const struct services_around *around);

void step_uninstall(struct step *s);         /* arg: task */
void step_namespaces(struct step *s);        /* arg: site */
void step_crds(struct step *s);              /* arg: site */
void step_service_manifests(struct step *s); /* arg: site */
void step_chart(struct step *s);             /* arg: task */

/* ---- shared by the files of this folder ---- */

struct task { /* argument of a chart's step */
        struct site *site;
        struct service *service;
        unsigned seconds; /* for an uninstall; 0: as long as the chart says */
        /* It could not be uninstalled: ends the operation. NULL: the sentence of up. */
        void (*failed)(struct op *o, const struct task *t, const struct helm_result *h);
};

#define SECRETS_MAX ((size_t)20000) /* maximum of revisions of all releases */
#define INVENTORY   "/api/v1/namespaces/kube-system/configmaps/slipway-services"

void step_services_observe(struct step *s); /* observe.c; arg: site */

/* services.c */
/* Reads the file. `at`: its index in the list. */
int manifest_load(
        const struct cluster *c, size_t at, struct str *text, json_t **objects, struct error *err);

/* builtin.c: fills in the service of services.dex. */
int builtin_dex(struct site *site, struct service *s, struct error *err);

/* package.c: finds the chart of a service: package, version, inputs. fn is called once, possibly
 * before this returns; err is NULL on success. */
void package_find(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg);

/* Whether a chart of a path or of a directory is there. */
int package_check(const struct cluster *c, const struct chart *chart, struct error *err);

/* folder.c: of a chart that is a directory. */
int folder_digest(const char *dir, char digest[SHA256_HEX], struct error *err);

/* index.c: the digest that a repository's index has for the archive of that name. False: it says
 * none, or cannot be read. */
bool index_digest(const char *path, const char *chart, const char *file, char out[SHA256_HEX]);

/* charts.c: what each change of a chart does, object by object. */
void charts_compare(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg);
/* Writes the chart's values to files and appends -f FILE to args at *n. */
int chart_values(struct site *s, const struct service *service, const char **args, size_t *n,
        struct error *err);

/* check.c: has the API check documents. */
void services_judge(struct site *s, const char *what, json_t *objects,
        void (*fn)(struct error *err, void *arg), void *arg);
/* Refuses objects as they are in the cluster: null where one is not there. */
typedef int (*objects_refuse_fn)(
        const struct service *service, const json_t *is, struct error *err);
/* The same; what differs from the objects as they are is appended to the service's changes.
 * refuse: may be NULL. */
void objects_compare(struct site *s, struct step *step, struct service *service, json_t *objects,
        objects_refuse_fn refuse, void (*fn)(struct error *err, void *arg), void *arg);

/* crds.c: the CustomResourceDefinitions in a chart's crds/. */
/* Compares them with those in the cluster; what differs is appended to the service's changes. */
void crds_compare(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg);

#endif

/* services.*: namespaces, manifests and charts of the file. Observed before the plan, applied after
 * DNS. docs/services.md says what each does. */
#ifndef SLIPWAY_SERVICES_H
#define SLIPWAY_SERVICES_H

#include "addon/service.h"
#include "cluster/plan/plan_steps.h"
#include "cluster/services/helm.h"

/* Reads the manifests; an error says the file and the place in it. */
int services_check(const struct cluster *c, struct error *err);
/* The step that observes; NULL: the file has no services, and the cluster never had any. */
struct step *services_observe_step(struct site *s);
/* Adds the plan's steps for what is to be done; they begin after `after`. */
void services_steps(struct site *s, struct plan *p, struct plan_step *after);

void step_uninstall(struct step *s);         /* arg: task */
void step_namespaces(struct step *s);        /* arg: site */
void step_service_manifests(struct step *s); /* arg: site */
void step_chart(struct step *s);             /* arg: task */

/* ---- between the files ---- */

struct task { /* of a step with a chart */
        struct site *site;
        struct service *service;
};

#define SECRETS_MAX ((size_t)20000) /* revisions of all releases that are read */
#define INVENTORY   "/api/v1/namespaces/kube-system/configmaps/slipway-services"

void step_services_observe(struct step *s); /* observe.c; arg: site */

/* services.c */
/* The file as it is now. `at`: its place in the list. */
int manifest_load(
        const struct cluster *c, size_t at, struct str *text, json_t **objects, struct error *err);

/* builtin.c: fills in the service of services.dex. */
int builtin_dex(struct site *site, struct service *s, struct error *err);

/* package.c: finds the chart of a service: package, version, inputs. fn is called once, maybe
 * before this returns; err NULL when it is found. */
void package_find(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg);

/* charts.c: what each change of a chart does, object by object. */
void charts_compare(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg);
/* Files with the chart's values, as arguments: appends -f FILE to args at *n. */
int chart_values(struct site *s, const struct service *service, const char **args, size_t *n,
        struct error *err);

/* check.c: the API judges documents. */
void services_judge(struct site *s, const char *what, json_t *objects,
        void (*fn)(struct error *err, void *arg), void *arg);

#endif

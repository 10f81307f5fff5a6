/* Between job.c and verdict.c. */
#ifndef SLIPWAY_PROVIDER_AWS_JOB_H
#define SLIPWAY_PROVIDER_AWS_JOB_H

#include "provider/aws/impl.h"

struct job {
        struct aws_run *w;
        struct session *session;
        struct thing **v;
        size_t n, made, missing;
        unsigned running;
        struct error err; /* the first */
        void (*say)(const char *what, int permille, void *arg);
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

struct doing { /* one thing that is being made */
        struct job *job;
        struct thing *t;
        int64_t since;
        unsigned polls, looks;
        struct event *timer;
};

void job_turn(struct job *j);
void doing_call(struct doing *d);
void doing_again(struct doing *d, unsigned ms); /* the call, after a pause */
void doing_wait(struct doing *d);               /* until it is ready */
void doing_over(struct doing *d, bool there);   /* frees it */
void doing_fail(struct doing *d, struct error *err);
void doing_fail_fault(struct doing *d, const struct fault *f);
int64_t doing_age(const struct doing *d);
const char *doing_resource(const struct doing *d);
void doing_on_answer(const struct call_reply *reply, void *arg); /* verdict.c */

#endif

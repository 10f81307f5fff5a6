/* What the rows of kinds.c name. */
#ifndef SLIPWAY_PROVIDER_AWS_KINDS_H
#define SLIPWAY_PROVIDER_AWS_KINDS_H

#include "provider/aws/impl.h"

/* network.c */
void vpc_args(struct aws_run *w, const struct thing *t, struct args *a);
void vpc_names_args(struct aws_run *w, const struct thing *t, struct args *a);
void gateway_on_args(struct aws_run *w, const struct thing *t, struct args *a);
bool gateway_on_found(struct aws_run *w, struct thing *t);
void subnet_args(struct aws_run *w, const struct thing *t, struct args *a);
void table_args(struct aws_run *w, const struct thing *t, struct args *a);
void route_args(struct aws_run *w, const struct thing *t, struct args *a);
bool route_found(struct aws_run *w, struct thing *t);
void table_on_args(struct aws_run *w, const struct thing *t, struct args *a);
bool table_on_found(struct aws_run *w, struct thing *t);
void address_args(struct aws_run *w, const struct thing *t, struct args *a);
void nat_args(struct aws_run *w, const struct thing *t, struct args *a);
bool nat_ready(const struct thing *t);

/* groups.c */
void group_args(struct aws_run *w, const struct thing *t, struct args *a);
void rules_args(struct aws_run *w, const struct thing *t, struct args *a);
bool rules_found(struct aws_run *w, struct thing *t);
void rules_gone_args(struct aws_run *w, const struct thing *t, struct args *a);
bool rules_gone(struct aws_run *w, struct thing *t);

/* iam.c */
void role_args(struct aws_run *w, const struct thing *t, struct args *a);
void policy_args(struct aws_run *w, const struct thing *t, struct args *a);
void profile_args(struct aws_run *w, const struct thing *t, struct args *a);
bool profile_found(struct aws_run *w, struct thing *t);
void profile_role_args(struct aws_run *w, const struct thing *t, struct args *a);
bool profile_role_found(struct aws_run *w, struct thing *t);

/* balancer.c */
void target_group_args(struct aws_run *w, const struct thing *t, struct args *a);
void target_settings_args(struct aws_run *w, const struct thing *t, struct args *a);
void balancer_args(struct aws_run *w, const struct thing *t, struct args *a);
bool first_found(struct aws_run *w, struct thing *t);
void listener_args(struct aws_run *w, const struct thing *t, struct args *a);
bool listener_found(struct aws_run *w, struct thing *t);
void targets_args(struct aws_run *w, const struct thing *t, struct args *a);
bool targets_found(struct aws_run *w, struct thing *t);

/* dns.c */
void zone_vpc_args(struct aws_run *w, const struct thing *t, struct args *a);
void record_args(struct aws_run *w, const struct thing *t, struct args *a);
bool record_found(struct aws_run *w, struct thing *t);

/* machine.c */
void interface_args(struct aws_run *w, const struct thing *t, struct args *a);
void forwarding_args(struct aws_run *w, const struct thing *t, struct args *a);
void address_on_args(struct aws_run *w, const struct thing *t, struct args *a);
bool address_on_found(struct aws_run *w, struct thing *t);
void volume_args(struct aws_run *w, const struct thing *t, struct args *a);
void instance_args(struct aws_run *w, const struct thing *t, struct args *a);
bool instance_ready(const struct thing *t);
void volume_on_args(struct aws_run *w, const struct thing *t, struct args *a);
bool volume_on_found(struct aws_run *w, struct thing *t);

#endif

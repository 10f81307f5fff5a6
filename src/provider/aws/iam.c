/* Roles and instance profiles that slipway creates, found again by their path. */
#include "provider/aws/kinds.h"

/* What the cloud's controller needs on the control plane, and what the kubelet needs everywhere. */
static const char *const policy_control[] = { "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeLaunchConfigurations", "autoscaling:DescribeTags",
        "ec2:DescribeInstances", "ec2:DescribeRegions", "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVolumes",
        "ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceTopology", "ec2:CreateSecurityGroup",
        "ec2:CreateTags", "ec2:CreateVolume", "ec2:ModifyInstanceAttribute", "ec2:ModifyVolume",
        "ec2:AttachVolume", "ec2:AuthorizeSecurityGroupIngress", "ec2:CreateRoute",
        "ec2:DeleteRoute", "ec2:DeleteSecurityGroup", "ec2:DeleteVolume", "ec2:DetachVolume",
        "ec2:RevokeSecurityGroupIngress", "ec2:DescribeVpcs", "elasticloadbalancing:*",
        "iam:CreateServiceLinkedRole", "kms:DescribeKey",
        /* the CSI driver of EBS too */
        "ec2:DescribeInstanceTypes", "ec2:DescribeTags", "ec2:DescribeVolumeStatus",
        "ec2:DescribeVolumesModifications", NULL };
static const char *const policy_worker[] = { "ec2:DescribeInstances", "ec2:DescribeRegions",
        "ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability",
        "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage", NULL };

#define TRUST \
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":" \
        "{\"Service\":\"ec2.amazonaws.com\"},\"Action\":\"sts:AssumeRole\"}]}"

static bool iam_managed(const char *choice) { return choice && streq(choice, "managed"); }

bool iam_is_managed(const struct aws_run *w)
{
        return iam_managed(w->config->iam.control) || iam_managed(w->config->iam.worker);
}

const char *iam_path(const struct aws_run *w)
{
        return arena_printf((struct arena *)(uintptr_t)&w->arena, "/%s/", w->mark);
}

const char *iam_profile(const struct aws_run *w, const struct node *n)
{
        bool control = n->pool->roles & ROLE_CONTROL_PLANE;
        const char *choice = control ? w->config->iam.control : w->config->iam.worker;
        const struct thing *t = iam_managed(choice)
                                        ? thing_of(w, KIND_PROFILE, control ? "control" : "worker")
                                        : NULL;
        return n == &w->bastion.node ? NULL : t ? t->id : choice;
}

static void policy_text(const struct thing *t, struct args *a)
{
        const char *const *actions = streq(t->role, "control") ? policy_control : policy_worker;
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\","
                    "\"Resource\":\"*\",\"Action\":[");
        for (size_t i = 0; actions[i]; i++)
                str_addf(&s, "%s\"%s\"", i ? "," : "", actions[i]);
        str_add(&s, "]}]}");
        arg_put(a, "PolicyDocument", arena_strdup(a->arena, str_text(&s)));
}

void role_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "RoleName", thing_name(w, t));
        arg_put(a, "Path", iam_path(w));
        arg_put(a, "AssumeRolePolicyDocument", TRUST);
        arg_put(a, "PermissionsBoundary", w->config->iam.permissions_boundary);
}

void policy_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "RoleName", thing_name(w, t));
        arg_put(a, "PolicyName", "slipway");
        policy_text(t, a);
}

void profile_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "InstanceProfileName", thing_name(w, t));
        arg_put(a, "Path", iam_path(w));
}

static const struct aws_profile *profile_row(struct aws_run *w, const struct thing *t)
{
        const struct aws_profile *p;
        for (size_t i = 0; (p = list_row(w, LIST_PROFILES, i)); i++)
                if (streq(p->name, thing_name(w, t)))
                        return p;
        return NULL;
}

bool profile_found(struct aws_run *w, struct thing *t)
{
        const struct aws_profile *p = profile_row(w, t);
        t->id = p ? p->name : t->id;
        return p != NULL;
}

void profile_role_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "InstanceProfileName", thing_name(w, t));
        arg_put(a, "RoleName", thing_name(w, t));
}

bool profile_role_found(struct aws_run *w, struct thing *t)
{
        const struct aws_profile *p = profile_row(w, t);
        return p && p->roles.n;
}

/* A machine: its network interface, which keeps the address, its volumes and its instance. */
#include "base/sha256.h"
#include "provider/aws/kinds.h"
#include "provider/login.h"

#define GIB      ((int64_t)1 << 30)
#define ROOT_GIB 20

struct answers instances_flat(struct aws_run *w, const struct answers *reservations)
{
        const struct aws_reservation *r = reservations->v;
        struct answers out = { 0 };
        for (size_t i = 0; i < reservations->n; i++)
                out.n += r[i].instances.n;
        out.v = arena_alloc(&w->arena, (out.n + 1) * sizeof(struct aws_instance));
        struct aws_instance *at = out.v;
        for (size_t i = 0; i < reservations->n; i++) {
                const struct aws_instance *found = r[i].instances.v;
                for (size_t k = 0; k < r[i].instances.n; k++) /* some reservations have none left */
                        *at++ = found[k];
        }
        return out;
}

static size_t groups_put(struct aws_run *w, const struct node *n, struct args *a)
{
        const struct strings *own = &w->config->security_groups;
        const struct thing *nodes = thing_of(w, KIND_GROUP, "nodes"),
                           *control = thing_of(w, KIND_GROUP, "control");
        size_t count = 0;
        if (n == &w->bastion.node) {
                arg_put(a, "SecurityGroupId.1", thing_of(w, KIND_GROUP, AWS_BASTION)->id);
                return 1;
        }
        if (nodes)
                arg_putf(a, nodes->id, "SecurityGroupId.%zu", ++count);
        if (control && n->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD))
                arg_putf(a, control->id, "SecurityGroupId.%zu", ++count);
        for (size_t i = 0; !nodes && i < own->n; i++)
                arg_putf(a, own->v[i], "SecurityGroupId.%zu", ++count);
        return count;
}

void interface_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "SubnetId", node_subnet(w, t->node, t->node->pool->public_ip));
        arg_put(a, "Description", thing_name(w, t));
        arg_put(a, "PrivateIpAddress", t->with);
        groups_put(w, t->node, a);
}

/* Packets of pods have addresses that AWS does not know. */
void forwarding_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "NetworkInterfaceId", node_thing(w, KIND_INTERFACE, t->node)->id);
        arg_put(a, "SourceDestCheck.Value", "false");
}

void address_on_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "AllocationId", node_thing(w, KIND_ADDRESS, t->node)->id);
        arg_put(a, "NetworkInterfaceId", node_thing(w, KIND_INTERFACE, t->node)->id);
        arg_put(a, "AllowReassociation", "false");
}

bool address_on_found(struct aws_run *w, struct thing *t)
{
        const struct aws_address *e = index_get(&w->lists[LIST_ADDRESSES].by_role, t->role);
        const char *interface = node_thing(w, KIND_INTERFACE, t->node)->id;
        return e && interface && e->interface && streq(e->interface, interface);
}

void volume_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        const struct volume *v = &t->node->pool->volumes.v[t->nth];
        arg_put(a, "AvailabilityZone", node_zone(w, t->node));
        arg_number(a, "Size", (v->size + GIB - 1) / GIB);
        arg_put(a, "VolumeType", v->type ? v->type : "gp3");
        arg_put(a, "Encrypted", "true");
}

/* As large as the file says; otherwise room for images of containers, or what the AMI needs. */
static int64_t root_size(const struct root_volume *v, const struct aws_image *image)
{
        const struct aws_image_disk *d = image->disks.v;
        int64_t size = ROOT_GIB;
        for (size_t i = 0; i < image->disks.n; i++)
                if (d[i].device && image->root_device && streq(d[i].device, image->root_device) &&
                        d[i].size > size)
                        size = d[i].size;
        return v->size ? (v->size + GIB - 1) / GIB : size;
}

static void root_volume_put(const struct pool *p, const struct aws_image *image, struct args *a)
{
        const struct root_volume *v = &p->root_volume;
        arg_put(a, "BlockDeviceMapping.1.DeviceName",
                image->root_device ? image->root_device : "/dev/xvda");
        arg_put(a, "BlockDeviceMapping.1.Ebs.VolumeType", v->type ? v->type : "gp3");
        arg_put(a, "BlockDeviceMapping.1.Ebs.Encrypted", v->encrypted ? "true" : "false");
        arg_put(a, "BlockDeviceMapping.1.Ebs.KmsKeyId", v->kms_key);
        arg_number(a, "BlockDeviceMapping.1.Ebs.VolumeSize", root_size(v, image));
        if (v->iops)
                arg_number(a, "BlockDeviceMapping.1.Ebs.Iops", v->iops);
        arg_put(a, "BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true");
}

static void metadata_put(const struct aws_run *w, struct args *a)
{
        arg_put(a, "MetadataOptions.HttpTokens", "required");
        arg_put(a, "MetadataOptions.HttpEndpoint", "enabled");
        arg_number(a, "MetadataOptions.HttpPutResponseHopLimit", w->config->imds.hop_limit);
        arg_put(a, "MetadataOptions.InstanceMetadataTags",
                w->config->imds.tags ? "enabled" : "disabled");
}

/* Where the machine has its volumes: the path has the volume's id, so the order of disks does not
 * matter. */
void node_devices(struct aws_run *w, const struct node *n)
{
        struct cluster *c = w->run->cluster;
        const struct node *in = cluster_node(c, n->name);
        struct node *to = in ? &c->nodes[in - c->nodes] : NULL;
        for (size_t i = 0; to && i < n->pool->volumes.n; i++) {
                const char *role = arena_printf(&w->arena, "volume/%s/%zu", n->name, i + 1);
                const struct thing *v = thing_of(w, KIND_VOLUME, role);
                if (!v || !v->id || !has_prefix(v->id, "vol-"))
                        continue;
                if (!to->devices)
                        to->devices = arena_array(c->arena, const char *, n->pool->volumes.n + 1);
                to->devices[i] = arena_printf(c->arena,
                        "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol%.40s", v->id + 4);
        }
}

static void user_data_put(struct aws_run *w, const struct thing *t, struct args *a)
{
        struct str text CLEANUP(str_release) = { 0 }, coded CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        node_devices(w, t->node);
        const char *user = t->node->pool->roles
                                   ? w->config->user
                                   : bastion_user(&w->config->bastion, w->config->user);
        if (provider_user_data(w->run, t->node, w->config->user_data, user, &text, &err) < 0)
                return; /* create has asked before, and said why */
        str_add_base64(&coded, str_text(&text), text.len);
        arg_put(a, "UserData", arena_strdup(a->arena, str_text(&coded)));
}

void instance_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        const struct pool *p = t->node->pool;
        const struct aws_image *image = image_of(w, p);
        arg_put(a, "ImageId", image->id);
        arg_put(a, "InstanceType", p->instance_type);
        arg_put(a, "MinCount", "1");
        arg_put(a, "MaxCount", "1");
        arg_put(a, "NetworkInterface.1.DeviceIndex", "0");
        arg_put(a, "NetworkInterface.1.NetworkInterfaceId",
                node_thing(w, KIND_INTERFACE, t->node)->id);
        arg_put(a, "Placement.AvailabilityZone", node_zone(w, t->node));
        arg_put(a, "IamInstanceProfile.Name", iam_profile(w, t->node));
        arg_put(a, "KeyName", w->config->keypair);
        if (p->spot) {
                arg_put(a, "InstanceMarketOptions.MarketType", "spot");
                arg_put(a, "InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
        }
        root_volume_put(p, image, a);
        metadata_put(w, a);
        user_data_put(w, t, a);
        arg_put(a, "TagSpecification.2.ResourceType", "volume");
        tags_put(w,
                &(struct thing){ .kind = KIND_VOLUME,
                        .role = arena_printf(a->arena, "root/%s", t->node->name) },
                "TagSpecification.2.Tag.", a);
}

bool instance_ready(const struct thing *t)
{
        const struct aws_instance *i = t->is;
        return i && i->state && streq(i->state, "running");
}

void volume_on_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "VolumeId", t->needs[0]->id);
        arg_put(a, "InstanceId", t->needs[1]->id);
        arg_put(a, "Device", arena_printf(a->arena, "/dev/sd%c", (char)('f' + t->nth)));
}

bool volume_on_found(struct aws_run *w, struct thing *t)
{
        const struct aws_volume *v = index_get(&w->lists[LIST_VOLUMES].by_role, t->role);
        const struct aws_attachment *on = v ? v->attachments.v : NULL;
        const char *instance = t->needs[1]->id;
        for (size_t i = 0; v && instance && i < v->attachments.n; i++)
                if (on[i].instance && streq(on[i].instance, instance))
                        return true;
        return false;
}

#include "base/quote.h"
#include "config/minors.h"
#include "provider/first_file.h"
#include "provider/suggest.h"

#define HEAD \
        "apiVersion: slipway.dev/v1alpha1\n" \
        "kind: Cluster\n" \
        "metadata:\n" \
        "  name: <name=>\n" \
        "spec:\n" \
        "  kubernetes: " KUBERNETES_NEWEST "\n"

/* <KEY=DEFAULT> is what was asked for or what the cloud suggests; a comment behind it stays in its
 * column. */
static const struct first_file_row {
        const char *provider, *name, *text, *before;
} templates[] = {
        { "local", "demo",
                "# Three machines on this computer. Every field: docs/config.md, or `slipway schema --docs`.\n" HEAD
                "  pools:\n"
                "    - {name: control, roles: [control-plane, etcd], count: 1}\n"
                "    - {name: worker, count: 2}                 # the number of machines\n"
                "  # network:\n"
                "  #   pods: 10.244.0.0/16                      # ranges that nothing else uses\n"
                "  #   services: 10.96.0.0/12\n",
                "" },
        { "ssh", "prod",
                "# Machines you have, reached with ssh. The addresses are examples: put in yours.\n"
                "# Every field: docs/config.md, or `slipway schema --docs`.\n" HEAD "  provider:\n"
                "    ssh:\n"
                "      user: root                               # any other user needs sudo\n"
                "      # key: ~/.ssh/id_ed25519                 # default: the key that ssh chooses\n"
                "      # bastion: ops@jump.example.net          # default: connect directly\n"
                "  api:\n"
                "    vip: 192.0.2.10                            # a free address of the machines' network; the control plane holds it\n"
                "    # names: [k8s.example.net]                 # also in the API's certificate\n"
                "  pools:\n"
                "    - name: control\n"
                "      roles: [control-plane, etcd]             # an odd number of machines: 1, 3 or 5\n"
                "      hosts: [192.0.2.11, 192.0.2.12, 192.0.2.13]\n"
                "      # disks:                                 # formatted only if blank\n"
                "      #   - {device: /dev/sdb, mount: /var/lib/etcd}\n"
                "    - name: worker\n"
                "      hosts:\n"
                "        - {name: w1, address: 192.0.2.21}\n"
                "        - {name: w2, address: 192.0.2.22}\n"
                "  # registry: {mirror: \"registry.example.net:5000\"}\n"
                "  # proxy: {http: \"http://proxy.example.net:3128\", https: \"http://proxy.example.net:3128\"}\n",
                "put your machines' addresses and a free address for the VIP into the file, then: " },
        { "openstack", "prod",
                "# A cluster in OpenStack. slipway creates the machines, network and load balancer.\n"
                "# Every field: docs/config.md, or `slipway schema --docs`; docs/openstack.md explains them.\n" HEAD
                "  provider:\n"
                "    openstack:\n"
                "      cloud: <cloud=mycloud>                           # an entry of clouds.yaml\n"
                "      image: <image=debian-12>                         # by name or id\n"
                "      externalNetwork: <external=public>                  # the router of the new network leads there\n"
                "      # network: <network=private-net>                   # an existing network, instead of a new one\n"
                "      loadBalancer: <balancer=octavia>                    # or vip, or none\n"
                "      # bastion: {flavor: <flavor=m1.large>}   # a jump host that slipway makes; or the address of one\n"
                "  pools:\n"
                "    - {name: control, roles: [control-plane, etcd], count: 3, flavor: <flavor=m1.large>}\n"
                "    - {name: worker, count: 3, flavor: <flavor=m1.large>}\n"
                "  # os: {authorizedKeys: [\"ssh-ed25519 AAAA… me\"]}   # additional keys that may log in\n",
                "put in your cloud, image, network and flavors, then: " },
        { "aws", "prod",
                "# Machines that slipway creates in AWS. The credentials come from the environment or a profile.\n"
                "# Every field: docs/config.md, or `slipway schema --docs`.\n" HEAD "  provider:\n"
                "    aws:\n"
                "      region: <region=eu-central-1>\n"
                "      zones: <zones=[eu-central-1a, eu-central-1b, eu-central-1c]>\n"
                "      image: {name: <image=debian-12-amd64-*>, owner: <owner=\"136693071363\">}   # the account of the distribution\n"
                "      # vpc: {id: <vpc=vpc-0123456789abcdef0>, subnets: <subnets=[subnet-0123456789abcdef0]>}   # an existing VPC, instead of a new one\n"
                "      loadBalancer: nlb                        # or nlb-internal, or none\n"
                "      # access: {ssh: [192.0.2.0/24], api: [192.0.2.0/24]}   # networks that may connect from outside\n"
                "      # bastion: {instanceType: t3.micro}      # a jump host that slipway makes; or the address of one\n"
                "  pools:\n"
                "    - {name: control, roles: [control-plane, etcd], count: 3, instanceType: <type=m7i.large>}\n"
                "    - {name: worker, count: 3, instanceType: <type=m7i.large>}\n",
                "put in your region, zones and instance types, then: " },
        { "terraform", "prod",
                "# Machines that Terraform or OpenTofu creates from files that slipway writes: docs/terraform.md.\n"
                "# Every field: docs/config.md, or `slipway schema --docs`.\n" HEAD "  provider:\n"
                "    terraform:\n"
                "      platform: hetzner                        # or openstack, aws, gce, azure, vsphere, oci\n"
                "      dir: infra                               # the files, and the state of Terraform\n"
                "      user: root                               # the login user of the image\n"
                "      variables: {image: debian-12, size: cx32, zones: \"fsn1, nbg1, hel1\"}\n"
                "  os:\n"
                "    authorizedKeys: [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2x6vVtZ0oXlqQ2q0Y8bq7G8N0mO1uJmG3q1oYpDnZr example\"]\n"
                "  pools:\n"
                "    - {name: control, roles: [control-plane, etcd], count: 3}\n"
                "    - {name: worker, count: 3}\n",
                "put in your platform and ssh key, then: " },
};

static const struct first_file_row *first_template(const char *provider)
{
        for (size_t i = 0; i < ARRAY_SIZE(templates); i++)
                if (streq(templates[i].provider, provider))
                        return &templates[i];
        return NULL;
}

/* A list of names stays one; other values are quoted where they must be. */
#define FIRST_LIST "[abcdefghijklmnopqrstuvwxyz0123456789-, ]"

/* Spaces before a comment give way to a long value. */
static const char *first_keep_column(struct str *out, const char *text, size_t has, size_t had)
{
        if (!has_prefix(text, "  "))
                return text;
        for (; had < has && has_prefix(text, "  "); had++)
                text++;
        for (; had > has; had--)
                str_add(out, " ");
        return text;
}

static void first_fill_in(struct str *out, const char *text, const struct suggestions *values)
{
        for (const char *at; (at = strchr(text, '<'));) {
                const char *is = strchr(at, '='), *end = strchr(at, '>');
                char *key CLEANUP(free_p) = xasprintf("%.*s", (int)(is - at - 1), at + 1);
                const char *value = suggest_get(values, key);
                size_t had = (size_t)(end - is - 1), before;
                str_addn(out, text, (size_t)(at - text));
                before = out->len;
                if (value && *value == '[' && !value[strspn(value, FIRST_LIST)])
                        str_add(out, value);
                else if (value)
                        quote_yaml(out, value);
                else
                        str_addn(out, is + 1, had);
                text = first_keep_column(out, end + 1, out->len - before, had);
        }
        str_add(out, text);
}

int first_file(const char *provider, const char *name, struct str *out, const char **before,
        struct error *unasked, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct suggestions values = { 0 };
        const struct first_file_row *t = first_template(provider);
        if (!t)
                return error_set(err, EINVAL, EXIT_USAGE, "there is no provider %s", provider);
        if (provider_suggest(t->provider, &a, &values, unasked) < 0)
                values = (struct suggestions){ 0 };
        *before = values.n ? "check the names, which come from the cloud, then: " : t->before;
        suggest_put(&values, "name", name ? name : t->name);
        first_fill_in(out, t->text, &values);
        return 0;
}

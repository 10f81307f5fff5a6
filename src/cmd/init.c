/* init: writes a first cluster.yaml, short, commented and valid. */
#include "base/file.h"
#include "base/quote.h"
#include "cmd/init.h"
#include "config/minors.h"
#include "config/scalar.h"
#include "provider/suggest.h"

#define HEAD \
        "apiVersion: slipway.dev/v1alpha1\n" \
        "kind: Cluster\n" \
        "metadata:\n" \
        "  name: <name=>\n" \
        "spec:\n" \
        "  kubernetes: " KUBERNETES_NEWEST "\n"

/* <KEY=DEFAULT> is what was asked for or what the cloud suggests; a comment behind it keeps its
 * column. */
static const struct init_template {
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

static const struct init_template *template_for(const char *provider)
{
        for (size_t i = 0; i < ARRAY_SIZE(templates); i++)
                if (streq(templates[i].provider, provider))
                        return &templates[i];
        return NULL;
}

/* A list of names stays one; other values are quoted where they must be. */
#define INIT_LIST "[abcdefghijklmnopqrstuvwxyz0123456789-, ]"

/* Spaces before a comment give way to a long value. */
static const char *init_keep_column(struct str *out, const char *text, size_t has, size_t had)
{
        if (!has_prefix(text, "  "))
                return text;
        for (; had < has && has_prefix(text, "  "); had++)
                text++;
        for (; had > has; had--)
                str_add(out, " ");
        return text;
}

static void init_fill_in(struct str *out, const char *text, const struct suggestions *values)
{
        for (const char *at; (at = strchr(text, '<'));) {
                const char *is = strchr(at, '='), *end = strchr(at, '>');
                char *key CLEANUP(free_p) = xasprintf("%.*s", (int)(is - at - 1), at + 1);
                const char *value = suggest_get(values, key);
                size_t had = (size_t)(end - is - 1), before;
                str_addn(out, text, (size_t)(at - text));
                before = out->len;
                if (value && *value == '[' && !value[strspn(value, INIT_LIST)])
                        str_add(out, value);
                else if (value)
                        quote_yaml(out, value);
                else
                        str_addn(out, is + 1, had);
                text = init_keep_column(out, end + 1, out->len - before, had);
        }
        str_add(out, text);
}

/* A cloud that cannot be asked is no reason to write nothing. */
static void init_ask_cloud(const struct init_template *t, struct arena *a, struct suggestions *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (provider_suggest(t->provider, a, out, &err) < 0) {
                print_err(
                        "the cloud could not be asked, so the names in the file are examples: %s\n",
                        err.message);
                *out = (struct suggestions){ 0 };
        }
}

int init_path(const struct options *o, const char **path, struct error *err)
{
        *path = o->files.n ? o->files.v[0] : "cluster.yaml";
        if (o->files.n > 1) {
                error_set(err, EINVAL, EXIT_USAGE, "init writes one file, and -f names %zu",
                        o->files.n);
                return error_hint(err, "give -f once");
        }
        if (o->name && name_fault(o->name)) {
                error_set(err, EINVAL, EXIT_USAGE, "--name: \"%s\" cannot be a cluster's name: %s",
                        o->name, name_fault(o->name));
                return error_hint(err, "a name such as prod or team-a will do");
        }
        if (streq(*path, "-") || o->force || access(*path, F_OK) < 0)
                return 0;
        error_set(err, EEXIST, EXIT_USAGE, "%s exists already and was not changed", *path);
        return error_hint(err, "--force overwrites it; -f writes another file");
}

int init_write(const char *path, const struct str *text, struct error *err)
{
        if (!streq(path, "-"))
                return file_write(path, str_text(text), text->len, 0644, FILE_SYNC, NULL, err);
        print_text(stdout, str_text(text));
        return 0;
}

static void report_json(const char *path, const struct notes *notes)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, "{\"file\": ");
        quote_json(&s, path);
        str_add(&s, ", \"notes\": [");
        for (const struct note *n = notes ? notes->first : NULL; n; n = n->next) {
                quote_json(&s, n->text);
                str_add(&s, n->next ? ", " : "");
        }
        str_add(&s, "]}\n");
        print_text(stdout, str_text(&s));
}

void init_report(
        const struct options *o, const char *path, const struct notes *notes, const char *before)
{
        if (streq(path, "-"))
                return;
        if (o->output && streq(o->output, "json")) {
                report_json(path, notes);
                return;
        }
        print("wrote %s\n", path);
        if (notes && notes->count)
                print("%zu setting%s need%s your attention: look for NOTE in the file\n",
                        notes->count, notes->count == 1 ? "" : "s", notes->count == 1 ? "s" : "");
        print("next: %sslipway check%s%s\n", before, streq(path, "cluster.yaml") ? "" : " -f ",
                streq(path, "cluster.yaml") ? "" : path);
}

int cmd_init(const struct options *o, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct suggestions values;
        const char *path;
        if (o->from_kubespray && o->provider) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "--provider and --from-kubespray exclude each other: the machines of an inventory are reached over ssh");
                return error_hint(err, "leave --provider out");
        }
        if (o->from_kubespray)
                return init_from_kubespray(o, err);
        int r = init_path(o, &path, err);
        if (r < 0)
                return r;
        const struct init_template *t = template_for(o->provider ? o->provider : "local");
        if (!t)
                return error_set(err, EINVAL, EXIT_USAGE, "there is no provider %s", o->provider);
        init_ask_cloud(t, &a, &values);
        bool asked = values.n > 0;
        suggest_put(&values, "name", o->name ? o->name : t->name);
        init_fill_in(&text, t->text, &values);
        r = init_write(path, &text, err);
        if (r < 0)
                return r;
        init_report(o, path, NULL,
                asked ? "check the names, which come from the cloud, then: " : t->before);
        return EXIT_OK;
}

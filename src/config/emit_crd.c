/* The CustomResourceDefinition: the object around it is written as it is, the schema comes
 * from the table. */
#include "base/quote.h"
#include "config/emit.h"

static const char crd_head[] =
        "apiVersion: apiextensions.k8s.io/v1\n"
        "kind: CustomResourceDefinition\n"
        "metadata:\n"
        "  name: clusters.slipway.dev\n"
        "spec:\n"
        "  group: slipway.dev\n"
        "  scope: Namespaced\n"
        "  names:\n"
        "    kind: Cluster\n"
        "    listKind: ClusterList\n"
        "    plural: clusters\n"
        "    singular: cluster\n"
        "    shortNames: [swc]\n"
        "  versions:\n"
        "  - name: v1alpha1\n"
        "    served: true\n"
        "    storage: true\n"
        "    subresources: {status: {}}\n"
        "    additionalPrinterColumns:\n"
        "    - {name: Version, type: string, jsonPath: .spec.kubernetes}\n"
        "    - {name: Nodes, type: integer, jsonPath: .status.nodes}\n"
        "    - {name: Ready, type: integer, jsonPath: .status.ready}\n"
        "    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}\n"
        "    schema:\n"
        "      openAPIV3Schema:\n"
        "        description: A Kubernetes cluster managed by slipway.\n"
        "        type: object\n"
        "        required: [spec]\n"
        "        properties:\n"
        "          apiVersion: {type: string}\n"
        "          kind: {type: string}\n"
        "          metadata: {type: object}\n"
        "          status:\n"
        "            description: The state that the controller observes.\n"
        "            type: object\n"
        "            x-kubernetes-preserve-unknown-fields: true\n"
        "            properties:\n"
        "              nodes: {type: integer, description: How many nodes there are.}\n"
        "              ready: {type: integer, description: How many of them are Ready.}\n"
        "          spec:\n";

/* ---- JSON as YAML, block style ---- */

static void add_yaml(struct str *out, json_t *v, int indent);

static void add_yaml_scalar(struct str *out, json_t *v)
{
        if (json_is_string(v))
                return quote_yaml(out, json_string_value(v));
        char *text CLEANUP(free_p) = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        str_add(out, text);
}

static void add_yaml_list(struct str *out, json_t *list, int indent)
{
        size_t i;
        json_t *v;
        json_array_foreach(list, i, v)
        {
                str_addf(out, "%*s- ", indent, "");
                if (!json_is_object(v)) {
                        add_yaml_scalar(out, v);
                        str_addc(out, '\n');
                        continue;
                }
                struct str body CLEANUP(str_release) = { 0 };
                add_yaml(&body, v, indent + 2);
                /* its first line stands behind the dash */
                str_add(out, str_text(&body) + indent + 2);
        }
}

static void add_yaml(struct str *out, json_t *v, int indent)
{
        const char *key;
        json_t *child;
        json_object_foreach(v, key, child)
        {
                str_addf(out, "%*s", indent, "");
                quote_yaml(out, key);
                str_addc(out, ':');
                if (json_is_object(child) && json_object_size(child)) {
                        str_addc(out, '\n');
                        add_yaml(out, child, indent + 2);
                } else if (json_is_array(child) && json_array_size(child)) {
                        str_addc(out, '\n');
                        add_yaml_list(out, child, indent + 2);
                } else {
                        str_addc(out, ' ');
                        add_yaml_scalar(out, child);
                        str_addc(out, '\n');
                }
        }
}

void schema_crd(struct str *out)
{
        json_t *spec = emit_spec(true, NULL);
        str_add(out, crd_head);
        add_yaml(out, spec, 12);
        json_decref(spec);
}

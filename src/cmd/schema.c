/* schema: the options of cluster.yaml, as JSON Schema, as a CRD and as documentation. */
#include "cmd/cmd.h"
#include "config/schema.h"

int cmd_schema(const struct options *o, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        if (o->crd && o->docs) {
                error_set(err, EINVAL, EXIT_USAGE, "--crd and --docs exclude each other");
                return error_hint(err, "give one of them");
        }
        if (o->crd)
                schema_crd(&text);
        else if (o->docs)
                schema_docs(&text);
        else
                schema_json(&text);
        print_text(stdout, str_text(&text));
        return EXIT_OK;
}

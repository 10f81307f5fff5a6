/* The verbs: one row and one file each. */
#include "cmd/cmd.h"

const struct verb verb_table[] = {
        { .name = "init",
                .args = "",
                .summary = "write a first cluster.yaml",
                .help = "Writes a short, commented file for the provider (local when none is named). With --from-kubespray it reads a Kubespray inventory "
                        "directory instead "
                        "and says what it could not carry over. An existing file is kept unless --force is given.",
                .options = "provider name from-kubespray force",
                .run = cmd_init },
        { .name = "check",
                .args = "",
                .summary = "check cluster.yaml and list every problem",
                .help = "Reads the files of -f in order (defaults, site, cluster: later ones win), and lists all that is wrong with the result, each with its "
                        "place and a hint. "
                        "Nothing is written and nothing is contacted.",
                .options = "",
                .run = cmd_check },
        { .name = "render",
                .args = "",
                .summary = "write every node's files, or its user-data",
                .help = "Shows exactly what each node will hold. --format files writes DIR/NODE/root/... and DIR/NODE/nodespec.json; cloud-init and ignition "
                        "write the user-data of machines "
                        "that a provider makes, which holds immutable entries only. Without -d, one node's user-data goes to standard output and files are "
                        "listed. Secrets are left out unless "
                        "--secrets is given. Certificates come from the state directory and are made there the first time.",
                .options = "format node dir secrets facts",
                .run = cmd_render },
        { .name = "up",
                .args = "",
                .summary = "make the cluster as the file says, or go on making it",
                .help = "Finds or makes the machines, looks at every one before anything changes, applies all nodes at once, and waits until every node is "
                        "Ready and DNS runs. "
                        "A run that was stopped goes on where it stopped; a second run changes nothing.",
                .options = "",
                .run = cmd_up },
        { .name = "down",
                .args = "",
                .summary = "take away the machines that slipway made",
                .help = "Removes every machine of the cluster with all it holds. The cluster's certificates stay in the state directory.",
                .options = "",
                .run = cmd_down },
        { .name = "kubeconfig",
                .args = "",
                .summary = "print the kubeconfig of the administrator and the users",
                .help = "Certificates come from the state directory and are made there the first time. What is printed is secret.",
                .options = "facts",
                .run = cmd_kubeconfig },
        { .name = "schema",
                .args = "",
                .summary = "print the schema of cluster.yaml",
                .help = "JSON Schema for editors; --crd prints the CustomResourceDefinition for kubectl apply, --docs the reference in Markdown.",
                .options = "crd docs",
                .run = cmd_schema },
        { .name = "completion",
                .args = "bash|zsh|fish",
                .arg_words = "bash zsh fish",
                .min_args = 1,
                .max_args = 1,
                .summary = "print shell completion",
                .help = "bash: source <(slipway completion bash). zsh: slipway completion zsh > a file _slipway on $fpath. fish: slipway completion fish | "
                        "source.",
                .options = "",
                .run = cmd_completion },
        { .name = "help",
                .args = "[VERB]",
                .max_args = 1,
                .summary = "explain a verb, or print the man page",
                .help = "--man prints the man page: slipway help --man | man -l -",
                .options = "man",
                .run = cmd_help },
        { .name = "version", .args = "", .summary = "print the version", .options = "", .run = cmd_version },
};
const size_t verb_count = ARRAY_SIZE(verb_table);

const struct verb *verb_find(const char *name)
{
        for (size_t i = 0; i < verb_count; i++)
                if (streq(verb_table[i].name, name))
                        return &verb_table[i];
        return NULL;
}

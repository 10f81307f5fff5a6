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
        { .name = "plan",
                .args = "",
                .summary = "say what up would change, node by node, and what that disrupts",
                .help = "Looks at every machine, at etcd and at the API, and changes nothing: each node with what would become of it, each file and unit that "
                        "differs, what restarts, which nodes are drained, made or removed. With --exit-code the status is 9 when there is something to do.",
                .options = "exit-code ask-sudo-password",
                .run = cmd_plan },
        { .name = "up",
                .args = "",
                .summary = "make the cluster as the file says, or change it until it is so",
                .help = "Looks at every machine, shows the plan and asks (--yes: does not), then does that and no more. A cluster that is yet to be is made "
                        "all at "
                        "once; one that lives is changed one control-plane node after another, etcd members come as learners, workers whose kubelet or runtime "
                        "changes are drained, and each node must be well before the next. Nodes that are no longer in the file are removed: without a terminal "
                        "only "
                        "with --yes. A run that was stopped goes on where it stopped; a second run changes nothing.",
                .options = "yes ask-sudo-password",
                .run = cmd_up },
        { .name = "scale",
                .args = "POOL=N...",
                .min_args = 1,
                .max_args = -1,
                .summary = "write another count of a pool into the file, and do what 'up' does",
                .help = "The plan is shown and asked for as in 'up'; only then the file is written, with its comments and spacing as they were. A run that is "
                        "stopped later goes on with 'slipway up'. New machines are numbered on; the ones with the highest numbers go first. A pool of hosts "
                        "has "
                        "no count: add the host to the file, or take it out with 'slipway remove-node'.",
                .options = "yes ask-sudo-password",
                .run = cmd_scale },
        { .name = "remove-node",
                .args = "NODE...",
                .min_args = 1,
                .max_args = -1,
                .summary = "take nodes out of the file and out of the cluster",
                .help = "A host leaves its pool's list; of counted machines there is one less, and the number of the one that went is put under 'without', so "
                        "that "
                        "no other node changes its name or address. Then it is as in 'up': the plan, the question, the file, and the run. The node is drained, "
                        "leaves etcd and the API, and its machine goes; on a host of yours Kubernetes is taken off. One that is dead is taken out without "
                        "being asked. Refused when etcd would lose its quorum.",
                .options = "yes ask-sudo-password",
                .run = cmd_remove_node },
        { .name = "upgrade",
                .args = "VERSION",
                .min_args = 1,
                .max_args = 1,
                .summary = "take the cluster to another version of Kubernetes",
                .help = "Writes the version into the file and does what up does then: looks for APIs in use that the new version does not have, sends the new "
                        "programs to "
                        "all nodes while the old version runs, takes a snapshot of etcd, then changes control-plane nodes one by one and workers "
                        "upgrade.workersAtOnce "
                        "at a time, each drained (disruption budgets are kept), changed, looked at and given back. A node that does not become well goes back "
                        "to its old "
                        "version by itself. Killed anywhere, the next upgrade or up goes on where it stopped. No minor version may be skipped. --force: in "
                        "spite of APIs "
                        "that go away.",
                .options = "yes force ask-sudo-password",
                .run = cmd_upgrade },
        { .name = "rollback",
                .args = "",
                .summary = "take the cluster back to the version before the last upgrade",
                .help = "Goes back the way upgrade came: control-plane nodes one by one, then workers. Refused when the API stores some things in another form "
                        "since; then "
                        "--force, and the snapshot that the upgrade took.",
                .options = "yes force ask-sudo-password",
                .run = cmd_rollback },
        { .name = "down",
                .args = "",
                .summary = "take away the machines that slipway made",
                .help = "Removes every machine of the cluster with all it holds. On hosts you have (provider ssh) it is 'reset' of all of them. The cluster's "
                        "certificates stay in the state directory.",
                .options = "yes force",
                .run = cmd_down },
        { .name = "reset",
                .args = "[NODE...]",
                .max_args = -1,
                .summary = "take Kubernetes off hosts and leave them as they were",
                .help = "A node is drained, leaves etcd and the API, and then everything that slipway and the cluster's programs put on its host goes: files, "
                        "units, containers, images, mounts, links, rules, packages that came with it. What was there before is put back. A member that etcd "
                        "needs "
                        "for its "
                        "quorum is refused. It works on a broken node, and may be repeated. Without a NODE it is the whole cluster: you are asked for its "
                        "name unless --yes is given. --force leaves without a drain, and without the API if that does not answer.",
                .options = "yes force",
                .run = cmd_reset },
        { .name = "adopt",
                .args = "[USER@]HOST[:PORT]",
                .min_args = 1,
                .max_args = 1,
                .summary = "take over a cluster that kubeadm made",
                .help = "Reads the cluster through a control-plane HOST and its API, writes cluster.yaml (-f names another file) and takes the cluster's "
                        "authorities and "
                        "keys into the state directory. Nothing on the hosts is changed: 'slipway plan' shows what 'slipway up' would, and what need not "
                        "change (etcd as a "
                        "static pod, kube-proxy as a DaemonSet, the runtime, the fabric, DNS) is kept as an option. What cannot be kept is refused with a "
                        "sentence.",
                .options = "name force key ssh-option",
                .run = cmd_adopt },
        { .name = "kubeconfig",
                .args = "",
                .summary = "print the kubeconfig of the administrator and the users, or merge it into yours",
                .help = "Certificates come from the state directory and are made there the first time. What is printed is secret. With --merge it goes into "
                        "your "
                        "own file instead: entries of this cluster are replaced, all others stay as they are, and the current context changes only when there "
                        "is none or --use is given.",
                .options = "facts merge kubeconfig use",
                .run = cmd_kubeconfig },
        { .name = "status",
                .args = "",
                .summary = "say how the cluster is: nodes, API, etcd, certificates, versions, drift",
                .help = "Asks every machine, etcd and the API at once and changes nothing; a run that is under way is not disturbed. What cannot be reached is "
                        "said "
                        "so. The exit status is 0 when all is well and 7 when something is not. With --watch it goes on asking the API every two seconds and "
                        "the "
                        "machines every ten, "
                        "until it is interrupted: on a terminal the picture is drawn anew, elsewhere there is a line for every change, and with -o json an "
                        "object a line.",
                .options = "watch ask-sudo-password",
                .run = cmd_status },
        { .name = "ssh",
                .args = "NODE [-- COMMAND...]",
                .min_args = 1,
                .max_args = -1,
                .summary = "open a shell on a node, or run a command there",
                .help = "Runs your own ssh with the node's address, user, key and host key filled in. The words of the command reach the node as they are "
                        "given: slipway ssh w1 -- sh -c 'uptime; df -h'. The exit status is ssh's.",
                .options = "",
                .run = cmd_ssh },
        { .name = "logs",
                .args = "NODE [COMPONENT]",
                .min_args = 1,
                .max_args = 2,
                .summary = "print what a component of a node says",
                .help = "Without COMPONENT it lists those that the node runs: apiserver, controller-manager, scheduler, etcd, kubelet, containerd, kube-proxy, "
                        "flanneld, haproxy, keepalived.",
                .options = "follow lines ask-sudo-password",
                .run = cmd_logs },
        { .name = "certs",
                .args = "list|renew|rotate-ca [NODE...|cluster|etcd|front-proxy|sa|all]",
                .arg_words = "list renew rotate-ca",
                .min_args = 1,
                .max_args = -1,
                .summary = "list every certificate, renew them, or change the authorities",
                .help = "list shows every certificate on every node, in kubeconfigs there and in the state directory: whose it is, who signed it, how long it "
                        "is good, who uses it; the exit status is 7 when one has expired. renew issues all anew (or those of the named nodes) and rolls them "
                        "out as up does. up renews by itself what has less than a third of its life left, also when everything has expired. rotate-ca changes "
                        "the authorities or the key of service accounts in three rolls: both are believed, the new one signs, the old one goes; one that "
                        "was stopped goes on with the next up. certificates.ca in cluster.yaml may name the new authority.",
                .options = "yes finish ask-sudo-password",
                .run = cmd_certs },
        { .name = "encryption",
                .args = "rotate",
                .arg_words = "rotate",
                .min_args = 1,
                .max_args = 1,
                .summary = "encrypt secrets in etcd with a new key",
                .help = "The new key is made known to all API servers, then it encrypts, then every object of encryption.resources is written again, then "
                        "the old key goes. One that was stopped goes on with the next up.",
                .options = "yes ask-sudo-password",
                .run = cmd_encryption },
        { .name = "token",
                .args = "create|list|delete [ID]",
                .arg_words = "create list delete",
                .min_args = 1,
                .max_args = 2,
                .summary = "make, list or delete tokens with which machines join",
                .help = "create prints the kubeadm join line for a machine that slipway does not keep; the token is good for --ttl. list shows the tokens "
                        "without "
                        "their secrets. delete takes a token's ID, the six characters before the dot.",
                .options = "ttl",
                .run = cmd_token },
        { .name = "etcd",
                .args = "members|snapshot|restore|recover|drill|defrag [SNAPSHOT]",
                .arg_words = "members snapshot restore recover drill defrag",
                .min_args = 1,
                .max_args = 2,
                .summary = "look after the store: members, snapshots, restore, recovery",
                .help = "members says who is in etcd and how they are. snapshot takes a copy of the store, checks it and brings it here. drill restores the "
                        "newest "
                        "snapshot (or the one named) into an etcd and an API server of its own on this computer and counts what reads back. restore puts a "
                        "snapshot back, onto the machines that are there or onto new ones; what was written after it is lost, so it asks, and a script gives "
                        "--yes. recover rebuilds etcd after its "
                        "quorum is gone from the member with the newest data. defrag gives free space back, one member at a time, the leader last.",
                .options = "dir to force yes",
                .run = cmd_etcd },
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

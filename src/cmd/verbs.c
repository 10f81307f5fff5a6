/* The verbs: one row and one file each. */
#include "cmd/cmd.h"

const struct verb verb_table[] = {
        { .name = "init",
                .args = "",
                .summary = "write a first cluster.yaml",
                .help = "Writes a short, commented cluster.yaml for a provider (by default local). "
                        "For openstack it asks the cloud for an image, a flavor and networks, if "
                        "there are credentials, and writes their names. With --from-kubespray it reads a Kubespray inventory directory instead and "
                        "lists the settings that it could not convert. An existing file is not "
                        "overwritten unless --force is given.",
                .options = "provider name from-kubespray force",
                .force = "overwrite an existing file",
                .run = cmd_init },
        { .name = "check",
                .args = "",
                .summary = "check cluster.yaml and list every problem",
                .help = "Reads the files given with -f in order (for example defaults, site, "
                        "cluster: later files override earlier ones) and lists every problem of the "
                        "result with its position and a hint. It writes nothing and connects to "
                        "nothing. With --hardening it shows which controls of the CIS benchmark the "
                        "cluster would pass.",
                .options = "hardening",
                .run = cmd_check },
        { .name = "render",
                .args = "",
                .summary = "write every node's files, or its user-data",
                .help = "Writes exactly the files that each node will have. --format files writes "
                        "DIR/NODE/root/... and DIR/NODE/nodespec.json; cloud-init and ignition "
                        "write the user-data for creating machines, which holds only immutable "
                        "entries; user-data writes the one of these two formats that each machine "
                        "needs. Without -d, the user-data of one node is printed, and files are only listed. Secrets "
                        "are left out unless --secrets is given. Certificates are read from the "
                        "state directory and created there the first time.",
                .options = "format node dir secrets facts",
                .run = cmd_render },
        { .name = "plan",
                .args = "",
                .summary = "show what up would change, node by node, and what that disrupts",
                .help = "Inspects every machine, etcd and the API, and changes nothing. Shows for "
                        "each node what would be done, which files and units differ, what restarts, "
                        "and which nodes would be drained, created or removed. With --exit-code the "
                        "exit status is 9 if there is something to do.",
                .options = "exit-code ask-sudo-password",
                .run = cmd_plan },
        { .name = "up",
                .args = "",
                .summary = "create the cluster, or change it until it matches the file",
                .help = "Inspects every machine, shows the plan, asks for confirmation (unless "
                        "--yes is given), and then carries out exactly that plan. A new cluster is "
                        "created on all nodes at the same time. In an existing cluster, "
                        "control-plane nodes are changed one after another, new etcd members join "
                        "as learners, workers are drained if their kubelet or container runtime "
                        "changes, and each node must be healthy before the next one is changed. "
                        "Nodes that are no longer in the file are removed; without a terminal this "
                        "needs --yes. An interrupted run continues where it stopped. A second run "
                        "changes nothing.",
                .options = "yes plan ask-sudo-password",
                .run = cmd_up },
        { .name = "scale",
                .args = "POOL=N...",
                .min_args = 1,
                .max_args = -1,
                .summary = "set the number of machines in a pool, then run up",
                .help = "Shows the plan and asks for confirmation as up does. The file is written "
                        "only after that; comments and formatting are kept. If the run is "
                        "interrupted, 'slipway up' continues it. New machines get the next free "
                        "numbers; machines with the highest numbers are removed first. A pool of "
                        "hosts has no count: add the host to the file, or remove it with 'slipway "
                        "remove-node'.",
                .options = "yes ask-sudo-password",
                .run = cmd_scale },
        { .name = "remove-node",
                .args = "NODE...",
                .min_args = 1,
                .max_args = -1,
                .summary = "remove nodes from the file and from the cluster",
                .help = "A host is removed from its pool's list. In a pool with a count, the count "
                        "is reduced by one and the number of the removed machine is listed under "
                        "'without', so that no other node changes its name or address. Then the "
                        "plan is shown, confirmed, written to the file and carried out as by up: "
                        "the node is drained, removed from etcd and from the API, and its machine "
                        "is deleted; on an existing host (provider ssh) Kubernetes is uninstalled "
                        "instead. A node that does not answer is removed without contacting it. "
                        "Refused if etcd would lose its quorum.",
                .options = "yes ask-sudo-password",
                .run = cmd_remove_node },
        { .name = "reboot",
                .args = "[NODE...]",
                .max_args = -1,
                .summary = "reboot nodes one after another, each drained before",
                .help = "Without a NODE it reboots the nodes whose operating system needs it "
                        "('slipway status' names them); --all reboots every node. The plan is shown "
                        "and confirmed as by up. Control-plane and etcd nodes are rebooted one by "
                        "one, then workers upgrade.workersAtOnce at a time: each is drained "
                        "(PodDisruptionBudgets are respected), rebooted, checked and uncordoned. "
                        "Refused if the cluster differs from the file, if the API does not answer, "
                        "or if an etcd member is not healthy. If the run is interrupted, 'slipway "
                        "up' uncordons the node.",
                .options = "yes all ask-sudo-password",
                .run = cmd_reboot },
        { .name = "upgrade",
                .args = "VERSION",
                .min_args = 1,
                .max_args = 1,
                .summary = "upgrade the cluster to another version of Kubernetes",
                .help = "Writes the version to the file and then does what up does: it looks for "
                        "APIs in use that the new version does not have, sends the new programs to "
                        "all nodes while the old version keeps running, and takes an etcd snapshot. "
                        "Then it upgrades control-plane nodes one by one, and workers "
                        "upgrade.workersAtOnce at a time: each node is drained "
                        "(PodDisruptionBudgets are respected), changed, checked and uncordoned. A "
                        "node that does not become healthy is rolled back to its old version "
                        "automatically. An interrupted upgrade is continued by the next upgrade or "
                        "up. Minor versions cannot be skipped. --force upgrades even if APIs in use "
                        "are removed by the new version.",
                .options = "yes force stage ask-sudo-password",
                .force = "upgrade even if clients use APIs that the new version does not have",
                .run = cmd_upgrade },
        { .name = "rollback",
                .args = "",
                .summary = "return to the version before the last upgrade",
                .help = "Changes control-plane nodes one by one, then workers, like upgrade. If the "
                        "API stores some objects in a newer form since the upgrade, the snapshot "
                        "that the upgrade took is restored too, and everything written after it is "
                        "lost: this needs a confirmation, or --yes in a script. --force rolls back "
                        "without the snapshot and keeps etcd's data.",
                .options = "yes force ask-sudo-password",
                .force = "roll back without restoring the snapshot; etcd's data is kept",
                .run = cmd_rollback },
        { .name = "down",
                .args = "",
                .summary = "delete the machines that slipway created",
                .help = "Deletes every machine of the cluster with all its data. On existing hosts "
                        "(provider ssh) it does what 'reset' does for all of them. The cluster's "
                        "certificates stay in the state directory. First, what the cluster "
                        "has outside itself is shown, deleted and waited for: releases that slipway "
                        "made are uninstalled, Services of type LoadBalancer and "
                        "PersistentVolumeClaims with the reclaim policy Delete are deleted. If "
                        "something is not deleted within --cleanup-timeout, down stops before the "
                        "first node and names it; --no-cleanup skips all of this. If the API does "
                        "not answer, down says so and goes on.",
                .options = "yes force no-cleanup cleanup-timeout ask-sudo-password",
                .force = "skip the drain, and continue without the API if it does not answer",
                .run = cmd_down },
        { .name = "reset",
                .args = "[NODE...]",
                .max_args = -1,
                .summary = "uninstall Kubernetes from hosts and restore their previous state",
                .help = "Each node is drained and removed from etcd and the API. Then everything "
                        "that slipway and the cluster's programs installed on the host is removed: "
                        "files, units, containers, images, mounts, network interfaces, firewall "
                        "rules, packages. Files and settings that slipway had replaced are "
                        "restored. An etcd member that the quorum needs is refused. It also works "
                        "on broken nodes and can be repeated. Without a NODE it resets the whole "
                        "cluster and asks for the cluster's name, unless --yes is given; before "
                        "that it deletes what the cluster has outside itself, as 'slipway down' "
                        "does. --force skips the drain, and continues without the API if that does "
                        "not answer.",
                .options = "yes force no-cleanup cleanup-timeout ask-sudo-password",
                .force = "skip the drain, and continue without the API if it does not answer",
                .run = cmd_reset },
        { .name = "adopt",
                .args = "[USER@]HOST[:PORT]",
                .min_args = 1,
                .max_args = 1,
                .summary = "take over a cluster that was created with kubeadm",
                .help = "Reads the cluster through a control-plane HOST and the API, writes "
                        "cluster.yaml (or the file given with -f) and copies the cluster's "
                        "certificate authorities and keys into the state directory. It changes "
                        "nothing on the hosts; 'slipway plan' shows what 'slipway up' would change. "
                        "Settings that differ from slipway's defaults (etcd as a static pod, "
                        "kube-proxy as a DaemonSet, the hosts' own container runtime, pod network "
                        "and DNS) are kept and written to the file as options. Clusters with "
                        "settings that cannot be kept are refused, with the reason.",
                .options = "name force key ssh-option ask-sudo-password",
                .force = "overwrite an existing file",
                .run = cmd_adopt },
        { .name = "kubeconfig",
                .args = "[USER]",
                .max_args = 1,
                .summary =
                        "print the kubeconfigs of the administrator and the users, or merge them into yours",
                .help = "Certificates are read from the state directory and created there the first "
                        "time. The output is secret. With --merge the entries are written to your "
                        "own kubeconfig file instead: entries of this cluster are replaced, all "
                        "others are kept, and the current context changes only if there is none or "
                        "if --use is given. With --oidc it holds no certificate of a person: kubectl "
                        "calls its plugin oidc-login (kubelogin), which logs in with a browser at "
                        "the provider of auth.oidc. It is the same for everyone, and secret only if "
                        "auth.oidc.clientSecretFile is set.",
                .options = "facts merge oidc kubeconfig use",
                .run = cmd_kubeconfig },
        { .name = "status",
                .args = "",
                .summary = "show the state of nodes, API, etcd, certificates, versions and drift",
                .help = "Queries every machine, etcd and the API at the same time. It changes "
                        "nothing and does not disturb a run in progress. Whatever does not answer "
                        "is reported as unreachable. The exit status is 0 if the cluster is healthy "
                        "and 7 if not. With --watch it queries the API every two seconds and the "
                        "machines every ten until it is interrupted: on a terminal the table is "
                        "redrawn, otherwise a line is printed for each change (with -o json, one "
                        "object per line).",
                .options = "watch hardening ask-sudo-password",
                .run = cmd_status },
        { .name = "verify",
                .args = "",
                .summary = "check that pods, services, DNS and the API work between all nodes",
                .help = "Starts a small pod on every node for a moment, in the namespace "
                        "slipway-verify, as the end of up does. From each of them it asks the pods "
                        "on the other nodes, a service by address and by name, and the API through "
                        "its service; then kubectl exec and logs. Prints a row for each check. The "
                        "exit status is 0 if everything works and 7 if not. It waits for no other "
                        "run: it is refused while one is in progress.",
                .options = "ask-sudo-password",
                .run = cmd_verify },
        { .name = "ssh",
                .args = "NODE [-- COMMAND...]",
                .min_args = 1,
                .max_args = -1,
                .summary = "open a shell on a node, or run a command there",
                .help = "Runs your ssh with the node's address, user, key and host key. The words "
                        "of the command reach the node unchanged: slipway ssh w1 -- sh -c 'uptime; "
                        "df -h'. The exit status is that of ssh.",
                .options = "",
                .run = cmd_ssh },
        { .name = "addons",
                .args = "[NAME]",
                .max_args = 1,
                .summary = "list the software that services.addons installs by name",
                .help = "Shows the name, version, kind and namespace of each addon, and what else it "
                        "needs. A built-in addon is applied as a manifest, with images that "
                        "come to the nodes like CoreDNS's; the others are charts of upstream, pulled "
                        "from their own repositories. With a cluster.yaml, it also shows which of "
                        "them the file has. With NAME, it prints the objects of a built-in addon, as "
                        "they would be applied. No machine is contacted.",
                .options = "",
                .run = cmd_addons },
        { .name = "inventory",
                .args = "",
                .summary = "print the nodes for ssh or Ansible",
                .help = "--ssh-config prints an OpenSSH configuration with a Host entry per node: "
                        "address, port, user, key, jump host and the other settings that 'slipway "
                        "ssh' uses. --ansible prints an Ansible inventory with the groups that "
                        "Kubespray uses (kube_control_plane, etcd, kube_node, k8s_cluster) and a "
                        "group pool_NAME per pool. Both are made from cluster.yaml and the state "
                        "directory; no machine is contacted. Neither contains a password.",
                .options = "ssh-config ansible",
                .run = cmd_inventory },
        { .name = "leaks",
                .args = "",
                .summary = "list what slipway created in a cloud and no cluster uses",
                .help = "Lists resources of the cloud that have a mark of slipway's and belong to "
                        "no node of this cluster, with the prefix of the cluster that created them. "
                        "Those of this cluster are deleted with --delete, after a confirmation. "
                        "Those of other clusters may be in use: if the state directory of one is "
                        "lost, --prefix PREFIX lists everything with its prefix, and --prefix "
                        "PREFIX --delete deletes it, machines and load balancers too. Resources "
                        "without a mark are never listed or deleted.",
                .options = "prefix delete yes",
                .run = cmd_leaks },
        { .name = "export",
                .args = "terraform",
                .arg_words = "terraform",
                .min_args = 1,
                .max_args = 1,
                .summary = "write Terraform files that create the cluster's machines",
                .help = "For provider terraform: writes main.tf.json, modules and the user-data of "
                        "every node to provider.terraform.dir, or to the directory given with -d. "
                        "'tofu apply' or 'terraform apply' there creates network, machines and load "
                        "balancer; 'slipway up' then creates the cluster on them. Files that "
                        "slipway did not write, or that were changed since, are not overwritten. "
                        "The user-data contains no versions, so an upgrade changes no machine.",
                .options = "dir",
                .run = cmd_export },
        { .name = "logs",
                .args = "NODE [COMPONENT]",
                .min_args = 1,
                .max_args = 2,
                .summary = "print the log of a component on a node",
                .help = "Without COMPONENT it lists the components that the node runs: apiserver, "
                        "controller-manager, scheduler, etcd, kubelet, containerd, kube-proxy, "
                        "flanneld, calico-node, haproxy, keepalived. Machines of clouds also have "
                        "cloud-init or ignition, the log of their first boot, and console, also "
                        "if they cannot be logged in to. On a terminal, control characters are shown "
                        "as text; to a pipe or file the bytes are written unchanged.",
                .options = "follow lines ask-sudo-password",
                .run = cmd_logs },
        { .name = "certs",
                .args = "list|renew|rotate-ca|approve [NODE...|cluster|etcd|front-proxy|sa|all]",
                .arg_words = "list renew rotate-ca approve",
                .min_args = 1,
                .max_args = -1,
                .summary =
                        "list certificates, renew them, rotate the CAs, approve kubelets' requests",
                .help = "list shows every certificate on the nodes, in kubeconfigs there and in the "
                        "state directory: its subject, its issuer, how long it is valid and which "
                        "component uses it; the exit status is 7 if one has expired. renew issues "
                        "all certificates again (or those of the named nodes) and distributes them "
                        "as up does. up itself renews certificates in the last third of their "
                        "lifetime, even if all have expired. rotate-ca replaces certificate "
                        "authorities or the service-account key in three phases: nodes trust both, "
                        "the new one signs, the old one is removed; an interrupted rotation is "
                        "continued by the next up. certificates.ca in cluster.yaml can name the new "
                        "CA. approve approves the serving certificates that kubelets of machines "
                        "joined with kubeadm request (without a name it lists the requests); up "
                        "approves renewals for the same names and addresses.",
                .options = "yes finish ask-sudo-password",
                .run = cmd_certs },
        { .name = "encryption",
                .args = "rotate",
                .arg_words = "rotate",
                .min_args = 1,
                .max_args = 1,
                .summary = "replace the key that encrypts secrets in etcd",
                .help = "All API servers receive the new key, then encrypt with it, then every "
                        "object of encryption.resources is written again, then the old key is "
                        "removed. An interrupted rotation is continued by the next up.",
                .options = "yes ask-sudo-password",
                .run = cmd_encryption },
        { .name = "token",
                .args = "create|list|delete [ID]",
                .arg_words = "create list delete",
                .min_args = 1,
                .max_args = 2,
                .summary = "create, list or delete bootstrap tokens",
                .help = "create prints the kubeadm join command for a machine that slipway does not "
                        "manage. The token is random, or that of --token-file; it is valid for "
                        "--ttl; with --user it is deleted when that user is removed from "
                        "auth.users. With --control-plane the machine becomes a control plane: for "
                        "two hours at most, or until the token is deleted, the Secret kubeadm-certs "
                        "holds the cluster's CAs and keys, encrypted with the key in the printed "
                        "command. list shows the tokens without their "
                        "secrets. delete takes a token's ID, which is the six characters before the "
                        "dot.",
                .options = "ttl user token-file control-plane",
                .run = cmd_token },
        { .name = "etcd",
                .args = "members|snapshot|restore|recover|drill|defrag [SNAPSHOT]",
                .arg_words = "members snapshot restore recover drill defrag",
                .min_args = 1,
                .max_args = 2,
                .summary = "manage etcd: members, snapshots, restore, recovery",
                .help = "members lists the etcd members and their health. snapshot takes a "
                        "snapshot, verifies it and copies it to this computer. drill tests the "
                        "newest snapshot (or the given one): it restores it into a separate etcd "
                        "and API server on this computer and counts the objects that can be read. "
                        "restore restores a snapshot on the existing machines or on new ones; "
                        "everything written after the snapshot is lost, so it asks for "
                        "confirmation, or needs --yes in a script. recover rebuilds etcd after the "
                        "loss of its quorum, from the member with the newest data. defrag frees "
                        "unused disk space, one member at a time, the leader last.",
                .options = "dir to force yes ask-sudo-password",
                .force =
                        "restore, drill: accept a snapshot of another cluster; recover: treat members that do not answer as lost for good",
                .run = cmd_etcd },
        { .name = "report",
                .args = "[NUMBER]",
                .max_args = 1,
                .summary = "list the reports of earlier runs, or open one",
                .help = "Every run that changes something writes an HTML page with its steps, their "
                        "times and what they changed. Without a NUMBER the reports are listed, "
                        "oldest first; with one its path is printed, and on a desktop it is opened "
                        "in the browser. report.html in the state directory is a link to the newest "
                        "report.",
                .options = "",
                .run = cmd_report },
        { .name = "schema",
                .args = "",
                .summary = "print the JSON Schema of cluster.yaml",
                .help = "Prints the JSON Schema, for editors. --crd prints the "
                        "CustomResourceDefinition for kubectl apply, --docs the reference in "
                        "Markdown.",
                .options = "crd docs",
                .run = cmd_schema },
        { .name = "completion",
                .args = "bash|zsh|fish",
                .arg_words = "bash zsh fish",
                .min_args = 1,
                .max_args = 1,
                .summary = "print shell completion",
                .help = "bash: source <(slipway completion bash). zsh: slipway completion zsh > "
                        "DIR/_slipway, where DIR is a directory of $fpath. fish: slipway completion fish | source.",
                .options = "",
                .run = cmd_completion },
        { .name = "help",
                .args = "[VERB]",
                .max_args = 1,
                .summary = "explain a verb, or print the man page",
                .help = "--man prints the man page: slipway help --man | man -l -",
                .options = "man",
                .run = cmd_help },
        { .name = "version",
                .args = "",
                .summary = "print the version",
                .options = "",
                .run = cmd_version },
};
const size_t verb_count = ARRAY_SIZE(verb_table);

/* For the project's own demo, tests and benchmarks: not in help, man page or completion. */
static const struct verb hidden_table[] = {
        { .name = "programs",
                .args = "[NAME[@VERSION]|SET|PROGRAM...]",
                .max_args = -1,
                .summary = "build upstream's programs into the cache",
                .options = "dir",
                .run = cmd_programs },
};

const struct verb *verb_find(const char *name)
{
        for (size_t i = 0; i < verb_count; i++)
                if (streq(verb_table[i].name, name))
                        return &verb_table[i];
        for (size_t i = 0; i < ARRAY_SIZE(hidden_table); i++)
                if (streq(hidden_table[i].name, name))
                        return &hidden_table[i];
        return NULL;
}

/* Shell that ends static pods in the order of who asks whom: for the agent (agent/pods.c) and for a
 * node that leaves (cluster/leave/api_leave.c). The kubelet must be down.
 *
 * end POD: 0 when it has ended, 1 when there was none, 2 when it could not be.
 * asking POD...: the controller manager and the scheduler of them. The scheduler gives its Lease
 * back when it ends. The controller manager keeps it, and the next one would wait fifteen seconds
 * for nobody: so it is given back for it, with its own rights, when it has ended and if it is still
 * its own (the resource version says so). */
#ifndef SLIPWAY_PODS_H
#define SLIPWAY_PODS_H

#define PODS_SCRIPT \
        "PATH=$PATH:/usr/local/bin:/opt/bin\n" \
        "lease=/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager\n" \
        "kubectl() { command kubectl --kubeconfig /etc/kubernetes/controller-manager.conf --request-timeout=5s \"$@\"; }\n" \
        "end() { ids=$(crictl -t 20s ps -q --name \"^$1\\$\") || return 2; [ -n \"$ids\" ] || return 1; crictl -t 20s stop -t 15 $ids >/dev/null || return " \
        "2; }\n" \
        "give() { kubectl get --raw $lease | sed \"s/\\\"holderIdentity\\\":\\\"$(uname -n)_[^\\\"]*\\\"/\\\"holderIdentity\\\":\\\"\\\"/;t;d\" >$1/lease && " \
        "[ -s $1/lease ] && kubectl replace --raw $lease -f $1/lease >/dev/null; rm -rf $1; }\n" \
        "asking() { for pod; do case $pod in kube-controller-manager) end $pod && give $(mktemp -d) & ;; kube-scheduler) end $pod & esac; done; wait; }\n"

#endif

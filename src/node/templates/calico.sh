#!/bin/bash
# calico ready: installs the CNI configuration when Calico's rules are in the kernel and, with canal,
#   flannel works. It is a link to a file in /run: after a boot the runtime finds none, and no pod
#   starts before its policies are in force.
# MAINPID, which systemd sets, is calico-node: without it there is nothing to wait for.
set -u
conf=/etc/cni/net.d/10-calico.conflist
case ${1:-} in
ready)
	until { [ ! -d /etc/kube-flannel ] || [ -e /run/flannel/subnet.env ]; } && curl -sf -o /dev/null http://127.0.0.1:9099/readiness; do
		kill -0 "${MAINPID:-$$}" || exit 1
		sleep 0.2
	done
	mkdir -p /run/calico
	cp /etc/calico/cni-conf.json /run/calico/cni.new && mv /run/calico/cni.new /run/calico/10-calico.conflist
	# a new link each time: the runtime notices changes only in its own directory
	ln -sf /run/calico/10-calico.conflist "$conf.new" && mv -T "$conf.new" "$conf"
	;;
*) echo "usage: calico ready" >&2; exit 2 ;;
esac

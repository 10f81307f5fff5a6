#!/bin/bash
# fabric wait: returns as soon as this node has its range of pod addresses (a watch on the API). A
#   flanneld that starts earlier fails, and is restarted only after a delay.
# fabric ready: installs the CNI configuration, after flanneld has started: with it the node becomes
#   Ready, and pods that start before flanneld works are retried only after 10 seconds.
# NODE_NAME and API are in the environment.
set -u
conf=/etc/cni/net.d/10-flannel.conflist
case ${1:-} in
wait)
	[ -e /run/flannel/subnet.env ] || rm -f "$conf" # after a boot
	url="$API/api/v1/nodes?watch=true&fieldSelector=metadata.name%3D$NODE_NAME"
	said=
	while :; do
		exec 3< <(exec curl -sfN --cacert /etc/kubernetes/pki/ca.crt --cert /var/lib/kubelet/pki/kubelet-client-current.pem "$url")
		grep -q '"podCIDR":' <&3 && break
		[ "$said" ] || echo "$NODE_NAME has no range of pod addresses yet: asking $API again until it has one (systemctl status kubelet slipway-haproxy)" >&2
		said=yes
		sleep 0.2
	done
	kill $! # curl would continue to watch
	;;
ready)
	# A Node that was created again has other ranges: pods fail on a bridge with an address of an old
	# one.
	while read -r subnet; do
		case $subnet in *:*) family=-6 ;; *) family=-4 ;; esac
		has=$(ip -o $family address show dev cni0 scope global 2>/dev/null)
		[ -z "$has" ] || [[ $has == *" $subnet "* ]] || ip link delete cni0
	done < <(sed -n 's/^FLANNEL_\(IPV6_\)\?SUBNET=//p' /run/flannel/subnet.env 2>/dev/null)
	cp /etc/kube-flannel/cni-conf.json "$conf.new" && mv "$conf.new" "$conf"
	;;
*) echo "usage: fabric wait | fabric ready" >&2; exit 2 ;;
esac

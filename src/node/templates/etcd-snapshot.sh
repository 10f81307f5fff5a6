#!/bin/sh
# etcd-snapshot: takes a snapshot of this etcd member, checks it, and keeps the newest $KEEP.
# Every member has its own snapshots, so that they survive the loss of other members; the leader also
# copies its snapshot to $COPY_TO. The settings are in /etc/slipway/etcd-snapshot.env.
# COPY_TO is a directory of this host, or
# s3://BUCKET/PREFIX[?endpoint=https://HOST:PORT&region=REGION]. The S3 key is in
# /etc/slipway/s3.curl, which only root can read: one line, user = "KEY:PASSWORD".
set -eu
umask 077
LC_ALL=C
PATH=$PATH:/usr/local/bin:/opt/bin
export LC_ALL PATH

name=${NAME:?} keep=${KEEP:?} endpoint=${ENDPOINT:?} copy_to=${COPY_TO:-}
dir=/var/lib/slipway/snapshots
pki=/etc/kubernetes/pki/etcd
credentials=/etc/slipway/s3.curl

refuse() {
        echo "etcd-snapshot: $*" >&2
        exit 1
}

ask() {
        etcdctl --endpoints "$endpoint" --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key --dial-timeout 5s "$@"
}

# s3 METHOD FILE: the request is signed with the digest of the body, also of an empty one.
s3() {
        method=$1 file=$2
        body=/dev/null
        set -- --request "$method"
        if [ "$method" = PUT ]; then
                body=$dir/$file
                set -- --upload-file "$body"
        fi
        [ -r "$credentials" ] || refuse "$credentials is not there: set etcd.snapshots.copyKeyFile in cluster.yaml"
        rest=${copy_to#s3://} query=
        case $rest in *\?*) query=${rest#*\?} rest=${rest%%\?*} ;; esac
        bucket=${rest%%/*} prefix=
        case $rest in */?*) prefix=${rest#*/} prefix=${prefix%/}/ ;; esac
        region=us-east-1 host=
        for pair in $(echo "$query" | tr '&' ' '); do
                case $pair in
                endpoint=*) host=${pair#endpoint=} ;;
                region=*) region=${pair#region=} ;;
                esac
        done
        host=${host:-https://s3.$region.amazonaws.com}
        curl --config "$credentials" --silent --show-error --fail --retry 3 --max-time 3600 --aws-sigv4 "aws:amz:$region:s3" \
                --header "x-amz-content-sha256: $(sha256sum <"$body" | cut -c1-64)" "$@" "${host%/}/$bucket/$prefix$file"
}

copy() {
        case $copy_to in
        s3://*)
                s3 PUT "$1.sha256" >/dev/null
                s3 PUT "$1" >/dev/null
                ;;
        *)
                [ -d "$copy_to" ] || refuse "the directory $copy_to is not there: is it mounted?"
                cp "$dir/$1" "$copy_to/.$1.part"
                [ "$(sha256sum <"$copy_to/.$1.part" | cut -c1-64)" = "$(cut -c1-64 "$dir/$1.sha256")" ] || refuse "the copy under $copy_to is damaged"
                sync "$copy_to/.$1.part"
                cp "$dir/$1.sha256" "$copy_to/$1.sha256"
                mv "$copy_to/.$1.part" "$copy_to/$1"
                ;;
        esac
        echo "$copy_to" >"$dir/$1.copied"
}

# Removes a copy that this member made, from the place it was copied to.
uncopy() {
        copy_to=$(cat "$dir/$1.copied")
        case $copy_to in
        s3://*) { s3 DELETE "$1" && s3 DELETE "$1.sha256"; } >/dev/null || echo "etcd-snapshot: $1 is still under $copy_to" >&2 ;;
        *) rm -f "$copy_to/$1" "$copy_to/$1.sha256" ;;
        esac
}

forget() {
        if [ -s "$dir/$1.copied" ]; then
                (uncopy "$1") || :
        fi
        rm -f "$dir/$1" "$dir/$1.sha256" "$dir/$1.copied"
}

mkdir -p $dir
rm -f $dir/.new.db $dir/.new.db.part
status=$(ask endpoint status --write-out json --command-timeout 10s) || refuse "etcd here does not answer"
size=$(echo "$status" | sed -n 's/.*"dbSize":\([0-9]*\).*/\1/p')
free=$(df -Pk $dir | awk 'NR == 2 { print $4 }')
[ "$free" -gt $((size / 1024 + 32768)) ] || refuse "no room: $((free / 1024)) MB are free under $dir and $((size / 1048576 + 32)) MB are needed"

file=$name-$(date -u +%Y%m%dT%H%M%SZ)-$(hostname).db
ask snapshot save $dir/.new.db --command-timeout 30m >/dev/null
etcdutl snapshot status $dir/.new.db >/dev/null
sync $dir/.new.db
echo "$(sha256sum <$dir/.new.db | cut -c1-64)  $file" >"$dir/$file.sha256"
mv $dir/.new.db "$dir/$file"

# The names contain the time, so the newest are last.
set -- "$dir"/*.db
while [ $# -gt "$keep" ]; do
        forget "${1##*/}"
        shift
done
leader=$(echo "$status" | sed -n 's/.*"leader":\([0-9]*\).*/\1/p') self=$(echo "$status" | sed -n 's/.*"member_id":\([0-9]*\).*/\1/p')
if [ -n "$copy_to" ] && [ "$leader" = "$self" ]; then
        copy "$file"
fi

#!/bin/sh
# format-blank DEVICE FILESYSTEM: makes a filesystem on a blank disk, and only there.
# Exit 0: the disk has a filesystem of that kind, new or old. Exit 1 with a message: the disk contains
# anything else; nothing is written.
set -u
LC_ALL=C
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH

device=${1:?which device?}
wanted=${2:?which filesystem?}
edge=4194304

refuse() {
        echo "format-blank: $device is left alone: $*" >&2
        exit 1
}

case $wanted in
ext4 | xfs) ;;
*) refuse "$wanted is not a filesystem this script makes" ;;
esac

[ -b "$device" ] || refuse "it is not a block device"
real=$(readlink -f -- "$device") || refuse "its name cannot be resolved"
major=$(stat -c %t -- "$real") || refuse "its number cannot be read"
minor=$(stat -c %T -- "$real") || refuse "its number cannot be read"
number=$((0x$major)):$((0x$minor))
sys=/sys/dev/block/$number
[ -d "$sys" ] || refuse "the kernel does not list it as $number"

# What does it contain? blkid: 0 something, 2 nothing, 8 several signatures.
found=$(blkid -p -o value -s TYPE -- "$real")
case $? in
0)
        [ "$found" = "$wanted" ] && exit 0
        refuse "it holds ${found:-a partition table or something else}, not $wanted"
        ;;
2) ;;
8) refuse "it holds more than one thing" ;;
*) refuse "blkid cannot read it" ;;
esac

# Is it in use?
for child in "$sys"/holders/* "$sys"/*/partition; do
        [ -e "$child" ] && refuse "it is part of or divided into something else: ${child#"$sys"/}"
done
awk -v n="$number" '$3 == n { hit = 1 } END { exit !hit }' /proc/self/mountinfo && refuse "it is mounted"
awk -v d="$real" '$1 == d { hit = 1 } END { exit !hit }' /proc/swaps && refuse "it is swap space"

# Is it really blank?
traces=$(wipefs --no-act --noheadings -- "$real") || refuse "wipefs cannot read it"
[ -z "$traces" ] || refuse "it has traces of something: $traces"
size=$(blockdev --getsize64 "$real") || refuse "its size cannot be read"
[ "$size" -gt "$edge" ] || refuse "it is smaller than 4 MiB"
for skip in 0 $((size - edge)); do
        bytes=$(dd if="$real" bs=65536 iflag=skip_bytes,count_bytes,fullblock skip="$skip" count="$edge" 2>/dev/null | tr -d '\000' | wc -c) || refuse "it cannot be read"
        [ "$bytes" -eq 0 ] || refuse "it is not blank: $bytes bytes that are not zero at offset $skip"
done
bytes=$(dd if="$real" bs=65536 count=1 2>/dev/null | wc -c)
[ "$bytes" -eq 65536 ] || refuse "it cannot be read"

command -v "mkfs.$wanted" >/dev/null || refuse "mkfs.$wanted is not installed"
exec "mkfs.$wanted" -q "$real"

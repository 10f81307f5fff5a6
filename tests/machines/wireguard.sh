#!/usr/bin/env bash
# Builds WireGuard for the kernel of the virtual machines, once, and prints where its modules are: Debian configures User Mode Linux without it.
#   tests/machines/wireguard.sh ROOT     (of these machines: base.sh vm)
# The source is Debian's, of the same version, and apt verifies it. Only what modules need of it is unpacked.
set -euo pipefail

root=$1
CACHE=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
kernel=$(basename "$root"/usr/lib/uml/modules/*)
out=$CACHE/wireguard-$kernel
if [ -d "$out" ]; then echo "$out"; exit 0; fi

die() { echo "wireguard: $*" >&2; exit 1; }
for program in gcc make flex bison bc xz; do
  command -v $program >/dev/null || die "$program is not installed: scripts/setup.sh vm"
done
# shellcheck disable=SC2016
package=$(chroot "$root" dpkg-query -W -f '${Built-Using}' user-mode-linux) # linux (= 6.12.101-1)
package=${package#*= }
# the mirror of this computer's own apt
# shellcheck disable=SC2016
site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -1)
key=/usr/share/keyrings/debian-archive-keyring.gpg

work=$(mktemp -d "$CACHE/.wireguard-XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "wireguard: building for $kernel" >&2
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,source}
echo "deb-src [signed-by=$key] $site trixie main" >"$work/list"
apt=(apt-get -qq -o "Dir::Etc::SourceList=$work/list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State=$work/state" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$work" && "${apt[@]}" source --download-only --only-source "linux=${package%)*}") >&2

tar -xJf "$work"/linux_*.orig.tar.xz -C "$work/source" --strip-components=1 --wildcards --exclude='*/Documentation/*' \
  '*/Makefile*' '*/Kconfig*' '*/Kbuild*' '*/scripts/*' '*/include/*' '*/arch/um/*' '*/arch/x86/*' '*/kernel/bounds.c' '*/kernel/time/timeconst.bc' \
  '*/security/selinux/*' '*/lib/crypto/*' '*/drivers/net/wireguard/*'
mkdir "$work/source/Documentation"
: >"$work/source/Documentation/Kconfig"
sh "$work/source/scripts/extract-ikconfig" "$root/usr/lib/uml/modules/$kernel/kernel/kernel/configs.ko" >"$work/source/.config"
sed -i 's/^# CONFIG_WIREGUARD is not set/CONFIG_WIREGUARD=m/' "$work/source/.config"

# The symbols of the kernel itself are not known here; it has those that these modules want.
build() { make -s -C "$work/source" -j"$(nproc)" ARCH=um KBUILD_MODPOST_WARN=1 "$@" >&2; }
build olddefconfig
build modules_prepare
build M=lib/crypto CONFIG_MPILIB= modules
build M=drivers/net/wireguard modules
mkdir "$work/out"
cp "$work"/source/drivers/net/wireguard/wireguard.ko "$work"/source/lib/crypto/lib{curve25519,curve25519-generic,chacha,chacha20poly1305,poly1305}.ko "$work/out"
mv -T "$work/out" "$out"
echo "$out"

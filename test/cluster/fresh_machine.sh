#!/bin/bash
# A clean Debian inside a directory, in which a clone runs tools/quickstart and tools/check.
set -euo pipefail

usage() {
    cat <<'END'
usage: fresh_machine.sh [options] [-- COMMAND...]

  --suite NAME      release to install (default: bookworm)
  --directory DIR   where (default: a new one below /var/tmp); must be empty
  --keep            leave the directory for another look, and say how to enter it

Installs the smallest Debian with debootstrap from the mirror that this machine's apt uses, clones
the committed state of this repository into it, and runs COMMAND there (default: tools/quickstart,
then tools/check) as root, in mount, process, host name and IPC namespaces of its own. Needs root.
Takes several GB and, with everything compiled, about half an hour on two cores.
END
}

root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
suite=bookworm
directory=
keep=0
while [ $# -gt 0 ]; do
    case $1 in
    --suite) suite=${2:?} && shift 2 ;;
    --directory) directory=${2:?} && shift 2 ;;
    --keep) keep=1 && shift ;;
    -h | --help) usage && exit 0 ;;
    --) shift && break ;;
    *) usage >&2 && exit 2 ;;
    esac
done
command=("$@")
[ ${#command[@]} -gt 0 ] || command=(sh -c 'tools/quickstart && tools/check')
if [ "$(id -u)" -ne 0 ]; then
    echo "fresh_machine: debootstrap and namespaces need root" >&2
    exit 1
fi
"$root/tools/packages" fresh

# One line for each Debian archive that apt knows: URI SUITE COMPONENT.
archives() {
    apt-get indextargets --format '$(REPO_URI) $(SUITE) $(RELEASE) $(COMPONENT) $(LABEL)' \
        'Created-By: Packages' | awk '$5 ~ /^Debian/ { print $1, $3, $4 }' | sort -u
}

mirror=$(archives | awk -v suite="$suite" '$2 == suite { print $1; exit }')
[ -n "$mirror" ] || mirror=$(archives | awk '$2 !~ /-/ { print $1; exit }')
if [ -z "$mirror" ]; then
    echo "fresh_machine: apt knows no Debian archive; run apt-get update" >&2
    exit 1
fi
if [ -z "$directory" ]; then
    directory=$(mktemp -d /var/tmp/fresh-debian-XXXXXX)
elif [ -n "$(ls -A "$directory" 2>/dev/null)" ]; then
    echo "fresh_machine: $directory is not empty" >&2
    exit 1
fi
# Mounts are made in a namespace of their own below, so the directory holds plain files only.
[ $keep -eq 1 ] || trap 'rm -rf --one-file-system "$directory"' EXIT

echo "== debootstrap $suite into $directory"
debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$directory" "$mirror" \
    >"$directory.log" 2>&1 || {
    tail -n 20 "$directory.log" >&2
    exit 1
}
rm -f "$directory.log"
archives | awk -v suite="$suite" \
    '$2 == suite || $2 ~ "^" suite "-" { print "deb", $1, $2, $3 }' \
    >"$directory/etc/apt/sources.list"
[ -s "$directory/etc/apt/sources.list" ] ||
    echo "deb $mirror $suite main" >"$directory/etc/apt/sources.list"
# The way to the mirror is this machine's: proxy, certificates, name servers.
apt-config dump | grep -E '^Acquire::(http|https)::' >"$directory/etc/apt/apt.conf.d/90way" || true
cp -rL /etc/ssl/certs "$directory/etc/ssl/" 2>/dev/null || true
cp -L /etc/resolv.conf "$directory/etc/resolv.conf"
# What an installer leaves and debootstrap does not.
chmod 0755 "$directory"
echo "127.0.0.1 localhost fresh" >"$directory/etc/hosts"
git clone -q "$root" "$directory/opt/ucg"

# The machine's own root must be a mount, as on a real one: pivot_root makes it so.
cat >"$directory/opt/enter" <<'END'
set -eu
cd "$1"
shift
mount --bind . .
cd "$PWD"
for path in dev sys; do
    mount --rbind "/$path" "$path"
done
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t proc proc proc
mount -t tmpfs -o mode=0755 tmpfs run
pivot_root . mnt
umount -l /mnt
hostname fresh
cd /opt/ucg
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" "$@"
END
enter=(unshare --mount --pid --fork --uts --ipc --kill-child sh "$directory/opt/enter" "$directory")
[ $keep -eq 0 ] || echo "To enter it again: ${enter[*]} bash"
echo "== ${command[*]}"
"${enter[@]}" "${command[@]}"

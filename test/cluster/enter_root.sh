#!/bin/sh
# enter_root.sh DIRECTORY TREE CACHE COMMAND...: for debian_root.sh, which begins the namespaces.
# Makes the directory the root and runs the command there. Mounts are of these namespaces alone, so
# the directory holds plain files only. The machine's own root must be a mount, as on a real one:
# pivot_root makes it so.
set -eu
cd "$1"
tree=$2
cache=$3
shift 3
mount --bind . .
cd "$PWD"
[ -z "$tree" ] || mount --bind "$tree" opt/ucg
limit=
if [ -n "$cache" ]; then
    # How much may be kept is said outside: ccache's default there would throw away the rest.
    limit=$(ccache --get-config max_size 2>/dev/null) || true
    mkdir -p root/.cache/ccache
    mount --bind "$cache" root/.cache/ccache
fi
for path in dev sys; do
    mount --rbind "/$path" "$path"
done
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t proc proc proc
mount -t tmpfs -o mode=0755 tmpfs run
pivot_root . mnt
umount -l /mnt
hostname fresh
cd /opt/ucg
# As a login of root has it.
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec env -i PATH=$path HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    ${limit:+CCACHE_MAXSIZE="$limit"} "$@"

#!/bin/sh
# on_hosts.sh HOSTS SLOTS COMMAND...: runs COMMAND on the head of a cluster of HOSTS hosts, where a
# plain mpirun starts SLOTS ranks on each. All hosts see the source tree and TMPDIR, as they would a
# home directory, wherever these lie. VCLUSTER_LINKS are words more for vcluster, such as
# "--latency 1ms". Exits with the command's status, or 77 (skipped) without namespaces.
set -eu

hosts=$1
slots=$2
shift 2
root=$(readlink -f "$(dirname "$0")/../..")
vcluster=$root/tools/vcluster
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM INT HUP

if ! "$vcluster" run --hosts 1 -- true; then
    exit 77
fi
share="--share $scratch"
case $root in
/tmp/* | /run/*) share="$share --share $root" ;; # Hosts have folders of these names of their own.
esac
# shellcheck disable=SC2086 # Several words.
"$vcluster" run --hosts "$hosts" --slots "$slots" ${VCLUSTER_LINKS-} $share -- \
    env TMPDIR="$scratch" "$@"

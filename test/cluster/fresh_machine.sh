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

wrong() {
    echo "fresh_machine: $*; see --help" >&2
    exit 2
}

root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=test/cluster/debian_root.sh
. "$root/test/cluster/debian_root.sh"
suite=bookworm
directory=
keep=0
while [ $# -gt 0 ]; do
    case $1 in
    --suite)
        [ -n "${2:-}" ] || wrong "--suite: expected the name of a release"
        suite=$2 && shift 2
        ;;
    --directory)
        [ -n "${2:-}" ] || wrong "--directory: expected a folder"
        directory=$2 && shift 2
        ;;
    --keep) keep=1 && shift ;;
    -h | --help) usage && exit 0 ;;
    --) shift && break ;;
    *) wrong "unknown option '$1'" ;;
    esac
done
command=("$@")
[ ${#command[@]} -gt 0 ] || command=(sh -c 'tools/quickstart && tools/check')
if [ "$(id -u)" -ne 0 ]; then
    echo "fresh_machine: debootstrap and namespaces need root" >&2
    exit 1
fi
"$root/tools/packages" fresh

if [ -z "$directory" ]; then
    directory=$(mktemp -d /var/tmp/fresh-debian-XXXXXX)
elif [ -n "$(ls -A "$directory" 2>/dev/null)" ]; then
    echo "fresh_machine: $directory is not empty" >&2
    exit 1
fi
# Nothing is mounted there, but in the namespace of those who enter.
[ $keep -eq 1 ] || trap 'rm -rf --one-file-system "$directory"' EXIT

make_root "$suite" "$directory"
git clone -q "$root" "$directory/opt/ucg"

set_enter "$directory"
[ $keep -eq 0 ] || echo "To enter it again: ${enter[*]} bash"
echo "== ${command[*]}"
"${enter[@]}" "${command[@]}"

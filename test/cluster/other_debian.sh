#!/bin/bash
# Another release of Debian inside a directory, kept from one time to the next, in which a command
# works on this source tree.
set -euo pipefail

usage() {
    cat <<'END'
usage: other_debian.sh [options] SUITE [-- COMMAND...]

  --directory DIR   where the release is (default: ~/.cache/ucg/debian-SUITE)
  --offline         fail if it is not there instead of making it

Makes the release with debootstrap from the mirror that this machine's apt uses, with the packages
of the groups build and other in tools/packages.txt, unless that was done before; then runs COMMAND
there (default: nothing) as root, in namespaces of its own, with this tree at /opt/ucg and what
ccache keeps for this user. Needs root. Takes some 3 GB. Delete the directory to be rid of it:
nothing is mounted there.
END
}

root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=test/cluster/debian_root.sh
. "$root/test/cluster/debian_root.sh"
suite=
directory=
offline=0
while [ $# -gt 0 ]; do
    case $1 in
    --directory)
        directory=$(value "$1" "a folder" "${2:-}")
        shift 2
        ;;
    --offline) offline=1 && shift ;;
    -h | --help)
        usage
        exit
        ;;
    --) shift && break ;;
    -*) wrong "unknown option '$1'" ;;
    *)
        [ -z "$suite" ] || wrong "unexpected argument '$1'"
        suite=$1 && shift
        ;;
    esac
done
[ -n "$suite" ] || wrong "expected the name of a release, such as trixie"
directory=${directory:-${XDG_CACHE_HOME:-$HOME/.cache}/ucg/debian-$suite}
need_root
if [ ! -d "$directory" ]; then
    if [ $offline -eq 1 ]; then
        echo "other_debian: no $directory" >&2
        exit 1
    fi
    # Under its name once it is whole.
    part=$directory.part
    rm -rf --one-file-system "$part"
    mkdir -p "$(dirname "$directory")"
    "$root/tools/packages" fresh
    make_root "$suite" "$part"
    set_enter "$part" "$root"
    "${enter[@]}" tools/packages build other
    mv "$part" "$directory"
fi
[ $# -gt 0 ] || exit 0
cache=${CCACHE_DIR:-$HOME/.cache/ccache}
[ -d "$cache" ] || cache=
set_enter "$directory" "$root" "$cache"
exec "${enter[@]}" "$@"

#!/bin/bash
# The whole path of a new user, in Debians that nobody has touched: from a clone to an installed
# library, and from a source package to installed packages, and back to what there was before.
set -euo pipefail

parts=(clone quickstart install check build packages)

usage() {
    cat <<'END'
usage: new_user.sh [options] [-- COMMAND...]

  --part NAME       run this part alone (may be repeated; they run in the order below)
  --directory DIR   where the Debians are, which stay for other parts (default: a new folder below
                    /var/tmp, removed at the end); parts build on what earlier ones left there
  --suite NAME      release of Debian (default: bookworm)
  --no-ccache       compile everything anew, instead of sharing what ccache keeps for this user

parts:
  clone       makes a Debian, and clones the committed state of this repository into it
  quickstart  runs tools/quickstart
  install     meson install; a program runs through UCG without any option of mpirun's, another is
              compiled by pkg-config's words; uninstall, after which no file is left
  check       runs tools/check --quick
  build       builds the Debian packages, source and binary, and has lintian judge them
  packages    in a second Debian: apt installs the packages with what they depend on; the tests of
              debian/tests run; the packages are purged, after which no file is left

Debians come by debootstrap from the mirror that this machine's apt uses; packages are all that is
fetched by network. Needs root, for debootstrap and namespaces. The last lines tell how long each
part took.

With COMMAND only the parts run that are named, and clone; then COMMAND runs in the clone of the
first Debian, in mount, process, host name and IPC namespaces of its own: "-- tools/check" for all
tests there, "--directory DIR -- bash" for a look at what is left in DIR.

Exit status: 0 when all is as it should be, 2 for wrong usage, else 1.
END
}

root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=test/cluster/debian_root.sh
. "$root/test/cluster/debian_root.sh"
chosen=()
directory=
suite=bookworm
cache=${CCACHE_DIR:-$HOME/.cache/ccache}
while [ $# -gt 0 ]; do
    case $1 in
    --part)
        [[ " ${parts[*]} " = *" ${2:-} "* ]] || wrong "no part '${2:-}'; there are: ${parts[*]}"
        chosen+=("$2") && shift 2
        ;;
    --directory)
        directory=$(value "$1" "a folder" "${2:-}")
        shift 2
        ;;
    --suite)
        suite=$(value "$1" "the name of a release" "${2:-}")
        shift 2
        ;;
    --no-ccache) cache= && shift ;;
    -h | --help)
        usage
        exit
        ;;
    --) shift && break ;;
    *) wrong "unknown option '$1'" ;;
    esac
done
command=("$@")
if [ ${#command[@]} -gt 0 ]; then
    chosen+=(clone)
elif [ ${#chosen[@]} -eq 0 ]; then
    chosen=("${parts[@]}")
fi
need_root
"$root/tools/packages" fresh
if [ -z "$directory" ]; then
    directory=$(mktemp -d /var/tmp/new-user-XXXXXX)
    # Nothing is mounted there, but in the namespace of those who enter.
    trap 'rm -rf --one-file-system "$directory"' EXIT
fi
mkdir -p "$directory"
[ -z "$cache" ] || mkdir -p "$cache"

# A Debian with a clone, unless it is there: make_debian NAME
make_debian() {
    local whole=$directory/$1
    [ ! -d "$whole" ] || return 0
    rm -rf --one-file-system "$whole.part"
    mkdir "$whole.part"
    make_root "$suite" "$whole.part"
    git clone -q "$root" "$whole.part/opt/ucg"
    mv "$whole.part" "$whole"
}

# A command in the clone of one of the Debians: within DEBIAN COMMAND...
within() {
    local enter
    [ -d "$directory/$1" ] || wrong "no Debian in $directory/$1 yet: run the part clone"
    set_enter "$directory/$1" "" "$cache"
    "${enter[@]}" "${@:2}"
}

# A step of new_user_steps.sh: step DEBIAN NAME
step() {
    within "$1" test/cluster/new_user_steps.sh "$2"
}

part_clone() { make_debian first; }
part_quickstart() { step first quickstart; }
part_install() { step first install; }
part_check() { step first check; }
part_build() { step first build; }

part_packages() {
    local built=$directory/first/opt/packages
    [ -d "$built" ] || wrong "no packages in $built yet: run the part build"
    make_debian second
    rm -rf "$directory/second/opt/packages"
    cp -r "$built" "$directory/second/opt/"
    step second packages
}

took=()
for part in "${parts[@]}"; do
    [[ " ${chosen[*]} " = *" $part "* ]] || continue
    echo "==== $part"
    begin=$SECONDS
    "part_$part"
    took+=("$(printf '%-11s %5d s' "$part" $((SECONDS - begin)))")
done
if [ ${#command[@]} -gt 0 ]; then
    echo "==== ${command[*]}"
    within first "${command[@]}"
fi
printf '%s\n' "==== all as it should be" "${took[@]}"

#!/bin/bash
# Builds the image of tools/packaging/Containerfile and runs a program of MPI in it.
set -euo pipefail

usage() {
    cat <<'END'
usage: container.sh [options]

  --directory DIR   where images and layers are kept (default: a new folder below /var/tmp, removed
                    at the end)
  --suite NAME      release of Debian of the base image (default: bookworm)
  -h, --help

The base image comes by debootstrap from the mirror that this machine's apt uses, since no registry
of images is asked. In the image, as its ordinary user and with a /dev/shm of 64 MiB, a program is
compiled, runs through UCG without any option, and runs without UCG where mpirun is told so. Needs
root, for debootstrap, and buildah, which it installs. Takes several GB. What ccache keeps for this
user is shared.

Exit status: 0 when all is as it should be, 2 for wrong usage, else 1.
END
}

root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=test/cluster/debian_root.sh
. "$root/test/cluster/debian_root.sh"
directory=
suite=bookworm
while [ $# -gt 0 ]; do
    case $1 in
    --directory)
        directory=$(value "$1" "a folder" "${2:-}")
        shift 2
        ;;
    --suite)
        suite=$(value "$1" "the name of a release" "${2:-}")
        shift 2
        ;;
    -h | --help)
        usage
        exit
        ;;
    *) wrong "unknown option '$1'" ;;
    esac
done
need_root
"$root/tools/packages" fresh container
if [ -z "$directory" ]; then
    directory=$(mktemp -d /var/tmp/ucg-container-XXXXXX)
    trap 'rm -rf --one-file-system "$directory"' EXIT
fi
mkdir -p "$directory"

# Layers as plain folders: an overlay may not be mounted within every container. Steps run in a
# root of their own rather than in a container, for the same reason.
image() {
    buildah --root "$directory/images" --runroot "$directory/run" --storage-driver vfs "$@"
}

base=localhost/debian:$suite
if ! image inspect --type image "$base" >/dev/null 2>&1; then
    rm -rf --one-file-system "$directory/base"
    make_root "$suite" "$directory/base"
    made=$(image from scratch)
    image copy -q "$made" "$directory/base" /
    image commit -q --rm "$made" "$base"
    rm -rf --one-file-system "$directory/base"
fi
cache=${CCACHE_DIR:-$HOME/.cache/ccache}
mkdir -p "$cache"
image build --isolation chroot --network host --volume "$cache:/ccache" \
    -f "$root/tools/packaging/Containerfile" --build-arg "BASE=$base" -t localhost/ucg "$root"

made=$(image from localhost/ucg)
within() {
    image run --isolation chroot --network host \
        --mount type=tmpfs,destination=/dev/shm,tmpfs-size=64m "$@"
}
image copy -q --chown mpi "$made" "$root/debian/tests" /mpi/tests
within --user mpi --env AUTOPKGTEST_TMP=/mpi "$made" -- tests/component
echo "ok: in the image a program runs through UCG without any option"
within --user mpi "$made" -- ucg_info -d
image rm "$made" >/dev/null
image images
echo "==== all as it should be"

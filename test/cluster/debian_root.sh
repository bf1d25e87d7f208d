# shellcheck shell=bash
# A Debian in a directory: what new_user.sh, container.sh and other_debian.sh share. To be sourced.

# Ends the script for wrong usage, of which the words tell.
wrong() {
    echo "$(basename "$0" .sh): $*; see --help" >&2
    exit 2
}

# What follows an option that needs a value: value OPTION WHAT-IT-IS VALUE
value() {
    [ -n "$3" ] || wrong "$1: expected $2"
    echo "$3"
}

need_root() {
    [ "$(id -u)" -eq 0 ] || {
        echo "$(basename "$0" .sh): debootstrap and namespaces need root" >&2
        exit 1
    }
}

# One line for each Debian archive that apt knows: URI SUITE COMPONENT.
archives() {
    # The words are apt-get's.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(SUITE) $(RELEASE) $(COMPONENT) $(LABEL)' \
        'Created-By: Packages' | awk '$5 ~ /^Debian/ { print $1, $3, $4 }' | sort -u
}

# The smallest Debian of a release, from the mirror that this machine's apt uses:
# make_root SUITE DIRECTORY
make_root() {
    local suite=$1 directory=$2 mirror
    mirror=$(archives | awk -v suite="$suite" '$2 == suite { print $1; exit }')
    [ -n "$mirror" ] || mirror=$(archives | awk '$2 !~ /-/ { print $1; exit }')
    if [ -z "$mirror" ]; then
        echo "apt knows no Debian archive; run apt-get update" >&2
        return 1
    fi
    echo "== debootstrap $suite into $directory"
    debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$directory" "$mirror" \
        >"$directory.log" 2>&1 || {
        tail -n 20 "$directory.log" >&2
        return 1
    }
    rm -f "$directory.log"
    archives | awk -v suite="$suite" \
        '$2 == suite || $2 ~ "^" suite "-" { print "deb", $1, $2, $3 }' \
        >"$directory/etc/apt/sources.list"
    [ -s "$directory/etc/apt/sources.list" ] ||
        echo "deb $mirror $suite main" >"$directory/etc/apt/sources.list"
    # The way to the mirror is this machine's: proxy, certificates, name servers.
    apt-config dump | grep -E '^Acquire::(http|https)::' >"$directory/etc/apt/apt.conf.d/90way" ||
        true
    cp -rL /etc/ssl/certs "$directory/etc/ssl/" 2>/dev/null || true
    cp -L /etc/resolv.conf "$directory/etc/resolv.conf"
    # Nothing in it has to survive a loss of power: packages are unpacked in half the time.
    echo force-unsafe-io >"$directory/etc/dpkg/dpkg.cfg.d/unsafe-io"
    # What an installer leaves and debootstrap does not.
    chmod 0755 "$directory"
    echo "127.0.0.1 localhost fresh" >"$directory/etc/hosts"
    mkdir -p "$directory/opt/ucg"
}

# Sets `enter` to the words that run a command as root in the directory, in mount, process, host
# name and IPC namespaces of its own, with a source tree at /opt/ucg and a folder of ccache's, if
# they are given: set_enter DIRECTORY [TREE [CACHE]]
set_enter() {
    # For the script that has sourced this one.
    # shellcheck disable=SC2034
    enter=(unshare --mount --pid --fork --uts --ipc --kill-child
        "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/enter_root.sh" "$1" "${2:-}" "${3:-}")
}

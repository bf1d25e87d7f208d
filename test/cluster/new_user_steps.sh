#!/bin/bash
# new_user_steps.sh NAME: one step of new_user.sh, which runs it within a Debian of its own, as root
# in the clone there. Not for a machine that somebody uses: it installs packages.
set -euo pipefail

expect() {
    echo "ok: $*"
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# What lies on the disk, but for the clone, what apt, dpkg and man write down about what they
# did, and what shared folders of ccache and of this script hold.
files() {
    local left_out=(/dev /proc /sys /run /tmp /opt "$HOME/.cache" /var/cache/apt /var/lib/apt
        /var/log /var/cache/debconf /var/cache/ldconfig /var/cache/man) path expression=()
    for path in "${left_out[@]}"; do
        expression+=(-path "$path" -prune -o)
    done
    find / "${expression[@]}" -print | grep -v '^/var/lib/dpkg/[^/]*$' | LC_ALL=C sort
}

# Is the list of files the same as before? same_files BEFORE WHAT
same_files() {
    local after=$1.after
    files >"$after"
    diff "$1" "$after" || fail "$2 changed which files there are (above: < before, > after)"
    expect "after $2 there are the same $(wc -l <"$after") files and folders as before"
}

# With ccache, if the machine shares what it keeps.
use_ccache() {
    [ -d "$HOME/.cache/ccache" ] || return 0
    command -v ccache >/dev/null || apt_install ccache
    # What was compiled elsewhere differs by the folder alone, of which -g tells. Builds of Debian
    # packages have a HOME of their own.
    export PATH=/usr/lib/ccache:$PATH CCACHE_NOHASHDIR=1 CCACHE_DIR=$HOME/.cache/ccache
}

step_quickstart() {
    apt-get update -qq
    use_ccache
    tools/quickstart
}

step_check() {
    use_ccache
    tools/check --quick
}

# The words of README.md, "Installing".
step_install() {
    use_ccache
    tools/packages build run
    files >/tmp/before
    meson setup build-release --buildtype release
    ninja -C build-release
    meson install --no-rebuild -C build-release --quiet
    ldconfig
    export AUTOPKGTEST_TMP=/tmp/work
    mkdir -p $AUTOPKGTEST_TMP
    debian/tests/component
    expect "an installed program runs through UCG, without any option"
    debian/tests/library /usr/local/share/doc/ucg/examples/fork_allreduce.c
    expect "the example is compiled by pkg-config's words"
    debian/tests/tools >/tmp/work/tools.log 2>&1 || fail "$(cat /tmp/work/tools.log)"
    expect "programs and scripts work"
    ninja -C build-release uninstall >/dev/null
    same_files /tmp/before "install and uninstall"
}

# In a copy of the clone, as from a source package: nothing of it was built there.
step_build() {
    apt-get update -qq
    tools/packages build package
    use_ccache
    rm -rf /opt/packages
    git clone -q /opt/ucg /opt/packages/ucg
    cd /opt/packages/ucg
    dpkg-checkbuilddeps
    expect "debian/control names all that a build needs"
    dpkg-buildpackage -us -uc -S
    dpkg-buildpackage -us -uc -b
    cd ..
    rm -rf ucg
    # lintian of Debian 12 does not know this field, which dpkg has.
    local kind known=()
    grep -q Static-Built-Using /usr/share/lintian/data/fields/binary-fields ||
        known=(--suppress-tags unknown-field)
    for kind in source "$(dpkg --print-architecture)"; do
        lintian -I --pedantic --fail-on error,warning,info,pedantic "${known[@]}" \
            ucg_*_"$kind".changes
        expect "lintian finds nothing in what is built for $kind"
    done
    ls -l
}

step_packages() {
    local tests=(gcc libc6-dev libopenmpi-dev openmpi-bin pkg-config) ours needed name
    apt-get update -qq
    # What the packages depend on comes first, so that what they leave themselves can be told.
    mapfile -t ours < <(find /opt/packages -name '*.deb' ! -name '*-dbgsym_*' | sort)
    mapfile -t needed < <(apt-get install -s --no-install-recommends "${ours[@]}" "${tests[@]}" |
        awk '$1 == "Inst" && $2 !~ /ucg/ { print $2 }')
    apt_install "${needed[@]}"
    files >/tmp/before
    apt_install "${ours[@]}"
    expect "apt installs $(basename -a "${ours[@]}" | tr '\n' ' ')"
    export AUTOPKGTEST_TMP=/tmp/work
    mkdir -p $AUTOPKGTEST_TMP
    while read -r name; do
        debian/tests/"$name" </dev/null
        expect "debian/tests/$name"
    done < <(awk '$1 == "Tests:" { print $2 }' debian/tests/control)
    # shellcheck disable=SC2046
    apt-get purge -qq -y $(dpkg-query -W -f '${Package}\n' '*ucg*') >/dev/null
    same_files /tmp/before "install and purge"
}

"step_$1"

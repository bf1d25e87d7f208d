#!/bin/sh
# The command line of ucg_info: what it prints and with which status it exits. Argument: the tool.
set -u
tool=$1
. "$(dirname "$0")/expect.sh"

expect 0 '^UCG [0-9]+\.[0-9]+\.[0-9]+ \(API [0-9]+\.[0-9]+\)$' -v
expect 0 'Examples:' --help
expect 0 '^  UCX +compiled for [0-9.]+, running [0-9.]+$' -b
expect 0 '^Machine: ' -t
expect 0 '^  shm ' -d
expect 0 '^  ucx ' -d
expect 0 '^Transports$'
expect 0 '"usable_cpu_count"' --format json
expect 0 '^  processor ' -c
expect 0 '^  single copies +from [0-9]+ [KMG]iB on \(' -c
expect 0 '"single_copy_bytes_min": [0-9]+' -c --format json
expect 0 '"oversubscribed_ring_bytes": [0-9]+' -c --format json
[ "$("$tool" -c | grep -c 'times of\|built in: ')" -le 2 ] ||
    { echo "the origin is repeated"; failures=$((failures + 1)); }
[ "$("$tool" -c | grep -v '^  advice' | wc -L)" -le 120 ] ||
    { echo "the lines of the costs are too long"; failures=$((failures + 1)); }
# What groups take of the memory is told to those who ask for the transports.
expect 0 '^    1024 +[0-9.]+ [KMG]iB ' -d
expect 0 '"host_table_bytes": [0-9]+' -d --format json
"$tool" | grep -q 'memory of a group' && { echo "too much told"; failures=$((failures + 1)); }
# Nodes of a machine may hold less than the system has.
expect 0 'memory on NUMA nodes$'
expect 0 '"numa_memory_bytes": [0-9]+' -t --format json
expect 0 '^UCG_ALLREDUCE=$' -f
expect 0 '"UCG_TLS": "shm,ucx"' -f --format json
for wanted in '^UCG [0-9]' '^Build$' '^Machine: ' '^Transports$' '^Costs$' '^System$' \
    '^  kernel +Linux ' '^  open files +([0-9]+|unlimited)$' '^Environment$' '^UCG_ALLREDUCE=$'; do
    expect 0 "$wanted" --report
done

# Where nothing was measured it says so, unless that is wanted.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
HOME=$home
export HOME
XDG_CONFIG_DIRS=$home/system
export XDG_CONFIG_DIRS
unset XDG_CONFIG_HOME UCG_PROFILE
expect 0 '^  advice +costs are built in .*`ucg_tune memory` .* s: '
expect 0 '"advice": "costs are built in' -c --format json
expect 0 "^    looked for +$home/.config/ucg/profile.toml: not there$" -c
expect 0 "^ +$home/system/ucg/profile.toml: not there$" -c
# Whoever makes the file of this processor names it by what is printed.
processor=$("$tool" -c | sed -n 's/^  processor  *//p')
[ "$processor" = unknown ] ||
    expect 0 "^ +$home/system/ucg/profiles/$processor.toml: not there$" -c
mkdir -p "$home/system/ucg/profiles" "$home/.config/ucg/profile.toml"
expect 0 "^    looked for +$home/.config/ucg/profile.toml: not usable$" -c
profile=$("$tool" -c | sed -n 's/^ *\(.*\.toml\): not there$/\1/p' | head -n 1)
echo 'version = 1' >"$profile"
expect 0 "^  profile +$profile$" -c
expect 0 "^ +$profile: used$" -c
expect 0 '"outcome": "used"' -c --format json
expect 0 "^  note .*/profile.toml: cannot read .*: Is a directory\. $profile is used" -c
UCG_PROFILE=builtin
export UCG_PROFILE
"$tool" -c | grep -q advice && { echo "advice unasked"; failures=$((failures + 1)); }
"$tool" -c | grep -q 'looked for' && { echo "a file is sought"; failures=$((failures + 1)); }
UCG_PROFILE=/nowhere/profile.toml
expect 1 '^ucg_info: .*/nowhere/profile.toml' -c
unset UCG_PROFILE

UCG_CMA=32k
export UCG_CMA
expect 0 '^  single copies +from 32 KiB on \(UCG_CMA\)' -c
UCG_CMA=n
expect 0 '^  single copies +never \(UCG_CMA\)' -c
unset UCG_CMA

UCG_MACHINE='package:2 core:3 pu:1'
export UCG_MACHINE
expect 0 '^Ranks are taken to be elsewhere \(UCG_MACHINE\)'
expect 0 '^Machine: 2 packages, .* 6 cores' -t
expect 0 '"named_instead": \{' --format json
UCG_MACHINE=/nowhere/machine.xml
expect 1 '^ucg_info: UCG_MACHINE: /nowhere/machine.xml: cannot read the machine' -t
unset UCG_MACHINE

UCX_TLS=$(printf 'self,\033[2Jtcp')
export UCX_TLS
expect 0 '^  UCX_TLS=self,.u001b\[2Jtcp$' --report
expect 0 '"UCX_TLS": "self,' --report --format json
unset UCX_TLS
UCG_TOPOLOGY=$(printf '/nowhere/\377')
export UCG_TOPOLOGY
expect 0 '"UCG_TOPOLOGY": "/nowhere/' -f --format json
unset UCG_TOPOLOGY
UCG_TLS=shm
export UCG_TLS
expect 0 '^  ucx +possible, not used: UCG_TLS' -d
expect 0 '^UCG_TLS=shm$' -f
UCG_ALLREDUCE='0-4k:recursive_multiplying:a8,a4;4k-inf:ring'
export UCG_ALLREDUCE
expect 0 '^UCG_ALLREDUCE=0-4k:recursive_multiplying:a8,a4;4k-inf:ring$' -f
UCG_ALLREDUCE='0-4k'
expect 1 "^ucg_info: UCG_ALLREDUCE: '0-4k', position 4: expected ':' and an algorithm" -f
unset UCG_ALLREDUCE
UCG_TLS=tcp
expect 1 '^ucg_info: UCG_TLS: expected a list of shm and ucx' -d
unset UCG_TLS

UCG_ALREDUCE=$(printf 'ring\033[2J')
export UCG_ALREDUCE
expect 0 'does not know: UCG_ALREDUCE \(maybe UCG_ALLREDUCE\?\)\. ' -v
UCG_WARN_UNUSED_ENV_VARS=n
export UCG_WARN_UNUSED_ENV_VARS
[ -z "$("$tool" -v 2>&1 >/dev/null)" ] || { echo "not silenced"; failures=$((failures + 1)); }
unset UCG_ALREDUCE UCG_WARN_UNUSED_ENV_VARS

topology=$(mktemp)
trap 'rm -rf "$home" "$topology"' EXIT
UCG_TOPOLOGY=$topology
export UCG_TOPOLOGY
host=$(hostname)
echo "SwitchName=s0 Nodes=nobody,$host" >"$topology"
expect 0 "^  switches +$topology: 1 switch, 2 machines; this host is $host" -d
expect 0 '"machines": 2' -d --format json
echo 'SwitchName=s0 Nodes=nobody' >"$topology"
expect 0 "^  switches .*1 switch, 1 machine; this host, '$host', is not in it" -d
echo 'SwitchName=s0 Hosts=nobody' >"$topology"
expect 0 "^  switches +not known: $topology: line 1: unknown key 'Hosts'" -d
UCG_TOPOLOGY=none
expect 0 '^  switches +not known: no topology file' -d
unset UCG_TOPOLOGY

expect 2 'expected one of text, json; found dot' --format dot

[ "$failures" -eq 0 ]

#!/bin/sh
# The command line of ucg_topo: what it prints and with which status it exits. Arguments: the tool,
# and ucg_sim, which reads platforms.
set -u
tool=$1
simulator=$2
failures=0

# expect STATUS PATTERN ARGUMENTS...: standard input goes to the tool; PATTERN (grep -E) must match
# a line of what it prints on either stream.
expect() {
    status=$1
    pattern=$2
    shift 2
    output=$("$tool" "$@" 2>&1)
    found=$?
    if [ "$found" -ne "$status" ]; then
        echo "ucg_topo $*: expected status $status, found $found: $output"
        failures=$((failures + 1))
    elif ! printf '%s\n' "$output" | grep -Eq -- "$pattern"; then
        echo "ucg_topo $*: expected a line like '$pattern', found: $output"
        failures=$((failures + 1))
    fi
}

machine="package:2 numa:1 l3:2 core:3 pu:2"

expect 0 '^ucg_topo \(UCG\) [0-9]+\.[0-9]+' --version
expect 0 'Examples:' show --help
expect 0 'Examples:' convert --help
expect 0 'Examples:' placement --help
expect 0 '^This process: CPUs ' show
expect 0 '"usable_cpu_count"' show --format json
expect 0 'Cache 3 \(.*\): cores 9-11, CPUs 18-23' show --synthetic "$machine"
expect 0 '^digraph machine' show --synthetic "$machine" --format dot
expect 0 '^core 11: package 1 numa 1 l3 3 l2 11 threads 22,23$' convert --synthetic "$machine"
expect 0 '^rank 3: host 1$' placement --hosts 2 --ranks-per-host 3
expect 0 '^rank 1: host 0 package 1 numa 1 cache 2 core 6$' \
    placement --ranks-per-host 2 --map package --synthetic "$machine"
expect 0 '^ *Core 6: rank 1$' \
    placement --ranks-per-host 2 --map package --synthetic "$machine" --format outline
expect 0 '^rank 2: host 0( package 0)?( numa 0)?( cache 0)?( core 0)?$' \
    placement --ranks-per-host 3 --unbound
expect 0 '^ *"host": 1,?$' placement --hosts 2 --ranks-per-host 1 --format json

expect 2 'A subcommand is required'
expect 2 'expected one of text, json, dot; found svg' show --format svg
expect 2 'at most 1' show --synthetic "$machine" --xml -
expect 2 'ranks-per-host or --file' placement
expect 2 'excludes' placement --file - --hosts 2
expect 2 'this machine' placement --ranks-per-host 2 --unbound --synthetic "$machine"
expect 2 'from 1 to 2147483647, found .0.' placement --ranks-per-host 0
expect 2 'at most 2147483647 ranks' placement --hosts 65536 --ranks-per-host 65536
expect 2 'expected one of core, .*; found shelf' placement --ranks-per-host 2 --map shelf

expect 1 '^ucg_topo: /nonexistent/file: cannot open' show --xml /nonexistent/file
expect 1 'with pu last, found "shelf:2"' show --synthetic shelf:2
expect 1 '^ucg_topo: standard input: line 1, column 1: expected "machine"' \
    show --machine-file - <<END
package 1
END
expect 1 'line 2, column 6: expected rank 1, found rank 2' placement --file - <<END
rank 0: host 0
rank 2: host 0
END

# Clusters.
cluster() { # FORM...: figure 1 of the paper, without rates.
    # Not through a pipe, whose end has a count of failures to itself.
    expect "$@" <<END
SwitchName=s0 Nodes=n[0-2]
SwitchName=s3 Nodes=n[3-4]
SwitchName=s1 Nodes=n5 Switches=s0,s3
END
}
expect 0 'Examples:' cluster --help
cluster 0 '^Cluster: 3 switches, 6 machines, rates of links not known$' cluster -
cluster 0 'load 9, peak aggregate throughput 3.333 times the rate of a link$' cluster -
cluster 0 '^Bottleneck: s0 to s1, load 9, 100 Mbit/s$' cluster - --rate 100mbit
cluster 0 'peak aggregate throughput 333.3 Mbit/s$' cluster - --rate 100mbit
cluster 0 '^  s3 +8 +unknown +n\[3-4\]$' cluster -
cluster 0 '^Cluster: 2 switches, 3 machines' cluster - --machines 'n[0-1,5]'
cluster 0 '"name": "s0", "kind": "switch", "parent": "s1", "bytes_per_second": 12500000' \
    cluster - --format json --rate 100mbit
cluster 0 '^  "s1" -- "s0" \[label="9", penwidth=5.0, color=red\];$' cluster - --format dot
cluster 0 '^</svg>$' cluster - --format svg
cluster 0 'bandwidth="12500000Bps" latency="5e-07s"' \
    cluster - --format simgrid --rate 100mbit --latency 0.5
cluster 1 "switch 's1' has both machines and switches, which Slurm refuses; write JSON" \
    cluster - --format slurm
for pattern in '^# UCG: LinkSpeed is in Mbit/s$' '^SwitchName=s0 Nodes=n\[0-2\] LinkSpeed=100$'; do
    expect 0 "$pattern" cluster - --format slurm <<END
SwitchName=s0 Nodes=n[0-2] LinkSpeed=100mbit
END
done
cluster 1 "above 'n5' is not known, and SimGrid needs" cluster - --format simgrid
cluster 1 "machines: - has no machine 'n6'" cluster - --machines 'n[0-9]'
cluster 1 "machines: host list 'n\[': brackets do not match" cluster - --machines 'n['
cluster 2 "rate: rate 'fast': expected a number and a unit" cluster - --rate fast
expect 1 '^ucg_topo: standard input: line 2: unknown key .Host.' cluster - <<END
# Nodes is meant.
SwitchName=s0 Host=n0
END
expect 1 '^ucg_topo: /nonexistent/file: cannot open' cluster /nonexistent/file
expect 2 'file is required' cluster

# What one command writes, the other reads.
"$tool" convert --synthetic "$machine" |
    "$tool" show --machine-file - --format json >/dev/null || failures=$((failures + 1))
"$tool" placement --hosts 3 --ranks-per-host 2 --map host |
    "$tool" placement --file - --format outline | grep -q '^  Host 1: ranks 1,4$' ||
    failures=$((failures + 1))

# Three senders below s0 to one machine: its link carries their messages one after the other.
platform=$(mktemp)
trap 'rm -f "$platform"' EXIT
printf 'SwitchName=s1 Nodes=n3 Switches=s0\nSwitchName=s0 Nodes=n[0-2]\n' |
    "$tool" cluster - --rate 8gbit --format simgrid -o "$platform"
"$simulator" run --collective gather --hosts 4 --ranks-per-host 1 --bytes 1000 --algorithm linear \
    --model pipelining-postal --alpha-p 1us --alpha-r 0ns --beta 1ns \
    --pricing simgrid --platform "$platform" 2>&1 |
    grep -Eq '^  completion   3000 ns$|this build has no SimGrid' ||
    { echo "ucg_sim does not take the platform"; failures=$((failures + 1)); }

if [ -w /dev/full ]; then
    "$tool" show >/dev/full 2>/dev/null
    [ $? -eq 1 ] || { echo "a full disk must fail"; failures=$((failures + 1)); }
fi

[ "$failures" -eq 0 ]

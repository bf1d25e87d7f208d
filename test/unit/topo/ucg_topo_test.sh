#!/bin/sh
# The command line of ucg_topo: what it prints and with which status it exits. Argument: the tool.
set -u
tool=$1
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

# What one command writes, the other reads.
"$tool" convert --synthetic "$machine" |
    "$tool" show --machine-file - --format json >/dev/null || failures=$((failures + 1))
"$tool" placement --hosts 3 --ranks-per-host 2 --map host |
    "$tool" placement --file - --format outline | grep -q '^  Host 1: ranks 1,4$' ||
    failures=$((failures + 1))

if [ -w /dev/full ]; then
    "$tool" show >/dev/full 2>/dev/null
    [ $? -eq 1 ] || { echo "a full disk must fail"; failures=$((failures + 1)); }
fi

[ "$failures" -eq 0 ]

#!/bin/sh
# The command line of ucg_aapc: every format, the paper's example, and what it refuses.
# Argument: the tool.
set -u
tool=$1
. "$(dirname "$0")/expect.sh"
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT

fail() {
    echo "$*"
    failures=$((failures + 1))
}

# Figure 1 of Faraj and Yuan.
cat >"$directory/figure1.json" <<'END'
{"nodes": [
  {"name": "s1", "kind": "switch"},
  {"name": "s0", "kind": "switch", "parent": "s1", "bytes_per_second": 12500000},
  {"name": "s3", "kind": "switch", "parent": "s1", "bytes_per_second": 12500000},
  {"name": "n0", "kind": "machine", "parent": "s0", "bytes_per_second": 12500000},
  {"name": "n1", "kind": "machine", "parent": "s0", "bytes_per_second": 12500000},
  {"name": "n2", "kind": "machine", "parent": "s0", "bytes_per_second": 12500000},
  {"name": "n3", "kind": "machine", "parent": "s3", "bytes_per_second": 12500000},
  {"name": "n4", "kind": "machine", "parent": "s3", "bytes_per_second": 12500000},
  {"name": "n5", "kind": "machine", "parent": "s1", "bytes_per_second": 12500000}
]}
END
file=$directory/figure1.json

expect 0 '^ucg_aapc \(UCG\) [0-9]+\.[0-9]+' --version
expect 0 'Exit status: ' --help
expect 2 'topology is required'
expect 2 'expected one of text, json, dot, schedule; found svg' --topology "$file" --format svg
expect 1 'cannot open' --topology "$directory/missing.conf"

# Its table 4, phase for phase.
expect 0 '^root +s1$' --topology "$file"
expect 0 '^load +9$' --topology "$file"
expect 0 '^phases +9$' --topology "$file"
expect 0 '^bottleneck +s0 to s1$' --topology "$file"
expect 0 '^peak throughput +333.3[0-9]* Mbit/s$' --topology "$file"
expect 0 '^t0 +n0 n1 n2$' --topology "$file"
"$tool" --topology "$file" | sed -n '/^phase /,/^$/p' >"$directory/table"
cat >"$directory/table4" <<'END'
phase  from t0   from t1   from t2   in t0     in t1
0      n0 -> n4  n3 -> n5  n5 -> n1  n1 -> n0
1      n1 -> n3  n4 -> n5  n5 -> n2  n2 -> n1
2      n2 -> n4            n5 -> n0  n0 -> n2
3      n0 -> n3  n3 -> n2            n2 -> n0
4      n1 -> n4  n3 -> n0            n0 -> n1  n4 -> n3
5      n2 -> n3  n3 -> n1            n1 -> n2
6      n0 -> n5  n4 -> n0
7      n1 -> n5  n4 -> n1  n5 -> n3            n3 -> n4
8      n2 -> n5  n4 -> n2  n5 -> n4

END
diff "$directory/table4" "$directory/table" || fail "not table 4"

# JSON that says the same: each message once, by phase, and waits for earlier phases.
"$tool" --topology "$file" --format json >"$directory/plan.json"
python3 - "$directory/plan.json" <<'END' || fail "the JSON is wrong"
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    plan = json.load(file)
assert sorted(plan) == ["load", "machines", "phases", "root", "syncs"]
assert plan["root"] == "s1" and plan["load"] == 9 == len(plan["phases"])
assert sorted(plan["machines"]) == ["n0", "n1", "n2", "n3", "n4", "n5"]
messages = [tuple(message) for phase in plan["phases"] for message in phase]
assert len(messages) == 30 == len(set(messages))
assert ["n0", "n4"] in plan["phases"][0]
for sync in plan["syncs"]:
    (p, after), (q, before) = sync["after"], sync["before"]
    assert p < q and after in plan["phases"][p] and before in plan["phases"][q]
    assert sync["from"] == after[0] and sync["to"] == before[0] and after[0] != before[0]
END

expect 0 '^graph aapc \{' --topology "$file" --format dot
expect 0 '"s1" -- "s0" \[label="9", color=red' --topology "$file" --format dot
expect 0 '^aapc 1$' --topology "$file" --format schedule
expect 0 '^machines 6$' --topology "$file" --format schedule
"$tool" --topology "$file" --format schedule -o "$directory/figure1.aapc" || fail "-o failed"
grep -q '^phases 9$' "$directory/figure1.aapc" || fail "-o wrote something else"

# Slurm's file, by way of standard input; without rates no throughput is known.
printf 'SwitchName=s0 Nodes=n[0-3]\n' >"$directory/topology.conf"
expect 0 '^root +s0$' --topology "$directory/topology.conf"
expect 0 '^peak throughput +unknown$' --topology "$directory/topology.conf"
"$tool" --topology - <"$directory/topology.conf" >"$directory/piped" || fail "- failed"
grep -q '^phases            3$' "$directory/piped" || fail "- gave something else"

# What cannot be scheduled, and what is no topology.
printf 'SwitchName=s0 Nodes=n0\n' >"$directory/one.conf"
expect 1 'nothing to schedule for 1 machine,' --topology "$directory/one.conf"
printf 'SwitchName=s0 Nodes=n0,n0\n' >"$directory/twice.conf"
expect 1 'twice.conf: line 1: ' --topology "$directory/twice.conf"

exit $((failures > 0))

#!/bin/sh
# The command line of ucg_tune: what it prints, what it writes and with which status it exits. Times
# are not judged, but that they are possible. Arguments: the tool, ucg_plan, a program that uses the
# library among two ranks.
set -u
tool=$1
plan=$2
ranks=$3
. "$(dirname "$0")/expect.sh"
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
HOME=$directory/home
XDG_CONFIG_HOME=$directory/config
export HOME XDG_CONFIG_HOME
unset UCG_PROFILE

fail() {
    echo "$*"
    failures=$((failures + 1))
}

expect 0 '^ucg_tune \(UCG\) [0-9]+\.[0-9]+' --version
expect 0 'Exit status: ' --help
expect 0 'Examples:' memory --help
expect 0 "$directory/config/ucg/profile.toml" memory --help
expect 2 'A subcommand is required'
expect 2 'not in range' memory --time 0
expect 2 'expected one of text, json, toml; found dot' memory --format dot
expect 1 "expected a name without quotes" memory --plot "it's.svg"

# The report, and the profile where UCG looks for it.
expect 0 '^Futex wake, same CPU +[0-9.]+ ns$' memory --quick --time 0.3
[ -f "$XDG_CONFIG_HOME/ucg/profile.toml" ] || fail "no profile at the default place"
grep -q '^# Written by: ucg_tune memory --time 0.3 --quick$' "$XDG_CONFIG_HOME/ucg/profile.toml" ||
    fail "the profile does not say how it came about"

# What is written is accepted: by the planner's tool, and by the library, found and named.
expect 0 'ucg_tune: wrote ' memory --quick --time 0.3 -o "$directory/node.toml" --format json
"$tool" memory --quick --time 0.3 -q -o - >"$directory/piped.toml" || fail "-o - failed"
tool=$plan
for file in "$XDG_CONFIG_HOME/ucg/profile.toml" "$directory/node.toml" "$directory/piped.toml"; do
    expect 0 'us  chosen$' explain --profile "$file" --collective allreduce --ranks 4 --bytes 8
done
tool=$ranks
expect 0 '.' 2
UCG_PROFILE=$directory/node.toml
export UCG_PROFILE
expect 0 '.' 2
tool=$1

# Every number is possible.
"$tool" memory --quick --time 0.3 -q -o "$directory/node.toml" --format json |
    python3 -c '
import json, math, sys
report = json.load(sys.stdin)
def check(path, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            check(f"{path}.{key}", inner)
    elif isinstance(value, float) and not isinstance(value, bool):
        assert math.isfinite(value) and value >= 0, (path, value)
for part in ("levels", "caches", "reduce", "cma", "wake"):
    check(part, report[part])
for level in report["levels"].values():
    assert level["latency_ns"] > 0 and level["per_byte_ns"] > 0
    assert 0 < level["contended_per_byte_ns"]
assert report["wake"]["measured"] and report["wake"]["yield_switch_ns"] > 0
assert report["caches"]["l1"]["measured"] and report["caches"]["l1"]["copy_per_byte_ns"] > 0
assert not report["caches"]["memory"]["measured"] # --quick
for point in report["points"]:
    assert 0 < point["first_quartile_ns"] <= point["median_ns"] <= point["third_quartile_ns"], point
    assert point["rounds"] >= 1
' || fail "the report has impossible numbers"

# What the file says of other costs stays.
sed 's/^overhead_ns = 500.0/overhead_ns = 321.0/' "$directory/node.toml" >"$directory/mine.toml"
expect 0 '^overhead_ns = 321.0$' memory --quick --time 0.3 -o "$directory/mine.toml" --format toml

# Malformed files: named, where, and what was expected.
printf 'version = 1\n[memory.cma]\npermitted = "no"\n' >"$directory/broken.toml"
wrong='broken.toml: line 3: memory.cma.permitted: expected true or false, found "no"'
expect 1 "$wrong" memory --quick -o "$directory/broken.toml"
UCG_PROFILE=$directory/broken.toml
tool=$ranks
output=$("$tool" 2 2>&1) && fail "the library took a malformed profile that was named"
printf '%s\n' "$output" | grep -q "error: UCG_PROFILE: .*$wrong" || fail "no clear error: $output"
unset UCG_PROFILE
cp "$directory/broken.toml" "$XDG_CONFIG_HOME/ucg/profile.toml"
expect 0 "warning: .*profile.toml: line 3.*The built-in costs are used" 2
UCG_PROFILE=builtin
export UCG_PROFILE
output=$("$tool" 2 2>&1) || fail "UCG_PROFILE=builtin fails: $output"
printf '%s\n' "$output" | grep -q warning && fail "UCG_PROFILE=builtin does not silence: $output"
tool=$1

if command -v gnuplot >/dev/null; then
    expect 0 '.' memory --quick --time 0.3 -o "$directory/node.toml" --plot "$directory/plot.svg"
    grep -q '</svg>' "$directory/plot.svg" || fail "no picture"
fi

[ "$failures" -eq 0 ]

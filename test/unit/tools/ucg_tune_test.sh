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
XDG_CONFIG_DIRS=$directory/system
export HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS
unset UCG_PROFILE

fail() {
    echo "$*"
    failures=$((failures + 1))
}

expect 0 '^ucg_tune \(UCG\) [0-9]+\.[0-9]+' --version
expect 0 'Exit status: ' --help
expect 0 'Examples:' memory --help
expect 0 "ucg/profile.toml in" memory --help
expect 2 'A subcommand is required'
expect 2 'from 0.1 to 3600, found .0.' memory --time 0
expect 2 'expected one of text, json, toml; found dot' memory --format dot
expect 2 "expected a name without quotes" memory --plot "it's.svg"
expect 1 '^ucg_tune: /no/such/x: cannot write: there is no folder /no/such' memory -o /no/such/x
expect 1 '^ucg_tune: /: cannot write: it is a folder' memory -o /
expect 1 'cannot write: there is no folder /no/such' memory --quick -o - --plot /no/such/x.svg
expect 1 'cannot write: there is no folder /no/such' network --processes 2 -o /no/such/x
expect 1 'cannot write: there is no folder /no/such' network --processes 2 --plot /no/such/x.svg

# The default place, too, is tried before anything is measured.
mkdir -p "$directory/folder/ucg/profile.toml"
XDG_CONFIG_HOME=$directory/folder
for command in memory "import-ucx-perftest $directory/nowhere.csv"; do
    expect 1 'profile.toml: cannot write: it is a folder' $command
done
XDG_CONFIG_HOME=$directory/config

# Nor is the system's.
expect 2 'excludes' memory --quick --system -o "$directory/x.toml"
for folders in /dev/null relative; do
    XDG_CONFIG_DIRS=$folders
    expect 1 '^ucg_tune: --system: .*(for root|no absolute folder)' memory --system
done
XDG_CONFIG_DIRS=$directory/system

# How often a program of some ranks, whose output is its own, is told to tune: advices RANKS
advices() {
    "$ranks" "$1" 2>"$directory/told" >"$directory/printed" || fail "a program of $1 ranks failed"
    grep -q ucg_tune "$directory/printed" && fail "advice among what a program prints"
    grep -c 'ucg info: .*`ucg_tune memory`.* silences this$' "$directory/told"
}

# Programs are told where they are told anything but warnings, once.
[ "$(advices 3)" -eq 0 ] || fail "told of tuning unasked: $(cat "$directory/told")"
UCG_LOG_LEVEL=info
export UCG_LOG_LEVEL
[ "$(advices 3)" -eq 1 ] || fail "not told once of tuning: $(cat "$directory/told")"
[ "$(advices 1)" -eq 0 ] || fail "who is alone on a host has nothing to tune"
UCG_PROFILE=builtin
export UCG_PROFILE
[ "$(advices 3)" -eq 0 ] || fail "UCG_PROFILE=builtin does not silence: $(cat "$directory/told")"
unset UCG_LOG_LEVEL UCG_PROFILE

# For all users: a file of the system, which they can read, whatever root's umask.
(umask 077 && "$tool" memory --quick --time 0.3 -q --system >/dev/null) || fail "--system failed"
[ "$(stat -c %a "$XDG_CONFIG_DIRS/ucg")" = 755 ] || fail "others cannot look into the folder"
system=$(find "$XDG_CONFIG_DIRS/ucg" -type f)
[ "$(stat -c %a "$system")" = 644 ] || fail "others cannot read $system"
[ "$(UCG_LOG_LEVEL=info advices 2)" -eq 0 ] || fail "told of tuning after --system"
sed -i 's/^processor = .*/processor = "Somebody family 1 model 2"/' "$system"
if grep -q '^processor = ' "$system"; then
    "$ranks" 3 2>"$directory/told" >/dev/null || fail "a foreign profile stops the program"
    [ "$(wc -l <"$directory/told")" -eq 1 ] && grep -q "$system was measured on another" \
        "$directory/told" || fail "not told in one line of $system: $(cat "$directory/told")"
fi
rm -r "$XDG_CONFIG_DIRS"

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
[ "$(UCG_LOG_LEVEL=info advices 2)" -eq 0 ] || fail "told of tuning after it"
UCG_PROFILE=$directory/node.toml
export UCG_PROFILE
expect 0 '.' 2
tool=$1

# Of a profile that was measured on another kind of processor the network alone is kept.
awk '/^\[/ { table = $0 }
    table == "[levels.host]" && /^latency_ns/ { $0 = "latency_ns = 12345.0" }
    table == "[network.links]" && /^contention/ { $0 = "contention = 1.75" }
    (table == "[levels.host]" || table == "[network.links]") && /^measured/ {
        $0 = "measured = true" }
    /^processor/ { $0 = "processor = \"Another kind\"" } { print }' "$directory/node.toml" \
    >"$directory/foreign.toml"
grep -q '^latency_ns = 12345.0$' "$directory/foreign.toml" || fail "no such profile"
"$tool" memory --quick --time 0.3 -q -o "$directory/foreign.toml" >/dev/null ||
    fail "-o over another's"
! grep -q '^latency_ns = 12345.0$' "$directory/foreign.toml" || fail "another processor's is kept"
grep -q '^contention = 1.75$' "$directory/foreign.toml" || fail "the network is not kept"
! grep -q 'Another kind' "$directory/foreign.toml" || fail "the processor is another"

# One at the default place stays, for hosts of that kind, unless it is named.
default=$XDG_CONFIG_HOME/ucg/profile.toml
cp "$default" "$directory/kept.toml"
sed 's/^processor = .*/processor = "Another kind"/' "$directory/node.toml" >"$default"
cp "$default" "$directory/foreign.toml"
if grep -q '^processor = ' "$default"; then
    expect 1 "^ucg_tune: $default was measured on Another kind, .*-o FILE.*UCG_PROFILE=FILE" \
        memory --quick --time 0.3
    cmp -s "$default" "$directory/foreign.toml" || fail "a profile of other hosts is replaced"
    expect 0 '.' memory --quick --time 0.3 -o "$default"
    ! grep -q 'Another kind' "$default" || fail "a profile that was named is not replaced"
fi
cp "$directory/kept.toml" "$default"

# A disk that is full does not take the report along.
if [ -w /dev/full ]; then
    expect 1 '^Futex wake, same CPU +[0-9.]+ ns$' memory --quick --time 0.3 -o /dev/full
    printf '%s\n' "$output" | grep -q '^ucg_tune: /dev/full: cannot write: ' ||
        fail "not told of a disk that is full: $output"
    expect 1 '^Note: 1 of 1 peers ' network --processes 2 --time 0.1 -k 2 -o /dev/full
fi

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

# Each figure of the profile is known, with its error if it was fitted, or named as not measured;
# and a table is marked as measured when its figures were.
"$tool" memory --quick --time 0.3 -q -o "$directory/figures.toml" --format json \
    >"$directory/figures.json" || fail "no figures"
python3 - "$directory/figures.json" "$directory/figures.toml" <<'END' || fail "figures are missing"
import json, os, sys
report = json.load(open(sys.argv[1]))
keys, marked, table = [], {}, ""
for line in open(sys.argv[2]):
    if line.startswith("["):
        table = line.strip("[]\n")
    elif " = " in line and not line.startswith(("#", "version")) and table != "measured":
        key, value = line.strip().split(" = ")
        if key == "measured":
            marked[table] = value == "true"
        elif not key.endswith("_measured"):
            keys.append(f"{table}.{key}")
known = report["figures"]
unknown = {entry["figure"]: entry for entry in report["not_measured"]}
assert not known.keys() & unknown.keys()
assert sorted(known.keys() | unknown.keys()) == sorted(keys)
for path, figure in known.items():
    assert (figure["origin"] == "fitted") == ("error_per_cent" in figure), path
    assert figure.get("error_per_cent", 0) >= 0, path
apart = ("contended_per_byte_ns", "futex_across_ns", "capacity_bytes", "permitted",
         "mapped_bytes_min", "oversubscribed_ring_bytes", "oversubscribed_cma_bytes_min",
         "oversubscribed_combined_bytes_min", "one_way_bytes_min", "combined_bytes_min")
# A virtual machine's CPUs may be apart, or move, and not come together before the end.
moved = any("farther apart" in note for note in report["notes"])
if moved:
    apart += ("overwrite_per_byte_ns", "streaming_per_byte_ns")
for path in keys:
    table, key = path.rsplit(".", 1)
    if table in marked and key not in apart:
        if table != "memory.cma" or report["cma"]["permitted"]:
            assert (path in known) == marked[table], path
for key in ("ring_bytes", "oversubscribed_cma_bytes_min", "oversubscribed_ring_bytes",
            "oversubscribed_combined_bytes_min"):
    assert unknown["memory.copies." + key]["threshold"], key # --quick
assert unknown["memory.cooperative_copies.bytes_min"]["threshold"]
if moved:
    assert any("stay" in entry["reason"] for entry in unknown.values())
elif len(os.sched_getaffinity(0)) > 1: # Of messages, the short ones.
    assert any(marked[f"levels.{level}"] for level in ("core", "cache", "numa", "package", "host"))
    assert known["memory.copies.mapped_bytes_min"]["value"] >= 2048
END
grep -q '^# Error of memory.caches.l1: copy_per_byte_ns [0-9.]* %, ' "$directory/figures.toml" ||
    fail "no errors in the profile"
expect 0 '^  memory.caches.l1.copy_per_byte_ns +[0-9.e+-]+ +[0-9.]+ %' memory --quick --time 0.3 \
    -o "$directory/figures.toml"
printf '%s\n' "$output" | sed -n '/^Thresholds that decide/,$p' |
    grep -q '^  memory.copies.ring_bytes  *[0-9]* [KM]iB  ' ||
    fail "the report does not end with the thresholds that were not measured"

# Without --quick nothing that decides is left to a default, where there are two CPUs for it that
# stay as near.
"$tool" memory --time 1 -q -o "$directory/whole.toml" --format json >"$directory/whole.json" ||
    fail "not measured in a second"
python3 - "$directory/whole.json" <<'END' || fail "thresholds are missing"
import json, os, sys
report = json.load(open(sys.argv[1]))
unknown = [entry["figure"] for entry in report["not_measured"] if entry["threshold"]]
moved = any("farther apart" in note for note in report["notes"])
unknown = [figure for figure in unknown
           if not figure.startswith("memory.far_copies.")]
if moved: # Then nothing else is missing than what needs them near.
    unknown = [figure for figure in unknown
               if not figure.startswith(("memory.copies.", "memory.cooperative_copies.",
                                         "memory.flag_slots.", "memory.cma.one_way",
                                         "memory.cma.combined"))]
if not os.path.exists("/sys/devices/system/cpu/cpu0/cache"): # As in some virtual machines.
    unknown = [figure for figure in unknown if not figure.endswith(".capacity_bytes")]
assert not unknown or len(os.sched_getaffinity(0)) == 1 or not report["cma"]["permitted"], unknown
END

# What the file says of other costs stays.
sed 's/^overhead_ns = 500.0/overhead_ns = 321.0/' "$directory/node.toml" >"$directory/mine.toml"
expect 0 '^overhead_ns = 321.0$' memory --quick --time 0.3 -o "$directory/mine.toml" --format toml

# A profile of another kind of processor, named, is used and told of in one line, once.
if grep -q '^processor = ' "$directory/node.toml"; then
    sed 's/^processor = .*/processor = "Somebody family 1 model 2"/' "$directory/node.toml" \
        >"$directory/foreign.toml"
    UCG_PROFILE=$directory/foreign.toml "$ranks" 3 2>"$directory/told" >/dev/null ||
        fail "a foreign profile stops the program"
    [ "$(wc -l <"$directory/told")" -eq 1 ] &&
        grep -q 'measured on another processor (Somebody family 1 model 2)' "$directory/told" ||
        fail "not told in one line of a foreign profile: $(cat "$directory/told")"
fi

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
# One that cannot be read is told of with it, in one line; the program goes on.
mkdir -p "$XDG_CONFIG_DIRS/ucg/profile.toml"
expect 0 "line 3.*system/ucg/profile.toml: cannot read .*The built-in costs are used" 3
[ "$(printf '%s\n' "$output" | grep -c warning)" -eq 1 ] || fail "told more than once: $output"
UCG_PROFILE=builtin
export UCG_PROFILE
output=$("$tool" 2 2>&1) || fail "UCG_PROFILE=builtin fails: $output"
printf '%s\n' "$output" | grep -q warning && fail "UCG_PROFILE=builtin does not silence: $output"
tool=$1

# The network, among processes of this host.
expect 0 'Examples:' network --help
expect 2 'expected two different lengths' network --processes 2 --bytes 8
expect 1 'found no launcher' network
expect 2 'from 2 to 256, found .1.' network --processes 1
expect 2 'expected one of the two' network --processes 2 --bootstrap nowhere:1
for command in memory 'network --processes 2' 'import-ucx-perftest nowhere.csv'; do
    expect 2 ': --format: with --output - the profile alone is printed: expected toml, found text' \
        $command -o - --format text
done
UCX_TLS=tcp UCX_NET_DEVICES=lo
export UCX_TLS UCX_NET_DEVICES
expect 0 'Note: 2 of 2 peers are on the host of rank 0' network --processes 3 --time 0.1 -k 3
"$tool" network --processes 2 --time 0.1 -k 4 --bytes 8,2k -q --format json \
    -o "$directory/node.toml" --plot "$directory/multicast.svg" >"$directory/network.json" ||
    fail "network failed"
python3 - "$directory/network.json" <<'END' || fail "the network's report has impossible numbers"
import json, sys
report = json.load(open(sys.argv[1]))
for fit in (report["minimum"], report["median"]):
    assert fit["alpha_p_ns"] >= 0 and fit["alpha_r_ns"] >= 0 and fit["beta_ns_per_byte"] >= 0, fit
assert report["overhead_ns"] > 0
stream = report["stream"]
assert stream["gap_ns_per_byte"] > 0 and len(stream["batch_ns"]) >= 4, stream
assert report["exchange"]["contention"] == 0 and report["exchange"]["ranks"] == 2
kinds = [(cast["sending"], cast["messages"], cast["bytes"]) for cast in report["multicasts"]]
assert sorted(kinds) == sorted([(sending, b, 8) for sending in ("blocking", "nonblocking")
                                for b in (1, 2, 3, 4)] +
                               [("nonblocking", b, 2048) for b in (1, 2, 3, 4)]), kinds
for cast in report["multicasts"]:
    assert cast["minimum_ns"] <= cast["first_quartile_ns"] <= cast["median_ns"], cast
    assert cast["median_ns"] <= cast["third_quartile_ns"] <= cast["maximum_ns"], cast
    assert len(cast["one_way_ns"]) >= 5, cast
# What is sent without waiting takes its round trip less that of an answer, which comes from other
# round trips: if another program disturbed all of those, the difference may be negative.
assert all(cast["minimum_ns"] > 0 for cast in report["multicasts"]
           if cast["sending"] == "blocking"), report["multicasts"]
END
grep -q '^contention = 1.27$' "$directory/node.toml" || fail "two cannot measure contention"
"$tool" network --processes 4 --time 0.1 -k 2 -q --format json -o "$directory/four.toml" \
    >"$directory/four.json" || fail "network among four failed"
python3 - "$directory/four.json" <<'END' || fail "the report of contention has impossible numbers"
import json, sys
exchange = json.load(open(sys.argv[1]))["exchange"]
assert exchange["contention"] >= 1 and exchange["ranks"] == 4, exchange
assert exchange["bytes"] == 66 << 16 and len(exchange["batch_ns"]) >= 4, exchange
END
grep -A2 '^\[network.links\]' "$directory/four.toml" | grep -q '^measured = true' ||
    fail "contention is not marked as measured"
grep -q '</svg>' "$directory/multicast.svg" || fail "no picture of multicasts"
grep -q '^\[network.median\]' "$directory/node.toml" || fail "no network in the profile"
grep -q '^measured = true' "$directory/node.toml" || fail "the network is not marked as measured"
tool=$plan
expect 0 'us  chosen$' explain --profile "$directory/node.toml" --collective allreduce --ranks 4 \
    --bytes 8
tool=$1
# Processes of a launcher, here of none: what it would tell by the environment.
meeting=127.0.0.1:$(python3 - <<'END'
import socket
with socket.create_server(("127.0.0.1", 0)) as free:
    print(free.getsockname()[1])
END
)
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 "$tool" network \
    --bootstrap "$meeting" --time 0.1 &
peer=$!
output=$(OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$tool" network --bootstrap "$meeting" \
    --time 0.1 -q -o - 2>&1) || fail "ranks of a launcher do not meet: $output"
wait "$peer" || fail "rank 1 of a launcher failed"
printf '%s\n' "$output" | grep -q '^\[network.minimum\]' || fail "no profile on standard output"
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=2
export OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK
expect 1 '2 ranks cannot have a rank 2' network --bootstrap "$meeting"
OMPI_COMM_WORLD_RANK=0
expect 1 '--bootstrap HOST:PORT is missing' network
unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK

if command -v gnuplot >/dev/null; then
    expect 0 '.' memory --quick --time 0.3 -o "$directory/node.toml" --plot "$directory/plot.svg"
    grep -q '</svg>' "$directory/plot.svg" || fail "no picture"
fi

[ "$failures" -eq 0 ]

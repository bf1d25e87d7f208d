#!/bin/sh
# The command line of `ucg_tune import-ucx-perftest`: what it reads, writes and refuses.
# usage: ucg_tune_import_test.sh UCG_TUNE UCG_PLAN

tool=$1
plan=$2
. "$(dirname "$0")/expect.sh"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
XDG_CONFIG_HOME=$directory/config
XDG_CONFIG_DIRS=$directory/system
export XDG_CONFIG_HOME XDG_CONFIG_DIRS
unset UCG_PROFILE

fail() {
    echo "$1"
    failures=$((failures + 1))
}

# Between two cores, as ucx_perftest 1.13.1 printed it.
cat >"$directory/posix.csv" <<'END'
calibrate,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
am_lat_8,50000,0.085,0.089,0.089,85.72,85.72,11235955,11235955
am_lat_16,50000,0.090,0.090,0.090,168.77,168.77,11060637,11060637
am_lat_64,50000,0.095,0.097,0.097,629.22,629.22,10309278,10309278
am_bw_8,200000,0.040,0.048,0.048,159.16,159.16,20861580,20861580
[1795463462.923939] [vm:1937 :0] perftest_params.c:481  UCX  WARN  -d 'memory' ignored
ucp_put_bw_65536,5000,0.572,0.574,0.574,108809.56,108809.56,1740953,1740953
ucp_put_bw_1048576, 500,18.433,18.680,18.680,53532.92,53532.92,53533,53533
END
sed 's/50.0_percentile/0.0_percentile/' "$directory/posix.csv" >"$directory/best.csv"
sed 's/am_bw_8,200000/am_bw_8,many/' "$directory/posix.csv" >"$directory/broken.csv"
sed '/am_bw_8/d' "$directory/posix.csv" >"$directory/short.csv"

expect 0 '^  levels.network.latency_ns .*%' import-ucx-perftest "$directory/posix.csv"
grep -q '^# Written by: ucg_tune import-ucx-perftest --level network$' \
    "$XDG_CONFIG_HOME/ucg/profile.toml" || fail "the profile is not where UCG finds it"
expect 0 'wrote .*/system/ucg/profiles/.*\.toml$|wrote .*/system/ucg/profile.toml$' \
    import-ucx-perftest --system "$directory/posix.csv"
expect 0 '^Minimum: latency from am_lat, gap and overhead from am_bw' import-ucx-perftest \
    "$directory/posix.csv" "$directory/best.csv" -o "$directory/node.toml"
expect 0 '^  levels.cache.gap_ns +48 +derived$' import-ucx-perftest --level cache \
    "$directory/posix.csv" -o "$directory/node.toml"
expect 0 'memory.cma: .*`ucg_tune memory` measures it' import-ucx-perftest "$directory/posix.csv" \
    -o "$directory/node.toml"
grep -A4 '^\[levels.cache\]' "$directory/node.toml" | grep -q '^gap_ns = 48' ||
    fail "what the profile said of another level did not stay"

# A new file takes the profile's place: who reads the old one goes on seeing all of it.
chmod 640 "$directory/node.toml"
ln -s node.toml "$directory/link.toml"
old=$(stat -c %i "$directory/node.toml")
expect 0 . import-ucx-perftest "$directory/posix.csv" -o "$directory/link.toml"
[ -L "$directory/link.toml" ] || fail "a symbolic link was replaced"
[ "$(stat -c %a "$directory/node.toml")" = 640 ] || fail "the mode of a profile was not kept"
[ "$(stat -c %i "$directory/node.toml")" != "$old" ] || fail "a profile was written in place"
(umask 027 && "$tool" import-ucx-perftest "$directory/posix.csv" -o "$directory/masked.toml") \
    >/dev/null 2>&1
[ "$(stat -c %a "$directory/masked.toml")" = 640 ] || fail "a new profile does not follow umask"

# What nothing can take the place of is written where it is: what a link without target names, a
# pipe, what the shell opened, a file of several names, one beside which no longer name fits.
ln -s later.toml "$directory/dangling.toml"
ln "$directory/node.toml" "$directory/again.toml"
long=$directory/$(printf '%0255d' 0)
for file in dangling again; do
    expect 0 . import-ucx-perftest "$directory/posix.csv" -o "$directory/$file.toml"
done
expect 0 . import-ucx-perftest "$directory/posix.csv" -o "$long"
[ -L "$directory/dangling.toml" ] && [ -s "$directory/later.toml" ] ||
    fail "the target of a symbolic link was not made"
[ "$directory/node.toml" -ef "$directory/again.toml" ] || fail "two names of a file came apart"
[ -s "$long" ] || fail "no profile under a long name"
for stream in /dev/stdout /dev/fd/4; do
    "$tool" import-ucx-perftest "$directory/posix.csv" -o "$stream" 4>"$directory/fd4.txt" \
        >"$directory/stdout.txt" 2>&1 || fail "$stream as a file cannot be written"
    cat "$directory/stdout.txt" "$directory/fd4.txt" | grep -q '^gap_ns' ||
        fail "there is no profile in the file behind $stream"
    "$tool" import-ucx-perftest "$directory/posix.csv" -o "$stream" 4>&1 2>&1 |
        grep -q '^gap_ns' || fail "there is no profile in the pipe behind $stream"
done
rm "$long"
[ "$(cd "$directory" && echo *.toml.*)" = '*.toml.*' ] || fail "a temporary file is left"
"$tool" import-ucx-perftest - -o - <"$directory/posix.csv" >"$directory/piped.toml" ||
    fail "no use between standard streams"
for file in node piped; do
    "$plan" explain --profile "$directory/$file.toml" --collective allreduce --ranks 4 --bytes 8 |
        grep -q 'us  chosen$' || fail "ucg_plan does not take $file.toml"
done

expect 1 "broken.csv: line 5: expected a number of iterations, found 'many'" \
    import-ucx-perftest "$directory/broken.csv" -o "$directory/new.toml"
expect 1 'expected rows of am_bw or ucp_am_bw' import-ucx-perftest "$directory/short.csv" \
    -o "$directory/new.toml"
expect 1 'nowhere.csv: cannot open' import-ucx-perftest "$directory/nowhere.csv"
expect 1 'found none' import-ucx-perftest /dev/null -o "$directory/new.toml"
expect 2 'FILE is required' import-ucx-perftest
expect 2 'expected one of network, core' import-ucx-perftest "$directory/posix.csv" --level moon
[ ! -e "$directory/new.toml" ] || fail "a profile of malformed results"

[ "$failures" -eq 0 ]

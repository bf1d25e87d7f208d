#!/bin/sh
# The command line of ucg_sim: what it prints and with which status it exits. Arguments: the tool,
# and ucg_plan.
set -u
tool=$1
planner=$2
. "$(dirname "$0")/expect.sh"
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT

model="--model pipelining-postal --alpha-p 400ns --alpha-r 100ns --beta 0.4ns --compute 10ns"
eight="--collective allreduce --ranks 8 --bytes 8 --algorithm recursive_doubling"

expect 0 '^ucg_sim \(UCG\) [0-9]+\.[0-9]+' --version
expect 0 'Examples:' run --help

# Three phases of 400 + 100 + 8 * 0.4 + 10 ns.
expect 0 '^\{"completion_ns":1539.6,"ranks":\[\{"rank":0,"entered_ns":0.0,"finish_ns":1539.6\},' \
    run $eight $model --format json
expect 0 '"repetitions":\{"count":1,"min_ns":1539.6,' run $eight $model --format json
expect 0 '"transfers":\[\{"from":' run $eight $model --format json --details
expect 0 '^  completion   1539.6 ns$' run $eight $model
expect 0 '^rank 0  0 \.\. 103.2 ns  send to 1, 8 bytes, arrives at 503.2 ns' \
    run $eight $model --format timeline
expect 0 '^</svg>$' run $eight $model --format svg
expect 0 '^digraph program' run $eight $model --format dot
expect 0 '^task 0: start, rank 0$' run $eight $model --format tasks

expect 0 '^  completion ' run --collective bcast --hosts 4 --ranks-per-host 8 --bytes 64k
expect 0 '"prices":"profile; host link 0.4 ns per byte, 0 ns per message"' \
    run --collective alltoall --hosts 2 --ranks-per-host 4 --bytes 1k --host-link 0.4ns \
    --format json
expect 0 '10 repetitions: min [0-9.]+ ns, median [0-9.]+ ns, max [0-9.]+ ns' \
    run $eight $model --noise exponential:50ns --skew uniform:0ns,100ns --repetitions 10 --seed 7
expect 0 '^  1 .* 5000 .*' run $eight $model --arrivals 0,5us,0,0,0,0,0,0
expect 0 '^  completion   100 ns' run --collective barrier --ranks 2 --model logp \
    --latency 60ns --overhead 20ns --gap 30ns --algorithm dissemination
# By the profile's levels, ranks that take turns on a processor wait for a turn.
expect 0 '^  completion   391.68 ns$' run --collective bcast --ranks 2 --bytes 8 --algorithm knomial
expect 0 '^  completion   1821.68 ns$' \
    run --collective bcast --ranks 2 --bytes 8 --algorithm knomial --ranks-per-cpu 2
expect 0 '^  1 .* 5000 .*' run $eight $model --late 1=5us
expect 0 '^  1 .* 5001 .*' run $eight $model --arrivals 0,5us,0,0,0,0,0,0 --late 1=1ns,3=2ns

# The planner's price of one of several calls is what each of them is simulated to take.
reduce='reduce --hosts 2 --ranks-per-host 1 --bytes 8'
for calls in "3 $reduce" '2 scatter --hosts 8 --ranks-per-host 1 --bytes 8'; do
    count=${calls%% *}
    # shellcheck disable=SC2086
    price=$("$planner" explain --collective ${calls#* } |
        sed -n 's/.* \([0-9.]*\) us  chosen$/\1/p')
    # shellcheck disable=SC2086
    each=$("$tool" run --collective ${calls#* } --in-a-row "$count" |
        sed -n "s/^  in a row     $count calls, \(.*\) ns each$/\1/p")
    if ! awk -v us="$price" -v ns="$each" \
        'BEGIN { exit !(ns > 0 && us * 1000 > 0.99 * ns && us * 1000 < 1.01 * ns) }'; then
        echo "$calls: $price us by the planner, $each ns simulated"
        failures=$((failures + 1))
    fi
done
# shellcheck disable=SC2086
{
    expect 0 ',"in_a_row":3,' run --collective $reduce --in-a-row 3 --format json
    expect 2 '^ucg_sim run: --in-a-row: the program graph is that of one call$' \
        run --collective $reduce --in-a-row 3 --format tasks
    expect 2 '^ucg_sim run: --in-a-row: expected .* 1 .* 1000' run --collective $reduce --in-a-row 0
}

# One host, the planner's choice: flag slots. The lines of 7 flag slots are there 355 ns after the
# share, whose rank looks at once.
expect 0 '^barrier among 8 ranks \(8 ranks on 1 host\): flag_slots$' \
    run --collective barrier --ranks 8
expect 0 '^  completion   590.2 ns$' run --collective barrier --ranks 8
expect 0 '^  flag slots   8 shared, 56 read$' run --collective barrier --ranks 8
expect 0 '^  0 +0 +54[0-9][0-9]' run --collective allreduce --ranks 8 --bytes 8 --late 3=5us
expect 0 '"kind":"flag_slot"' run --collective barrier --ranks 8 --format json --details
expect 0 '"kind":"share"' run --collective barrier --ranks 8 --format json --details
expect 0 '"kind":"poll"' run --collective barrier --ranks 8 --format json --details
expect 0 '"flag_slots_shared":8,"flag_slots_read":56,' \
    run --collective barrier --ranks 8 --format json
expect 0 '>shares on its flag slot<' run --collective barrier --ranks 8 --format svg
expect 0 '>takes flag slots in<' run --collective barrier --ranks 8 --format svg
expect 0 '^task 1: share, 0 bytes, rank 0, after 0$' run --collective barrier --ranks 8 \
    --format tasks
expect 0 '^  peer memory  [0-9]+ bytes read$' run --collective allreduce --ranks 4 --bytes 1M \
    --algorithm tiled_naive
expect 0 '; copies of shared memory by the profile$' run --collective barrier --ranks 8 \
    --model postal --alpha 1us
expect 1 '^ucg_sim: --late: there is no rank 8 among 8$' run $eight --late 8=1us
expect 2 ': --late: expected a rank and how late it is, such as 3=5us; found .3:5us.' \
    run $eight --late 3:5us
expect 2 ': --late: expected a time that is not negative with its unit' run $eight --late 3=5

expect 0 '4 ranks on 2 hosts' run --collective barrier --placement - <<END
rank 0: host 0
rank 1: host 1
rank 2: host 0
rank 3: host 1
END

# The network of a profile: pipelining postal, with the profile's reductions.
profile=$directory/profile.toml
cat >"$profile" <<END
version = 1
[compute]
copy_per_byte_ns = 0.25
reduce_per_byte_ns = 0.0
reduce_fixed_ns = 10.0
[network.minimum]
alpha_p_ns = 400.0
alpha_r_ns = 100.0
beta_ns_per_byte = 0.4
measured = true
[network.median]
alpha_p_ns = 500.0
alpha_r_ns = 100.0
beta_ns_per_byte = 0.4
measured = true
END
expect 0 '^  completion   1539.6 ns$' run $eight --profile "$profile" --model network.minimum
expect 0 '^  completion   1839.6 ns$' run $eight --profile "$profile" --model network.median
expect 0 'network.median: alpha-p 500 ns, alpha-r 100 ns, beta 0.4 ns, measured' \
    run $eight --profile "$profile" --model network.median
expect 0 'network.median: .*, not measured' run $eight --model network.median
expect 2 ': --alpha-p: the model network.minimum has no such parameter; it has: none' \
    run $eight --model network.minimum --alpha-p 1us

# Flows of SimGrid: as the model where links are not shared; a link of three senders' carries one
# after another.
platform=$directory/platform.xml
cat >"$platform" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-11" speed="1Gf" bw="1GBps" lat="500ns"/>
</platform>
END
gather="--collective gather --hosts 4 --ranks-per-host 1 --bytes 1000 --algorithm linear"
flows="--model pipelining-postal --alpha-p 1us --alpha-r 0ns --beta 1ns"
simgrid="--pricing simgrid --platform $platform"
if "$tool" run $eight $simgrid 2>&1 | grep -q 'this build has no SimGrid'; then
    expect 1 'install libsimgrid-dev' run $eight $simgrid
else
    expect 0 '^  completion   3024 ns$' run --hosts 8 --ranks-per-host 1 --collective allreduce \
        --bytes 8 --algorithm recursive_doubling $flows $simgrid
    expect 0 '^  completion   2000 ns$' run $gather $flows
    expect 0 '^  completion   4000 ns$' run $gather $flows $simgrid
    expect 0 '^</svg>$' run $gather $simgrid --format svg
    expect 0 '; links by SimGrid, ' run $gather $simgrid
    expect 0 '^  completion ' run --collective bcast --hosts 3 --ranks-per-host 4 --bytes 1M \
        --algorithm chain $simgrid
    expect 0 '^  completion   590.2 ns$' run --collective barrier --ranks 8 $simgrid
    expect 0 '^  flag slots   8 shared, 56 read$' run --collective barrier --ranks 8 $simgrid
    expect 1 '12 hosts, but the ranks are on 14$' run --collective barrier --hosts 14 \
        --ranks-per-host 1 $simgrid
    expect 1 'no-such.xml: cannot be read$' run $eight --pricing simgrid --platform no-such.xml
    expect 1 'Parse error at .*:1: ' run $eight --pricing simgrid --platform "$profile"
    expect 1 'have no noise$' run $eight $simgrid --noise exponential:50ns
    expect 1 'of one call, not of several in a row$' run $eight $simgrid --in-a-row 2
    cat >"$platform" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full"><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/></zone>
</platform>
END
    expect 1 ': no route from host a to b$' run --collective barrier --hosts 2 \
        --ranks-per-host 1 $simgrid
fi
expect 2 ': --platform \(for --pricing simgrid\) is required' run $eight --pricing simgrid
expect 2 ': --platform: is for --pricing simgrid' run $eight --platform x.xml
expect 2 ': --repetitions: SimGrid simulates once' run $eight $simgrid --repetitions 2

cat >"$directory/topology.conf" <<END
SwitchName=top Switches=s[0-1] LinkSpeed=100mbit
SwitchName=s0 Nodes=n[0-2] LinkSpeed=100mbit
SwitchName=s1 Nodes=n[3-5] LinkSpeed=100mbit
END
# 9 blocks of 64 KiB cross the link between the switches each way: 47.2 ms.
six="--hosts 6 --ranks-per-host 1 --bytes 64k --topology $directory/topology.conf"
# shellcheck disable=SC2086
{
    expect 0 '^alltoall of 65536 bytes .*: aapc$' run --collective alltoall $six
    expect 0 '^  completion   47[0-9]+[.][0-9]+ ns$' run --collective alltoall $six
    expect 0 '"prices":"profile; links of .*/topology.conf"' \
        run --collective alltoall $six --format json
    expect 0 '^  completion   47[0-9]+[.][0-9]+ ns$' run --collective alltoallv $six
    expect 1 'have one link each, or a tree of switches, not both' \
        run --collective alltoall $six --host-link 1ns
    expect 1 'topology.conf: 6 machines, but there are 7 hosts$' run --collective alltoall \
        --hosts 7 --ranks-per-host 1 --topology "$directory/topology.conf"
}

expect 0 '^1 host of 2 ranks: [0-9]+ cells: .*, rivals within [0-9]+ %; .* in the geometric mean' \
    agreement --placement '1 host of 2 ranks' --bytes 8,64k --worst 3
expect 0 '"placement":"4 hosts of 8 ranks","collective":"barrier","algorithm":"dissemination"' \
    agreement --placement '4 hosts' --bytes 8 --format json
expect 0 '"placement":"4 hosts of 8 ranks","cells":[0-9]+,"within_10":[01]' \
    agreement --placement '4 hosts' --bytes 8 --format json

# A price beyond what the simulator counts is not cut short unseen.
expect 1 'rank [0-9], op [0-9]: a price, or a sum of them, is as long as a run may take, 2882' \
    run $eight --model postal --alpha 1us --beta 1e5s
expect 1 "allreduce has no algorithm 'none'" run --collective allreduce --ranks 4 --algorithm none
expect 1 '2 times of arrival for 8 ranks' run $eight --arrivals 0,1us
expect 1 '^ucg_sim: --format svg: draws at most 256 ranks, found 1000' \
    run --collective barrier --ranks 1000 --format svg
expect 2 ': --alpha-p: expected a time that is not negative with its unit' \
    run $eight --model pipelining-postal --alpha-p 400
expect 2 ': --alpha-r \(for --model pipelining-postal\) is required' \
    run $eight --model pipelining-postal --alpha-p 400ns
expect 2 ': --gap: the model postal has no such parameter; it has: --alpha, ' \
    run $eight --model postal --alpha 1us --gap 1us
expect 2 ": --placement: expected the beginning of one of 1 host of 2 ranks, .*; found '3 hosts'" \
    agreement --placement '3 hosts'
expect 2 ': --noise: expected none, uniform:LOW,HIGH, ' run $eight --noise gauss:1ns
expect 2 ': --model: expected one of profile, network.minimum, network.median, pipelining-postal' \
    run $eight --model loop

[ "$failures" -eq 0 ]

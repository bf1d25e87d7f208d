#!/bin/sh
# The command line of ucg_plan: what it prints and with which status it exits. Argument: the tool.
set -u
tool=$1
. "$(dirname "$0")/expect.sh"
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT

expect 0 '^ucg_plan \(UCG\) [0-9]+\.[0-9]+' --version
for command in list show verify explain guidelines; do
    expect 0 'Examples:' $command --help
done

expect 0 '^  dissemination  ' list
expect 0 '"algorithm": "ring"' list --collective allreduce --format json
expect 0 '"recursive_multiplying:a2,a4" rank 0 of 8' show --collective allreduce \
    --ranks 8 --bytes 8 --rank 0 --algorithm recursive_multiplying:a2,a4
expect 0 'proved 8 plans' verify --collective allreduce --ranks 8 --hosts 1 --bytes 0,8 \
    --algorithm recursive_multiplying:a2,a4
expect 1 'for 8 ranks, not for 9; see: ucg_plan show .* --ranks 9 --hosts 1 --algorithm' \
    verify --collective allreduce --ranks 9 --hosts 1 --bytes 8 \
    --algorithm recursive_multiplying:a2,a4
expect 0 '^  two_level .*not eligible.*; needs several hosts$' list --collective bcast --ranks 4
expect 0 '"unmet": "several hosts"' list --collective bcast --ranks 4 --format json
expect 0 '^  two_level .*  eligible' list --collective bcast --hosts 2 --ranks-per-host 2
expect 0 '^  flag_slots .*  eligible' list --collective bcast --ranks-per-host 2
expect 0 '\(default: all\)$' list --help

expect 0 '^schedule allreduce ring rank 3 of 4 ' \
    show --collective allreduce --algorithm ring --ranks 4 --bytes 1k
expect 0 '^schedule bcast .* rank 2 of 3 input 8 output 0 ' \
    show --collective bcast --ranks 3 --bytes 8 --root 2 --rank 2
expect 0 'in_place' show --collective allreduce --ranks 2 --bytes 8 --in-place
expect 0 '^1: reduce_parts .* after slot 1$' show --collective allreduce --ranks 2 --bytes 64k \
    --algorithm recursive_doubling --rank 0 --lowered
expect 2 'there is text alone, not dot' show --collective scan --ranks 3 --lowered --format dot
expect 0 '^digraph' show --collective scan --ranks 3 --bytes 8 --format dot
expect 0 ' rank 999999 of 1000000 ' \
    show --collective allreduce --hosts 1000 --ranks-per-host 1000 --bytes 8 --rank 999999

expect 0 'us  chosen$' explain --collective allreduce --ranks 6 --bytes 8
profile=${UCG_PROFILE-builtin}
unset UCG_PROFILE
expect 0 '^costs: generic, the same on all machines \(--this-machine: of this one\)$' \
    explain --collective allreduce --ranks 6 --bytes 8
UCG_PROFILE=$profile
export UCG_PROFILE
expect 0 '^costs: generic.*; UCG_PROFILE is not used$' explain --collective barrier --ranks 6
expect 0 '^costs: of this machine$' explain --this-machine --collective barrier --ranks 2
expect 0 '^costs: built in for this processor$' \
    explain --collective barrier --ranks 6 --profile builtin
expect 0 '"costs": "generic, ' explain --collective barrier --ranks 6 --format json
expect 0 '[0-9.]+ times the cost, the runner-up' explain --collective allreduce --ranks 6 --bytes 8
expect 0 'not eligible: needs ' explain --collective allreduce --ranks 6 --bytes 8
by_size='0-4k:recursive_multiplying:a3,a2;4k-inf:ring'
expect 0 "^asked for $by_size: recursive_multiplying:a3,a2 is chosen" \
    explain --collective allreduce --ranks 6 --bytes 8 --algorithm "$by_size"
expect 0 ': ring is chosen, whatever it costs$' \
    explain --collective allreduce --ranks 6 --bytes 4k --algorithm "$by_size"
expect 0 'argument .a3,a2.*for 6 ranks, not for 7; the planner chooses instead$' \
    explain --collective allreduce --ranks 7 --bytes 8 --algorithm "$by_size"
expect 1 "position 5: expected the name of an algorithm, found '7'" \
    explain --collective allreduce --ranks 6 --bytes 8 --algorithm '0-4k:7'
UCG_ALLREDUCE='8-9:ring'
export UCG_ALLREDUCE
expect 0 '^asked for 8-9:ring: nothing for this size$' \
    explain --collective allreduce --ranks 6 --bytes 16
expect 0 '"chosen": "ring"' explain --collective allreduce --ranks 6 --bytes 8 --format json
UCG_ALLREDUCE='8-'
expect 1 'UCG_ALLREDUCE: .8-., position 2: expected a size' \
    explain --collective allreduce --ranks 6
unset UCG_ALLREDUCE
expect 0 '^network.median: alpha-p .*, not measured$' \
    search --collective allreduce --ranks 12 --bytes 8 --model network.median
expect 0 '"prices": "network.minimum: alpha-p ' \
    search --collective allreduce --ranks 12 --bytes 8 --model network.minimum --format json
# What prices are of, where it is not one call with the lengths that are asked about.
unknown='^lengths: not known to all ranks; prices are those of empty messages$'
expect 0 "$unknown" explain --collective gatherv --ranks 4 --bytes 16M
expect 0 "$unknown" explain --collective scatterv --ranks 2 --blocks 0,8
expect 0 '"lengths_known": false' explain --collective alltoallv --ranks 4 --bytes 8 --format json
for known in 'gather --bytes 8' 'gatherv --bytes 0' 'barrier --bytes 8' 'allgatherv --bytes 8'; do
    # shellcheck disable=SC2086
    expect 0 '"lengths_known": true' explain --ranks 4 --collective $known --format json
done
expect 0 '^prices: of one of 3 calls in a row \(ucg_sim run --in-a-row 3\)$' \
    explain --collective reduce --hosts 2 --ranks-per-host 1 --bytes 8
expect 0 '"calls_in_a_row": 2' \
    explain --collective scan --hosts 2 --ranks-per-host 1 --bytes 8 --format json
expect 0 '"calls_in_a_row": 1' explain --collective reduce --ranks 2 --bytes 8 --format json
# One length has nothing to be monotone with.
expect 0 '^364 of 364 guidelines hold$' guidelines --bytes 1k --tolerance 1000
expect 0 '"checked": 364' guidelines --bytes 1k --tolerance 1000 --format json
expect 2 'tolerance' guidelines --tolerance -1
expect 0 '"chosen": "' explain --collective barrier --ranks 6 --format json
expect 0 '4 ranks on 2 hosts' explain --collective barrier --placement - <<END
rank 0: host 0
rank 1: host 1
rank 2: host 0
rank 3: host 1
END

expect 0 '^proved [0-9]+ plans, [0-9]+ schedules, of 1 algorithms' \
    verify --collective allreduce --algorithm ring --ranks 2..9,16
expect 0 '^proved [0-9]+ plans' verify --collective all --ranks 1..5 --roots all

# Ranks that go round the hosts: what is proved of them is what they run.
for rank in 0 1 2 3 4 5 6 7 8 9 10 11; do
    echo "rank $rank: host $((rank % 3))"
done >"$directory/cyclic"
"$tool" show --collective allreduce --placement "$directory/cyclic" --bytes 8 \
    --algorithm two_level >"$directory/plan" || failures=$((failures + 1))
expect 0 '^proved allreduce two_level, 12 ranks' \
    verify --file "$directory/plan" --placement "$directory/cyclic"
expect 1 'is out of reach' verify --file "$directory/plan" --hosts 3
head -n 4 "$directory/cyclic" >"$directory/four"
expect 1 'four: 4 ranks, but the schedules are of 12$' \
    verify --file "$directory/plan" --placement "$directory/four"
expect 0 '^allgather two_level$' \
    verify --collective allgather,bcast --placement "$directory/cyclic" --bytes 0,8
expect 2 '--hosts excludes --placement' \
    verify --collective bcast --placement "$directory/cyclic" --hosts 2

# Hosts of several sockets. Schedules that are the same as on one socket are proved once.
expect 0 '^allreduce tiled_hierarchical$' verify --collective allreduce --ranks 8 --bytes 4k
expect 0 '^bcast two_stage$' verify --collective bcast --ranks 5 --bytes 4k
expect 0 '^barrier flag_slot_tree$' verify --collective barrier --ranks 6 --sockets 3
expect 0 '^proved 4 plans, 16 schedules' verify --collective allreduce --algorithm ring --ranks 4 \
    --bytes 8 --in-place no --commutative yes --hosts 1..4 --sockets 1..4
expect 0 '^never eligible: alltoall aapc, alltoall file$' verify --collective alltoall --ranks 4
expect 0 '^never eligible: .*bcast two_stage' verify --collective bcast --ranks 4 --sockets 1
expect 0 '^  two_stage  +eligible  ' list --collective bcast --ranks 4 --bytes 4k --sockets 2
expect 0 '^schedule bcast two_stage rank 3 of 4' show --collective bcast --ranks 4 --sockets 2 \
    --bytes 4k --algorithm two_stage

# What show prints, verify reads, for every collective; what was changed by hand is refused.
for collective in barrier bcast reduce allreduce allgather allgatherv alltoall gather gatherv \
    scatter scatterv reduce_scatter reduce_scatter_block scan exscan; do
    for format in text json; do
        "$tool" show --collective $collective --ranks 4 --bytes 16 --format $format \
            >"$directory/plan" || failures=$((failures + 1))
        expect 0 "^proved $collective .*, 4 ranks" verify --file "$directory/plan"
    done
done
for collective in reduce gather gatherv scatter scatterv; do
    "$tool" show --collective $collective --ranks 4 --bytes 16 --root 2 --in-place \
        >"$directory/plan" || failures=$((failures + 1))
    expect 0 "^proved $collective" verify --file "$directory/plan"
done
"$tool" show --collective alltoallv --ranks 3 --blocks 8,0,16 >"$directory/plan"
expect 1 '^ucg_plan: --blocks: alltoallv needs the lengths of 3 blocks' \
    verify --file "$directory/plan"
expect 0 '^proved alltoallv' verify --file "$directory/plan" --blocks 8,0,16

"$tool" show --collective allreduce --ranks 2 --bytes 8 --algorithm recursive_doubling \
    >"$directory/plan"
sed '0,/send to 1/s//recv from 1/; s/recv from 1 input/recv from 1 scratch/' "$directory/plan" \
    >"$directory/changed"
expect 1 '^ucg_plan: rank 1, op 1 .*: rank 0 never sends this message' \
    verify --file "$directory/changed"
sed '/rank 1 of 2/,$s/send to 0/sent to 0/' "$directory/plan" >"$directory/changed"
expect 1 '^ucg_plan: .*/changed: line 7, column 4: expected' verify --file "$directory/changed"
sed '/rank 1 of 2/,$d' "$directory/plan" >"$directory/changed"
expect 1 '^ucg_plan: rank 1 has no schedule' verify --file "$directory/changed"
expect 1 '^ucg_plan: rank 0 has two schedules' \
    verify --file "$directory/changed" "$directory/plan"
echo '[{"collective": "bcast"' >"$directory/changed"
expect 1 '^ucg_plan: .*/changed: .*line 2, column 1' verify --file "$directory/changed"
expect 1 '^ucg_plan: /nonexistent: cannot open' verify --file /nonexistent

expect 1 "'star'; it has: recursive_doubling, .*, reduce_bcast, ring" \
    show --collective allreduce --ranks 2 --algorithm star
expect 1 "cannot serve this request .* needs " \
    show --collective allreduce --ranks 2 --algorithm two_level
expect 1 'bytes: 7 is no multiple of element_bytes, 8' \
    show --collective allreduce --ranks 2 --bytes 7
expect 1 '--rank: expected a rank in 0 .. 1, found 2' \
    show --collective allreduce --ranks 2 --rank 2
expect 1 'line 1, column 9: expected' explain --collective barrier --placement - <<END
rank 0: shelf 0
END
expect 1 'nothing was proved' verify --collective bcast --algorithm two_level --ranks 2

expect 2 'A subcommand is required'
expect 2 "^'allreduce' is a value; did you mean --collective allreduce\?" show allreduce
# What the help says behind a colon is not always a value.
"$tool" show 'ranks may help one another' 2>&1 | grep -q 'is a value' &&
    { echo "a value of --nonblocking is proposed"; failures=$((failures + 1)); }
expect 2 "^'json' is a value; did you mean --format json\?" explain --collective bcast json
expect 2 '^ucg_plan: .*: shwo$' shwo
expect 2 "^There is no 'shwo'; did you mean show\?" shwo
expect 2 "^There is no '--colective'; did you mean --collective\?" show --colective bcast
expect 2 'found bcats; did you mean bcast\?' show --collective bcats
expect 2 'collective is required' show --ranks 3
expect 2 'expected one of barrier, .*; found allgathr' show --collective allgathr
expect 2 'collective or --file' verify
expect 2 'expected a rank in 0 .. 2, found 3' show --collective bcast --ranks 3 --root 3
expect 2 'expected 3 lengths, one per rank, found 2' \
    show --collective allgatherv --ranks 3 --blocks 1,2
expect 2 '--root: allreduce has no root' show --collective allreduce --ranks 2 --root 1
expect 2 '--root: allreduce has no root' search --collective allreduce --ranks 2 --root 0
expect 2 '--root: barrier has no root' \
    explain --collective barrier --placement "$directory/none" --root 0
expect 2 '--non-commutative: bcast has no operator' \
    show --collective bcast --ranks 2 --non-commutative
expect 0 ' eligible' list --ranks 2 --root 1 --non-commutative
expect 2 'bcast has one length' show --collective bcast --ranks 2 --blocks 1,2
expect 2 '5 ranks are not 2 hosts with 2 each' \
    show --collective bcast --ranks 5 --hosts 2 --ranks-per-host 2
expect 2 '4 hosts are more than the 3 ranks' show --collective bcast --ranks 3 --hosts 4
expect 2 'no such algorithm: star; there are barrier' verify --collective all --algorithm star
expect 2 'expected a number of ranks from 1 to .*, found "x"' \
    verify --collective bcast --ranks 2..x
expect 2 'ends before it begins' verify --collective bcast --ranks 4..2

# The links between six hosts.
cat >"$directory/topology.conf" <<END
SwitchName=top Switches=s[0-1] LinkSpeed=100mbit
SwitchName=s0 Nodes=n[0-2] LinkSpeed=100mbit
SwitchName=s1 Nodes=n[3-5] LinkSpeed=100mbit
END
six="--hosts 6 --ranks-per-host 1 --topology $directory/topology.conf"
# shellcheck disable=SC2086
{
    expect 0 '^  aapc .*  eligible' list --collective alltoall $six
    expect 0 '^  aapc .*  not eligible' list --collective alltoall --hosts 6 --ranks-per-host 1
    expect 0 '^  aapc .* us  chosen$' explain --collective alltoall --bytes 64k $six
    expect 0 '^  aapc .* times the cost$' explain --collective alltoall --bytes 8 $six
    expect 0 '^  aapc .* us  chosen$' explain --collective alltoallv --bytes 64k $six
    expect 0 '^  aapc .* us  chosen$' \
        explain --collective alltoallv --blocks 0,1k,128k,64k,64k,128k $six
    expect 0 '^  aapc .* times the cost$' explain --collective alltoallv --bytes 8 $six
    expect 0 '^schedule alltoall aapc rank 5 of 6 ' \
        show --collective alltoall --bytes 64k --rank 5 $six
    expect 0 '^proved 36 plans, 152 schedules, of 1 algorithms' verify --collective alltoall \
        --algorithm aapc --ranks 2..6 --hosts 2,3 --bytes 8,1k --topology "$directory/topology.conf"
    expect 1 'topology.conf: 6 machines, but there are 7 hosts$' \
        explain --collective alltoall --hosts 7 --ranks-per-host 1 \
        --topology "$directory/topology.conf"
    expect 1 'nowhere: cannot open' explain --collective alltoall --ranks 2 --hosts 2 \
        --topology "$directory/nowhere"
    printf 'SwitchName=s0 Nodes=n0,n0\n' >"$directory/twice.conf"
    expect 1 'twice.conf: line 1: ' show --collective alltoall --ranks 2 --hosts 2 \
        --topology "$directory/twice.conf"
}

paper='--model pipelining-postal --alpha-p 400ns --alpha-r 100ns --beta 0.4ns --compute 10ns'
# shellcheck disable=SC2086
expect 0 '^  a6,a4 +1705.600 ns  closed form +1.0000' \
    search --collective allreduce --ranks 24 --bytes 8 $paper --top 2
# shellcheck disable=SC2086
expect 0 '"complete": true' \
    search --collective allreduce --ranks 7 --bytes 8 $paper --format json --every-order
# shellcheck disable=SC2086
expect 0 '^--limit was reached' search --collective allreduce --ranks 24 --bytes 8 $paper --limit 9
expect 2 '^ucg_plan search: --collective: search: expected allreduce, found bcast' \
    search --collective bcast
expect 1 'one rank needs no schedule' search --collective allreduce --ranks 1
expect 2 'alpha \(for --model postal\) is required' \
    search --collective allreduce --ranks 4 --model postal

if [ -w /dev/full ]; then
    "$tool" list >/dev/full 2>/dev/null
    [ $? -eq 1 ] || { echo "a full disk must fail"; failures=$((failures + 1)); }
fi

[ "$failures" -eq 0 ]

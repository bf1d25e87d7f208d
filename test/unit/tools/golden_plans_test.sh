#!/bin/sh
# A few plans as text, beside test/golden/plans/NAME.txt: a change of an algorithm shows in review.
# With UCG_TEST_ACCEPT=1 the files are written anew and the test counts as skipped.
# Arguments: ucg_plan, the folder of the golden files.
set -u
tool=$1
golden=$2
different=0

# check NAME ARGUMENTS...: of ucg_plan show
check() {
    file="$golden/$1.txt"
    shift
    output=$("$tool" show "$@") || different=1
    if [ "${UCG_TEST_ACCEPT:-0}" = 1 ]; then
        printf '# ucg_plan show %s\n%s\n' "$*" "$output" >"$file" || different=1
    elif ! printf '# ucg_plan show %s\n%s\n' "$*" "$output" | diff -u "$file" -; then
        different=1
    fi
}

check barrier_dissemination --collective barrier --ranks 5 --algorithm dissemination
check bcast_knomial --collective bcast --ranks 6 --bytes 8 --root 2 --algorithm knomial
check allreduce_recursive_doubling --collective allreduce --ranks 6 --bytes 8 \
    --algorithm recursive_doubling
check allreduce_recursive_doubling_ordered --collective allreduce --ranks 3 --bytes 8 \
    --algorithm recursive_doubling --non-commutative --in-place
check allreduce_recursive_multiplying --collective allreduce --ranks 7 --bytes 8 \
    --algorithm recursive_multiplying:m1g2a3,n1g3a2
check allreduce_ring --collective allreduce --ranks 3 --bytes 48 --algorithm ring
check allreduce_two_level --collective allreduce --hosts 2 --ranks-per-host 3 --bytes 8 \
    --algorithm two_level
check reduce_knomial --collective reduce --ranks 5 --bytes 8 --root 1 --algorithm knomial
check allgather_bruck --collective allgather --ranks 5 --bytes 8 --algorithm bruck
check alltoall_bruck --collective alltoall --ranks 3 --bytes 8 --algorithm bruck
check gather_binomial --collective gather --ranks 6 --bytes 8 --root 1 --algorithm binomial
check scatterv_linear --collective scatterv --ranks 4 --blocks 8,0,16,24 --algorithm linear
check reduce_scatter_ring --collective reduce_scatter --ranks 3 --blocks 8,0,16 --algorithm ring
check scan_recursive_doubling --collective scan --ranks 5 --bytes 8 \
    --algorithm recursive_doubling

[ "${UCG_TEST_ACCEPT:-0}" = 1 ] && [ $different -eq 0 ] && exit 77
exit $different

#!/bin/sh
# Where the planner's prices of rows are not what the simulator says of their schedules: the golden
# list test/golden/agreement/deviations.txt. What becomes better or worse shows in review.
# With UCG_TEST_ACCEPT=1 the file is written anew and the test counts as skipped.
# Arguments: ucg_sim, the folder of the golden file.
set -u
tool=$1
file=$2/deviations.txt
found=$(
    "$tool" agreement --deviations --placement '1 host' &&
        "$tool" agreement --deviations --placement '2 hosts' &&
        "$tool" agreement --deviations --placement '4 hosts' &&
        "$tool" agreement --deviations --placement '16 hosts'
) || exit 1
if [ "${UCG_TEST_ACCEPT:-0}" = 1 ]; then
    printf '%s\n' "$found" >"$file" || exit 1
    exit 77
fi
printf '%s\n' "$found" | diff -u "$file" -

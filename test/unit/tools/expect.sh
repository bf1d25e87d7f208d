# For tests of command lines, to be sourced: expect() runs the tool in $tool and counts $failures.
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
        echo "$(basename "$tool") $*: expected status $status, found $found: $output"
        failures=$((failures + 1))
    elif ! printf '%s\n' "$output" | grep -Eq -- "$pattern"; then
        echo "$(basename "$tool") $*: expected a line like '$pattern', found: $output"
        failures=$((failures + 1))
    fi
}

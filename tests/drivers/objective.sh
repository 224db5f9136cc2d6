#!/bin/sh
# The objectives of cases.toml: objective.sh NAME SIGN TRIAL X...
# Prints JSON with the value `f` (times SIGN) and the constraint `g`, which is violated above 0.
name=$1 sign=$2 trial=$3
shift 3
if [ "$name" = flaky ] && [ ! -e "attempted-$trial" ]; then
    : > "attempted-$trial"
    exit 1
fi
exec awk -v name="$name" -v sign="$sign" -v trial="$trial" 'BEGIN {
    b = 0
    for (i = 1; i < ARGC; i++) { d = ARGV[i] - 1; b += d * d }
    over = ARGV[1] - 2
    if (name == "fails" && over > 0) exit 1
    if (name == "noisy") b = b + (7919 * trial % 1000) / 1000 - 0.5
    f = sprintf("%.17g", sign * b)
    if (name == "nan" && over > 0) f = "\"nan\""
    printf "{\"f\": %s, \"g\": %.17g}\n", f, name == "infeasible" ? over : -1
}' "$@"

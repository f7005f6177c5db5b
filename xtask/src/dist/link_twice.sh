#!/bin/sh
# Links a program twice. The names of its functions are known after the first time: link-time optimisation adds a suffix
# to many, and `.cold` to parts that did not run while the program was profiled. The second time, the functions of the
# file `functions` beside this one come first, then those of the standard library: most of them are not profiled.
#
# The compiler derives from the name of a linker which options it takes. This name tells it nothing, so that they are
# those for `cc`.
set -eu
cc "$@"
previous=
program=
for argument in "$@"; do
    if [ "$previous" = -o ]; then program=$argument; fi
    previous=$argument
done
if [ -z "$program" ]; then
    echo "no program is named by -o" >&2
    exit 1
fi
symbols=$(mktemp)
order=$(mktemp)
trap 'rm -f "$symbols" "$order"' EXIT
nm --defined-only "$program" > "$symbols"
awk '
    NR == FNR { listed[NR] = $1; count = NR; next }
    { plain = $3; sub(/\.llvm\.[0-9]+/, "", plain); symbols[plain] = symbols[plain] $3 "\n" }
    $3 ~ /^_R[A-Za-z0-9_]*Cs[0-9A-Za-z]+_(3std|4core|5alloc)/ && $3 !~ /\.cold$/ { library = library $3 "\n" }
    END {
        for (at = 1; at <= count; at++) printf "%s", symbols[listed[at]]
        printf "%s", library
        for (at = 1; at <= count; at++) printf "%s", symbols[listed[at] ".cold"]
    }
' "$(dirname "$0")/functions" "$symbols" > "$order"
if [ ! -s "$order" ]; then
    echo "no function of the list is in the program" >&2
    exit 1
fi
cc "$@" "-Wl,--symbol-ordering-file=$order" -Wl,--no-warn-symbol-ordering

# tools/bench-tenants rejects unknown mixes and names what is missing; the program without a library is skipped.
build=$(dirname "$COTENANT")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0
wrong() { echo "$*"; bad=1; }
ends() { # CODE WORDS COMMAND...
    code=0 want=$1 words=$2
    shift 2
    "$@" > "$dir/said" 2>&1 || code=$?
    [ "$code" = "$want" ] || { wrong "$*: exit $code, expected $want"; cat "$dir/said"; }
    grep -qF -- "$words" "$dir/said" || { wrong "$*: no word of: $words"; cat "$dir/said"; }
}

ends 2 "no mix 'huge'; there are light, medium, heavy, mix and modern" env MIXES=huge "$SRC/tools/bench-tenants" "$dir"
ends 1 "no file ORT=$dir/absent" env ORT="$dir/absent" MIXES=light "$SRC/tools/bench-tenants" "$dir"
ends 77 'make bench-tenants' "$build/bench_tenants"
ends 2 'usage:' "$build/bench_tenants" --strange
ends 1 "no contender 'nobody'" "$build/bench_tenants" --lib x --models "$dir" --contenders nobody light
ends 1 'no mix' "$build/bench_tenants" --lib x --models "$dir" --quick --least-qos 2 --by-tenant huge
ends 2 'usage:' "$build/bench_tenants" --lib x --models "$dir" --least-qos -1 light
exit $bad

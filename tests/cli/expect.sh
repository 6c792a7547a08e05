# Shared by the tests of commands: a temporary folder, and functions that check a command's result. Sourced with `.`
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }
expect() { # CODE ARGUMENTS...: the program ends with CODE
    want=$1; shift
    code=0; "$COTENANT" "$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
    [ "$code" = "$want" ] || { cat "$dir/err"; fail "cotenant $*: exit $code, expected $want"; }
}
says() { grep -q -- "$1" "$dir/err" || { cat "$dir/err"; fail "stderr lacks: $1"; }; }
prints() { grep -q -- "$1" "$dir/out" || { cat "$dir/out"; fail "stdout lacks: $1"; }; }
quiet() { [ ! -s "$dir/out" ] || fail "stdout should be empty"; }

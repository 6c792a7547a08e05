#!/bin/sh
# Tuning while serving: log and metrics say what was found, and the next start has nothing to search.
. "$SRC/tests/cli/expect.sh"
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null; rm -rf "$dir"' EXIT

start() { # TUNE: a server; $metrics is its address
    : > "$dir/said"
    "$COTENANT" serve zoo:lstm_kws --tune "$1" --tune-s 1 --store "$dir/store" --http 127.0.0.1:0 --grpc off \
        --metrics 127.0.0.1:0 --drain-delay-ms 0 > "$dir/said" 2> "$dir/log" &
    server=$!
    until_said "$dir/said" metrics
    metrics=$(sed -n 's/.*metrics \([^,]*\).*/\1/p' "$dir/said")
}
until_said() { # FILE TEXT
    for _ in $(seq 1200); do
        ! grep -q "$2" "$1" || return 0
        kill -0 "$server" 2> /dev/null || { cat "$dir/log"; server=; fail "the server ended"; }
        sleep 0.1
    done
    cat "$dir/log"
    fail "no '$2' within two minutes"
}
stop() { kill "$server"; wait "$server" || fail "the server ended with $?"; server=; }

start off
stop
! grep -q tuned "$dir/log" || fail "it was tuned with tune: off"

start background
until_said "$dir/log" 'msg="model tuned" model=lstm_kws .*before_ms=.*after_ms=.*seconds='
curl -sf "http://$metrics/metrics" > "$dir/metrics"
grep -q '^cotenant_model_tuning{model="lstm_kws"} 0$' "$dir/metrics" || fail "a search goes on"
grep -q '^cotenant_model_tuned_total{model="lstm_kws"} [01]$' "$dir/metrics" || fail "no counter"
stop

start background
curl -sf "http://$metrics/metrics" > "$dir/metrics"
grep -q '^cotenant_model_tuning{model="lstm_kws"} 0$' "$dir/metrics" || fail "a known model is searched again"
stop
! grep -q tuned "$dir/log" || fail "a known model was tuned again"

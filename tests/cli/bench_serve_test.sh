#!/bin/sh
# bench against serve: every protocol, targets, deadlines, unknown models.
. "$SRC/tests/cli/expect.sh"

"$COTENANT" serve keyword=zoo:lstm_kws --set keyword.target_ms=5000 --http 127.0.0.1:0 --grpc 127.0.0.1:0 \
    --metrics off --log-level error --drain-delay-ms 0 --drain-ms 200 >"$dir/addresses" 2>"$dir/log" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in $(seq 300); do [ -s "$dir/addresses" ] && break; sleep 0.1; done
http=$(sed -n 's/.*http \([0-9.:]*\).*/\1/p' "$dir/addresses")
grpc=$(sed -n 's/.*grpc \([0-9.:]*\).*/\1/p' "$dir/addresses")
[ -n "$http" ] && [ -n "$grpc" ] || { cat "$dir/log"; fail "no addresses: $(cat "$dir/addresses")"; }

all_ok() { # ARGUMENTS...: 40 requests, all of them answered with numbers in time
    expect 0 bench "$@" --warmup 0 --requests 40 --check --json --threshold hit=100
    grep -q '"ok":40,"rejected":0,"expired":0,"failed":0,"met":40' "$dir/out" || fail "bench $*: $(cat "$dir/out" "$dir/err")"
    grep -q '"slo_ms":5000.0' "$dir/out" || fail "bench $*: the target is not the server's: $(cat "$dir/out")"
}
all_ok "http://$http" --rate 400
all_ok "http://$http" --rate 400 --models keyword --protocol json
all_ok "grpc://$grpc" --rate 400 --models keyword
all_ok "$grpc" --closed 4 --models keyword --protocol grpc
all_ok "http://$http" --closed 4 --priority 1 --timeout 20s
all_ok "grpc://$grpc" --closed 4 --models keyword --priority 1 --timeout 20s

for url in "http://$http" "grpc://$grpc"; do
    expect 0 bench "$url" --models keyword --warmup 0 --rate 400 --requests 10 --timeout 1us --json
    prints '"ok":0,"rejected":0,"expired":10,"failed":0'
    expect 1 bench "$url" --models nobody --rate 5; says "nobody"; quiet
done
expect 0 bench "http://$http" --rate 50 --duration 300ms --find-max --precision 50 --budget 1s --json; prints '"peak_rate"'

kill $server
wait $server || fail "the server ended with $?: $(cat "$dir/log")"

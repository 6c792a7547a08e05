#!/bin/sh
# bench against a server that nobody of us wrote: what it sends, how it counts, what it refuses.
. "$SRC/tests/cli/expect.sh"
command -v python3 >/dev/null || exit 77

python3 "$SRC/tests/cli/bench_server.py" "$dir/seen" >"$dir/port" 2>"$dir/server" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in $(seq 100); do [ -s "$dir/port" ] && break; sleep 0.1; done
url=http://127.0.0.1:$(cat "$dir/port")

value() { # PATH: a number or text of the JSON that was printed
    python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."):
    v = v[int(k)] if k.isdigit() else v[k]
print(v)' "$dir/out" "$1"
}
is() { [ "$(value "$1")" = "$2" ] || fail "$1 is $(value "$1"), expected $2"; }
bench() { expect 0 bench "$url" --warmup 0 --seed 7 "$@"; }

# Usage.
expect 2 bench; quiet
expect 2 bench "$url" --models good; says "no load given"; quiet
expect 2 bench "$url" --models good --rate 5 --closed 2; says "exclude each other"; quiet
expect 2 bench "$url" --models good,good --rate 5; says "named twice"; quiet
expect 2 bench "$url" --models good:x --rate 5; says "is not a rate"; quiet
expect 2 bench "$url" --models good --rate 5 --slo 5parsec; says "not a time"; quiet
expect 2 bench "$url" --models good --rate 5 --slo other:5ms; says "no such model"; quiet
expect 2 bench "$url" --models good --rate 5 --threshold speed=9; says "hit=95"; quiet
expect 2 bench "$url" --models good --rate 5 --protocol soap; says "rest, json and grpc"; quiet
expect 2 bench "$url" --models good --rate 5 --shape x:1x2x3; says "has 2 dimensions"; quiet
expect 2 bench "$url" --models good --find-max; says "has no target"; quiet
expect 2 bench "$url" --models good --rate 5 --min-hit 90; says "has no target"; quiet
expect 2 bench https://localhost --models good --rate 5; says "http://HOST:PORT"; quiet
expect 1 bench http://127.0.0.1:1 --models good --rate 5; says "refused"; quiet
expect 1 bench "$url" --models absent --rate 5; says "no such model"; quiet
expect 1 bench "$url" --models nonsense --rate 5; says "FP33"; quiet

# All that is sent arrives as it should, in every form; same seed, same arrivals and numbers.
bench --models good:60,mixed:30,words:10 --duration 1s --check --json --records "$dir/first.csv"
is all.failed 0; is all.ok "$(value all.sent)"; is protocol rest; is loop open
[ "$(value all.sent)" -ge 60 ] && [ "$(value all.sent)" -le 150 ] || fail "100 requests are $(value all.sent)"
[ "$(value models.0.sent)" -gt "$(value models.1.sent)" ] || fail "shares are not kept"
bench --models good:60,mixed:30,words:10 --duration 1s --json --records "$dir/second.csv"
for f in first second; do tail -n +2 "$dir/$f.csv" | cut -d, -f1,2 | sort >"$dir/$f"; done
cmp "$dir/first" "$dir/second" || fail "the same seed gave other arrivals"
bench --models good,mixed --protocol json --rate 40 --duration 500ms --json; is all.failed 0; is protocol json
bench --arrivals "$dir/first.csv" --requests 20 --json; is all.sent 20; is all.ok 20; is loop arrivals
bench --rate 100 --requests 10 --batch 5 --json; is all.ok 10; is models.1.model mixed
bench --models good --rate 100 --requests 3 --shape good/x:2x3 --timeout 250ms --priority 2 --json; is all.ok 3
bench --models chunks --rate 100 --requests 5 --check --json; is all.ok 5
bench --models good,slow --closed 4 --duration 500ms --json; is all.failed 0; is loop closed
grep -q '"bad"' "$dir/seen" && fail "the server did not understand a request: $(cat "$dir/server")"
grep '"timeout": 250000' "$dir/seen" | grep -q '"priority": 2' || fail "timeout or priority were not sent"
grep '"mixed"' "$dir/seen" | grep -q '"shape": \[5, 4\]' || fail "--batch was not sent"
grep -q '"shape": \[2, 3\]' "$dir/seen" || fail "--shape was not sent"
grep -q '"binary": false' "$dir/seen" || fail "nothing came as JSON"

# What servers do is counted, never fatal.
bench --models good,busy,late,broken --rate 100 --requests 60 --slo 5s --json
is models.0.ok "$(value models.0.sent)"; is models.1.rejected "$(value models.1.sent)"
is models.2.expired "$(value models.2.sent)"; is models.3.failed "$(value models.3.sent)"
is models.0.hit_percent 100.0; is models.1.hit_percent 0.0
says "HTTP 500: {\"error\":\"a layer failed\"}"
bench --models garbage,leaves,short,empty --rate 100 --requests 40 --json
is all.failed 40; is all.ok 0; says "not HTTP"; says "without a response"; says "in the middle"; says "empty"
bench --models nan,long --rate 100 --requests 10 --json; is all.ok 10
bench --models nan,long --rate 100 --requests 10 --check --json; is all.failed 10; says "not finite"; says "more bytes"
bench --models hangs --rate 100 --requests 5 --give-up 200ms --json; is all.failed 5; says "timed out waiting for the response"
bench --models slow --rate 100 --requests 20 --connections 1 --json; is all.ok 20; says "connections of their model"

# Latency counts from the moment a request was due: one connection of 50 ms a request falls behind.
[ "$(value all.p50_ms | cut -d. -f1)" -ge 150 ] || fail "time spent waiting is not counted"

# Targets: the server's own, the table, thresholds.
bench --models aimed --rate 100 --requests 5 --json; is models.0.slo_ms 2000.0
bench --models good,slow --rate 50 --requests 10 --slo 5s; prints "in time \[%\]"; prints "^slow "; prints "^all "
bench --models good --rate 100 --requests 10 --slo 5s --min-hit 95 --max-p99 5s --threshold failed=0
expect 6 bench "$url" --warmup 0 --models slow --rate 50 --requests 10 --slo 20ms --min-hit 95; says "threshold hit=95 missed by slow"
expect 6 bench "$url" --warmup 0 --models slow --rate 50 --requests 10 --max-p99 20ms --json; says "p99=20ms"
expect 6 bench "$url" --warmup 0 --models broken --rate 50 --requests 10 --threshold failed=1

# The highest rate: one connection, 50 ms a request, so less than 20 a second; and nothing at all.
bench --models slow --find-max --slo 400ms --duration 600ms --connections 1 --rate 40 --precision 50 --budget 5s --json
rate=$(value peak.peak_rate | cut -d. -f1)
[ "$rate" -ge 1 ] && [ "$rate" -le 30 ] || fail "a server of 20/s was found to do $rate"
bench --models busy --find-max --slo 50ms --duration 200ms --rate 20 --budget 1s; prints "no rate was found"

kill -0 $server || fail "the server has gone"

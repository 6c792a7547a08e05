#!/bin/sh
# chip env: the example in Python plays edf's records, wrong lines leave the run as it was, the end of input ends it.
. "$SRC/tests/cli/expect.sh"
talk() { # OPTIONS...: the lines of $dir/in, answered in $dir/out
    code=0; timeout 120 "$COTENANT" chip env "$@" <"$dir/in" >"$dir/out" 2>"$dir/err" || code=$?
    [ "$code" = 0 ] || { cat "$dir/err"; fail "chip env $*: exit $code"; }
    python3 -c "import json,sys; [json.loads(l) for l in open(sys.argv[1])]" "$dir/out" || fail "not lines of JSON"
}
count() { [ "$(grep -c "\"type\":\"$1\"" "$dir/out")" = "$2" ] || { cut -c1-300 "$dir/out"; fail "not $2 lines of type $1"; }; }

expect 0 chip env --help; prints "usage: cotenant chip env"
expect 2 chip env --set edf.patience=1; says "the policy is the client's"; quiet
expect 2 chip env --mix resnet500; says "did you mean resnet50?"; quiet
expect 2 chip env --load much; quiet

# The example plays edf: the same records, but for the policy's name in the header.
for run in "--mix light --load 0.9 --seed 7 --requests 300" "--mix mixed --load 1.2 --bandwidth 8 --seed 5 --requests 150" \
    "--mix heavy --chip 6+2 --firm --load 1.1 --requests 100"; do
    expect 0 chip simulate --policy edf $run --records "$dir/edf.jsonl" --json; cp "$dir/out" "$dir/edf.json"
    python3 "$SRC/examples/chip_edf.py" $run --records "$dir/env.jsonl" >"$dir/summary" || fail "chip_edf.py $run failed"
    head -n 1 "$dir/env.jsonl" | sed 's/"policy":"env"/"policy":"edf"/' >"$dir/renamed"; tail -n +2 "$dir/env.jsonl" >>"$dir/renamed"
    cmp "$dir/edf.jsonl" "$dir/renamed" || fail "chip_edf.py $run differs from edf"
    python3 - "$dir/edf.json" "$dir/summary" <<'EOF' || fail "another summary than chip simulate's"
import json, sys
run, seen = (json.load(open(x)) for x in sys.argv[1:])
assert all(run["all"][k] == seen[k] for k in ("requests", "met", "late", "dropped", "sla", "p99_ms")), (run["all"], seen)
EOF
done

# The wrapper: episodes of random legal actions; a wrong action raises and the episode goes on.
python3 - "$SRC/examples" <<'EOF' || fail "chip_gym.py"
import sys
sys.path.insert(0, sys.argv[1])
import chip_gym
with chip_gym.ChipEnv("--mix", "light", "--requests", "40") as env:
    first, again, other = (chip_gym.play(env, seed) for seed in (3, 3, 4))
    assert first == again != other, (first, again, other)
    assert first[1]["requests"] == 38
    seen, _ = env.reset(seed=5)
    for wrong in ([["start", 99, 0]], [["start", 0, 99]], [["drop", 0], ["drop", 0]], [["fly", 0]], "x", [["wake", 0]]):
        try:
            env.step(wrong)
            raise SystemExit(f"{wrong} was accepted")
        except ValueError as error:
            assert str(error)
    after, reward, done, _, _ = env.step([["start", 0, 0]])
    assert not done and reward == 0 and after["now"] > seen["now"]
    assert chip_gym.play(env, 3) == first  # a reset in the middle of an episode
assert env._process.returncode == 0
EOF

# A wrong line gets an error line with its number and changes nothing.
printf '%s\n' '{"reset":{"requests":3}}' '{"actions":[["start",0,0]]}' '{"actions":[]}' '{"actions":[]}' >"$dir/in"
talk --mix light; cp "$dir/out" "$dir/clean"; count observation 4
{ echo '{"actions":[]}'; head -n 1 "$dir/in"; echo nonsense; echo '{"actions":[["start",0,0],["start",0,1]]}'
    head -c 100000 /dev/zero | tr '\0' x; echo; printf '\000\377\n'; echo '{"plan":{}}'; echo '{"actions":[["start",0,0]],"x":1}'
    tail -n +2 "$dir/in"; } >"$dir/wrong"; mv "$dir/wrong" "$dir/in"
talk --mix light; count error 7
grep -v '"type":"error"' "$dir/out" | cmp - "$dir/clean" || fail "wrong lines changed the run"
prints '"line":1,"message":"no episode runs'; prints '"line":5,"message":"a line of more than 65536 bytes'
prints 'an earlier action starts or drops task 0'
printf '{"reset":{"requests":1}}\n{"actions":[]}\n{"actions":[["drop",0]]}' >"$dir/in"; talk --mix light
prints "nothing runs and no request will arrive"; count done 1; prints '"dropped":1'
: >"$dir/in"; talk; count hello 1; count observation 0

# Plans: called every period, they take effect after their time.
{ echo '{"reset":{"plans":true,"requests":1}}'; echo '{"actions":[]}'; echo '{"plan":{"macs":16000000}}'; echo '{"actions":[]}'
    echo '{"plan":{"macs":1e18}}'; } >"$dir/in"
talk --mix light; count plan 2; prints '"committed":true'; prints 'more than 1000 periods'
python3 - "$dir/out" <<'EOF' || fail "a plan of 16 million multiply-accumulates, 16 in a ns, does not take 1 ms"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
plan = next(l for l in lines if l["type"] == "plan")
assert next(l for l in lines if l.get("committed"))["now"] - plan["now"] == 1000000
EOF

# A client that goes away: a failure with its reason, no signal.
code=0; { (echo '{"reset":{}}'; i=0; while [ $i -lt 500 ]; do echo '{"actions":[]}'; i=$((i + 1)); done) |
    { "$COTENANT" chip env --mix light 2>"$dir/err"; echo $? >"$dir/code"; } | head -n 1 >/dev/null; } || code=$?
case "$(cat "$dir/code")" in 0|1) ;; *) fail "exit $(cat "$dir/code") when the client goes away" ;; esac

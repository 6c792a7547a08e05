#!/bin/sh
# cluster policies: all of them or one, table and JSON.
. "$SRC/tests/cli/expect.sh"
expect 0 cluster policies --help; prints "examples:"
expect 2 cluster policies fifo srtf; quiet
expect 2 cluster policies nobody; says "no policy 'nobody'"; quiet
expect 0 cluster policies; prints "^fifo .*knows no durations"; prints "^srtf .*knows durations"; prints "^tiresias .*NSDI"
expect 0 cluster policies tiresias
[ "$(grep -c '^[a-z]' "$dir/out")" = 1 ] || fail "more than one policy"
expect 0 cluster policies --json
python3 - "$dir/out" <<'END' || fail "the list is not what it should be"
import json, sys
d = json.load(open(sys.argv[1]))
names = [p["policy"] for p in d]
assert names[:4] == ["fifo", "sjf", "qssf", "srtf"] and len(names) == len(set(names)), names
assert all(p["about"] and "knows" in p["kind"] for p in d)
END

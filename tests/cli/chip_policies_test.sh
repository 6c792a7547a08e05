#!/bin/sh
# The policies of a package: the list, and what the one that sees the future promises.
. "$SRC/tests/cli/expect.sh"
expect 0 chip policies --help; prints "examples:"
expect 2 chip policies extra; quiet
expect 0 chip policies; prints "^fcfs"; prints "^dream .*ASPLOS"; prints "^oracle .*clairvoyant"; prints "^  patience"
expect 0 chip policies --json
python3 - "$dir/out" <<'END' || fail "the list is not what it should be"
import json, sys
d = json.load(open(sys.argv[1]))
names = [p["policy"] for p in d]
assert names[:5] == ["fcfs", "fcfs_h", "edf", "least_slack", "prema"] and "oracle" in names, names
assert all(p["about"] and p["settings"] for p in d)
assert [p["policy"] for p in d if p.get("kind") == "clairvoyant"] == ["oracle"]
END

# On every single trace the oracle is at least as good as all others.
for load in 0.6 1.3; do
    expect 0 chip compare --mix light --load $load --bandwidth 16,6 --traces 1 --requests 120 --seed 7 --json
    python3 - "$dir/out" <<'END' || fail "the oracle is behind"
import json, sys
for c in json.load(open(sys.argv[1]))["cells"]:
    sla = {p["policy"]: p["sla"] for p in c["policies"]}
    assert len(sla) > 8 and all(sla["oracle"] >= x - 1e-12 for x in sla.values()), sla
END
done

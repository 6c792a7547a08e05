"""The search of canary.py finds leaks: in responses made for it, and of a server in which copies of outputs go wrong.

The server is the real one; tests/serve/leak_shim.c makes its copies of marked data end early or end with a pointer.
"""
import mmap
import os
import signal
import struct
import sys
import types

import numpy as np

import canary
from harness import COTENANT, SANE, Failed, check

SHIM = os.environ.get("LEAK_SHIM", os.path.join(os.path.dirname(COTENANT), "libleak_shim.so"))
ROUNDS = 12
KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def found(data, sent=b"", heads=b"", server=None):
    search = canary.Search(server or types.SimpleNamespace(process=types.SimpleNamespace(pid=os.getpid())), "     found:")
    search.look("a response made for the search", data, sent, heads)
    return search.found


def as_json(kind):
    """Six elements of recycled memory in a response, as the server writes them."""
    text = ",".join(str(v.item() if kind.startswith("float16") else v) for v in np.frombuffer(canary.FILL * 48, kind)[:6])
    return b'{"outputs":[{"name":"y","data":[1,' + text.encode() + b',2]}]}'


def made():
    fill, token, rest = canary.FILL, canary.TOKEN, b'{"outputs":[]}' + bytes(range(160)) * 40
    for kind in KINDS:
        check(found(as_json(kind)), f"{kind} of recycled memory in JSON is not found: {as_json(kind)}")
    check(found(rest + fill * 8 + rest), "recycled memory is not found")
    check(found(rest + token), "bytes of another request are not found")
    check(found(b"", heads=b"x: " + token), "bytes of another request in a header are not found")
    check(found(rest, sent=token) == [], "a response without a leak is accused")
    check(found(rest + token, sent=token) == [], "what was sent is accused")
    check(found(rest + fill * 8, sent=fill * 8) == [], "what was sent is accused")
    if SANE:
        return
    page = mmap.mmap(-1, 4096)
    page[0] = 1
    held = np.frombuffer(page, np.uint8)  # no heap: that of Python may be below 4 GiB
    for shift in range(8):
        data = bytes(shift + 1) + struct.pack("<Q", held.ctypes.data) + bytes(20)
        check(found(data), f"an address at byte {shift + 1} is not found")
        check(found(data, sent=data) == [], "an address that was sent is accused")


BOTH = ("REST", "gRPC")
FILLED, TOLD = repr(canary.FILL * 8), repr(canary.TOKEN)
FAULTS = [  # about, settings of the server, what must be found, in responses by
    ("copies that end early", {"COTENANT_LEAK": "short"}, FILLED, ("gRPC",)),  # those of REST go to memory that is cleared
    ("copies from memory given back and filled", {"COTENANT_LEAK": "stale"}, FILLED, BOTH),
    ("copies from memory that others use now", {"COTENANT_LEAK": "stale", "COTENANT_POISON": "0"}, TOLD, BOTH),
    ("copies that end with a pointer", {"COTENANT_LEAK": "address"}, "the address", BOTH),
    ("copies without a fault", {"COTENANT_LEAK": "none"}, None, ()),
]


def planted(about, settings, what, ways):
    """Rounds are played until it is found by every way."""
    env = {"LD_PRELOAD": SHIM, "COTENANT_LEAK_MARK": canary.MARK.decode(), **settings}

    def missing(search):
        leaks = [f for f in search.found if what is None or what in f]
        return [way for way in ways if not any(f" by {way}" in f for f in leaks)]

    search = canary.hunt([], rounds=ROUNDS if ways else 2, env=env, word="     found:", over=lambda s: ways and not missing(s))
    check(ways or not search.found, f"{about}: {search.found[:3]}")
    check(not missing(search), f"{about}: {what} is not found by {missing(search)}: {search.found[:5]}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = 0
    cases = [("responses made for the search", made, ())]
    cases += [] if SANE else [(f[0], planted, f) for f in FAULTS]
    for about, run, arguments in cases:
        try:
            run(*arguments)
            print(f"ok   {about}", flush=True)
        except Failed as e:
            failed += 1
            print(f"FAIL {about}: {e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Scenarios of a script: registered by @scenario("what must hold"), run in order by main()."""
import argparse
import sys
import time
import traceback

import process
from cluster import Missing

SCENARIOS = []


def scenario(name):
    def put(fn):
        SCENARIOS.append((name, fn))
        return fn
    return put


def check(ok, why):
    if not ok:
        raise AssertionError(why() if callable(why) else why)


def equal(got, want, what):
    check(got == want, f"{what}: {got!r}, expected {want!r}")


def note(text):
    print(f"      {text}", flush=True)


def main(setup):
    """setup(): the context handed to every scenario; it has close(). Prints `N passed, N failed`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("only", nargs="*", help="words: scenarios whose name has one of them")
    only = parser.parse_args().only
    process.on_signals()
    passed = failed = 0
    try:
        context = setup()
    except Missing as e:
        print(f"skipped: {e}")
        sys.exit(77)
    try:
        for name, fn in SCENARIOS:
            if only and not any(word in name for word in only):
                continue
            start = time.monotonic()
            try:
                fn(context)
                passed += 1
                print(f"ok    {name} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception as e:
                failed += 1
                print(f"FAIL  {name}: {type(e).__name__}: {e}", flush=True)
                if not isinstance(e, AssertionError):
                    traceback.print_exc()
    finally:
        context.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)

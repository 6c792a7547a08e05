"""The neighbour of a tenant under attack, attack by attack.

usage: attacks.py [--seconds S] [--only TEXT] [--loop] BINARY...
One table per binary: p50 and p99 of the neighbour quiet and attacked, share within its target, peak memory of the server.
--loop: each attack has a server of its own; CPU time of the longest turn of its loop, and turns of more than a millisecond.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/serve/attack"))


def line(*cells):
    print(f"{cells[0]:>3} {cells[1]:32}" + "".join(f" {c:>9}" for c in cells[2:9]) + "  " + cells[9], flush=True)


def turns(server):
    """Longest turn of the loop in ms, and turns beyond 1 ms, of all."""
    text = server.call("GET", "/metrics", port="metrics")[2].decode()
    longest, over, all_ = (float(re.search(rf"^cotenant_loop_{name} (\S+)", text, re.M).group(1))
                           for name in ("longest_cpu_seconds", "overlong_total", "stretch_seconds_count"))
    return f"loop: {longest * 1e3:.2f} ms, {over:.0f} of {all_:.0f} turns beyond 1 ms; "


def table(binary, seconds, only, loop):
    os.environ["COTENANT"] = binary
    from attacks import ATTACKS  # pylint: disable=import-outside-toplevel
    import tenants as t  # pylint: disable=import-outside-toplevel
    print(f"\n{binary}: latency of the neighbour in ms, {t.RATE} requests/s, target {t.TARGET_MS} ms; peak memory in MiB")
    line("row", "attack", "quiet p50", "p99", "p50", "p99", "ratio", "in time", "memory", "responses to the attackers")
    server = t.Tenants(limits=False)
    for a in ATTACKS:
        if only and only not in f"{a.row} {a.name}":
            continue
        if loop:
            server.restart()
        o = t.play(server, a, seconds)
        quiet, bad = t.at(o.quiet, 0.99), t.at(o.attacked, 0.99)
        seen = ", ".join(f"{k} x {v[0]}" for k, v in sorted(o.seen.items()))
        line(a.row, a.name, f"{t.at(o.quiet, 0.5):.2f}", f"{quiet:.2f}", f"{t.at(o.attacked, 0.5):.2f}", f"{bad:.2f}",
             f"{bad / quiet:.1f}", f"{100 * sum(x <= t.TARGET_MS for x in o.attacked) / len(o.attacked):.1f} %",
             o.rss >> 20, (turns(server.server) if loop and server.server.alive() else "") + seen)
        if not server.server.alive() or t.answered(server.server, a.good, 5)[0] != 200 or server.server.rss() > o.idle + (128 << 20):
            print("    restarted" + ("" if server.server.alive() else ": it ended"))
            server.restart()
    server.stop()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--only", default="")
    p.add_argument("--loop", action="store_true")
    p.add_argument("binary", nargs="+")
    o = p.parse_args()
    for binary in o.binary:
        if len(o.binary) == 1:
            table(binary, o.seconds, o.only, o.loop)
        elif os.fork() == 0:  # the program is read once per process
            table(binary, o.seconds, o.only, o.loop)
            sys.exit(0)
        else:
            os.wait()


if __name__ == "__main__":
    main()

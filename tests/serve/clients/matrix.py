"""Every call of both protocols by every client: prints a matrix, and fails if one of them fails."""
import os
import sys
import traceback

import grpc_calls
import rest_calls
import rest_clients


def attempt(f, client, name, failures):
    try:
        f(client)
    except Exception:
        failures.append(f"{name}, {f.__name__}: {traceback.format_exc(limit=-3)}")
        return "FAIL"
    return "ok"


def play(calls, clients, address, failures):
    names = [k.name for k in clients]
    wide = max(len(f.__name__) for f in calls)
    print(" " * wide, *names)
    clients = [k(address) for k in clients]
    for f in calls:
        cells = [attempt(f, c, c.name, failures) for c in clients]
        print(f.__name__.ljust(wide), *[cell.ljust(len(n)) for cell, n in zip(cells, names)], flush=True)


failed = []
play(rest_calls.CALLS, rest_clients.CLIENTS, os.environ["HTTP"], failed)
print()
play(grpc_calls.CALLS, grpc_calls.CLIENTS, os.environ["GRPC"], failed)
print(*failed, sep="\n")
sys.exit(1 if failed else 0)

#!/bin/sh
# Load, cancelled requests, loads, unloads and reloads do not grow a server's memory.
exec timeout 500 /usr/bin/python3 "$SRC/bench/soak.py" --seconds "$([ -n "${COTENANT_LONG:-}" ] && echo 120 || echo 10)"

#!/bin/sh
# A server that lives through load, cancelled requests, loads, unloads and reloads is as slim afterwards.
exec timeout 500 /usr/bin/python3 "$SRC/bench/soak.py" --seconds "$([ -n "${COTENANT_LONG:-}" ] && echo 120 || echo 10)"

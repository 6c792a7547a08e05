#!/bin/sh
# Memory, files, sockets and threads that fail, one call after the other.
case $COTENANT in
    *asan* | *tsan*) echo "skipped: sanitizers have allocations of their own, which the shim cannot count"; exit 77 ;;
esac
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/fault.py"

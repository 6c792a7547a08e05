#!/bin/sh
# Memory, files, sockets and threads that fail, one call after the other.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/fault.py"

#!/bin/sh
# A server stops and reloads under load: no accepted request is cut off.
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/lifecycle.py" L1 L2 L4 L6

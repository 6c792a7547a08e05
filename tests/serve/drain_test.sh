#!/bin/sh
# How a server ends and changes under load: nobody who was accepted is cut off.
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/lifecycle.py" L1 L2 L4 L6

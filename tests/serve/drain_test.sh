#!/bin/sh
# How a server starts, ends and changes under load: nobody who was accepted is cut off, and stores stay whole.
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/life.py"

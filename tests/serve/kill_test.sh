#!/bin/sh
# Ended or killed at any moment, a server leaves nothing behind, and its stores whole.
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/lifecycle.py" L3 L5

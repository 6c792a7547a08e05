#!/bin/sh
# A server that is stopped or killed at any moment leaves no files behind and intact stores.
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/lifecycle.py" L3 L5

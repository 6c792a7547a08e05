#!/bin/sh
# Group B of the attacks: the binary tensor extension.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/binary.py"

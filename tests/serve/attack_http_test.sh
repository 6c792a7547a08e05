#!/bin/sh
# Group H of the attacks: HTTP framing.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/http1.py"

#!/bin/sh
# Group A of the attacks: what administrators may do, and nobody else.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/admin.py"

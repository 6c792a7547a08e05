#!/bin/sh
# Group A of the attacks: operations reserved for administrators.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/admin.py"

#!/bin/sh
# Group J of the attacks: JSON.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/json_text.py"

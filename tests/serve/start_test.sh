#!/bin/sh
# What operators see of a server's life: its log from the first line on, models behind links, files that are not its own.
exec timeout 300 /usr/bin/python3 "$SRC/tests/serve/attack/start.py"

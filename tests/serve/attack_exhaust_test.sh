#!/bin/sh
# Group R: memory, queues, disks, threads and cores run out.
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/exhaust.py"

#!/bin/sh
# Operators whose shapes and values a client draws, from 0 to 2^63, against a live server.
/usr/bin/python3 -c 'import onnx' 2> /dev/null || { echo "skipped: python3-onnx is missing"; exit 77; }
exec timeout 2300 /usr/bin/python3 "$SRC/tests/serve/attack/operators.py"

#!/bin/sh
# Attacks beside those of neighbour_test.sh, for which the server was not written: the neighbour keeps its latency target.
/usr/bin/python3 -c 'import onnx' 2> /dev/null || { echo "skipped: python3-onnx is missing"; exit 77; }
exec timeout 590 /usr/bin/python3 "$SRC/tests/serve/attack/stranger.py"

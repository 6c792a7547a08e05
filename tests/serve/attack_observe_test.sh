#!/bin/sh
# What operators see while clients misbehave: explanations, metrics, traces, logs.
exec timeout 550 /usr/bin/python3 "$SRC/tests/serve/attack/observe.py"

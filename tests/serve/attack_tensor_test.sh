#!/bin/sh
# Group T of the attacks: tensors.
exec timeout 2000 /usr/bin/python3 "$SRC/tests/serve/attack/tensor.py"

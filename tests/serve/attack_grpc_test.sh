#!/bin/sh
# Group G of the attacks: gRPC and HTTP/2.
exec timeout 550 /usr/bin/python3 "$SRC/tests/serve/attack/grpc.py"

#!/bin/sh
# ONNX's suite over REST and gRPC: every answer is what `cotenant run` computes, bit for bit.
. "$SRC/tests/cli/expect.sh"
skip() { echo "skipped: $1"; exit 77; }
/usr/bin/python3 -c 'import onnx' 2> /dev/null || skip "python3-onnx is missing"
/usr/bin/python3 -c 'import grpc' 2> /dev/null || skip "python3-grpcio is missing"
[ -d /usr/include/onnx/backend/test/data ] || skip "libonnx-testdata is missing"
mkdir "$dir/pb"
protoc --proto_path="$SRC/tests/serve/grpc" --python_out="$dir/pb" inference.proto
PB=$dir/pb PYTHONDONTWRITEBYTECODE=1 timeout 600 /usr/bin/python3 "$SRC/tests/serve/onnx_wire/suite.py" || fail "suite.py failed"

"""Values of every type: what clients send and expect back."""
import struct

TEXT = [b"", b"a", "\u00e9\u4e2d".encode(), b"x" * 300, b"17", b"\"\\\n"]
BINARY = [b"he\0llo", b"\0\1\2\3", b"\xff\xfe", b"", b"z", b"long" * 100]
NUMBERS = {  # type -> format of struct, field of typed gRPC contents, six values
    "BOOL": ("?", "bool_contents", [True, False, True, True, False, False]),
    "INT8": ("b", "int_contents", [-128, 127, -1, 0, 5, 9]), "INT16": ("h", "int_contents", [-32768, 32767, -1, 0, 5, 9]),
    "INT32": ("i", "int_contents", [-2**31, 2**31 - 1, -1, 0, 5, 9]),
    "INT64": ("q", "int64_contents", [-2**63, 2**63 - 1, -1, 0, 5, 9]),
    "UINT8": ("B", "uint_contents", [0, 255, 128, 7, 8, 9]), "UINT16": ("H", "uint_contents", [0, 65535, 128, 7, 8, 9]),
    "UINT32": ("I", "uint_contents", [0, 2**32 - 1, 128, 7, 8, 9]),
    "UINT64": ("Q", "uint64_contents", [0, 2**64 - 1, 128, 7, 8, 9]),
    "FP32": ("f", "fp32_contents", [0.0, -1.5, 3.4028234663852886e38, 1.401298464324817e-45, 0.10000000149011612, 9.0]),
    "FP64": ("d", "fp64_contents", [0.0, -1.5, 1.7e308, 5e-324, 0.1, 9.0])}


def bytes_raw(items):
    return b"".join(struct.pack("<I", len(b)) + b for b in items)


def bytes_items(raw):
    items = []
    while raw:
        n = struct.unpack_from("<I", raw)[0]
        items.append(raw[4:4 + n])
        raw = raw[4 + n:]
    return items


RAW = {kind: struct.pack("<6" + form, *values) for kind, (form, _, values) in NUMBERS.items()}
RAW["FP16"] = struct.pack("<6H", 0, 0x3C00, 0xBC00, 0x7C00, 1, 0x7BFF)
RAW["BF16"] = struct.pack("<6H", 0, 0x3F80, 0xBF80, 0x7F80, 1, 0x7F7F)
RAW["BYTES"] = bytes_raw(BINARY)

A, B = list(range(16)), [1] * 16
SUM, DIFFERENCE = [a + b for a, b in zip(A, B)], [a - b for a, b in zip(A, B)]


def ints(numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


def equal(a, b, what=""):
    assert a == b, f"{what} {str(a)[:200]} is not {str(b)[:200]}"

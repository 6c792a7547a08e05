"""A client of HTTP/2 that sends the frames it is told to, right or wrong, and protobuf by hand."""
import socket
import struct

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
CALM, CANCEL = 11, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GRPC_STATUS = bytes.fromhex("889acac8b21234da8f")  # its name, as a server writes it without a table
SERVICE = "/inference.GRPCInferenceService/"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    def text(s):
        n = len(s)
        return (bytes([n]) if n < 127 else b"\x7f" + varint(n - 127)) + s
    return b"\0" + text(name.encode()) + text(value.encode())


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


# Protobuf: a field that holds bytes, and one that holds a number
def blob(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field, n):
    return varint(field << 3) + varint(n)


def message(data):
    return b"\0" + struct.pack(">I", len(data)) + data


class H2:
    def __init__(self, server, timeout=20, settings=((1, 0),)):
        """settings: (1, 0): without a table of headers, so that they can be read here."""
        self.s = socket.create_connection(("127.0.0.1", server.ports["grpc"]), timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.closed, self.goaway, self.last, self.next = b"", False, None, None, 1
        self.streams = {}
        payload = b"".join(struct.pack(">HI", *one) for one in settings)
        self.send(PREFACE + frame(SETTINGS, 0, 0, payload))
        for _ in range(2):  # the server's settings and its window: only then may much be sent
            self.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, data):
        """False: the server has closed."""
        try:
            self.s.sendall(data)
            return True
        except (ConnectionError, socket.timeout):
            self.closed = True
            return False

    def headers(self, path, end=False, stream=None, extra=(), flags=END_HEADERS, authority="localhost"):
        if stream is None:
            stream, self.next = self.next, self.next + 2
        block = literal(":method", "POST") + literal(":scheme", "http") + literal(":path", path)
        block += literal(":authority", authority) + literal("content-type", "application/grpc")
        block += literal("te", "trailers") + b"".join(literal(*one) for one in extra)
        return stream, frame(HEADERS, flags | (END_STREAM if end else 0), stream, block)

    def call(self, method, body, extra=()):
        """Sends a whole call; its stream."""
        stream, out = self.headers(SERVICE + method, extra=extra)
        for at in range(0, max(len(body), 1), 16384):
            part = body[at:at + 16384]
            out += frame(DATA, END_STREAM if at + 16384 >= len(body) else 0, stream, part)
        self.send(out)
        return stream

    def read(self):
        """One frame: (kind, flags, stream, payload); None: closed, or silence."""
        try:
            while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
                part = self.s.recv(262144)
                if not part:
                    self.closed = True
                    return None
                self.buffer += part
        except (ConnectionError, socket.timeout) as e:
            self.closed = self.closed or isinstance(e, ConnectionError)
            return None
        n = int.from_bytes(self.buffer[:3], "big")
        kind, flags = self.buffer[3], self.buffer[4]
        stream = int.from_bytes(self.buffer[5:9], "big") & 0x7fffffff
        payload, self.buffer = self.buffer[9:9 + n], self.buffer[9 + n:]
        self.note(kind, flags, stream, payload)
        return kind, flags, stream, payload

    def note(self, kind, flags, stream, payload):
        one = self.streams.setdefault(stream, {"grpc": None, "data": b"", "reset": None, "ended": False})
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.last, self.goaway = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")
        elif kind == HEADERS and GRPC_STATUS in payload:
            at = payload.index(GRPC_STATUS) + len(GRPC_STATUS)
            one["grpc"] = int(payload[at + 1:at + 1 + payload[at]])
        elif kind == DATA:
            one["data"] += payload
            if payload:
                more = struct.pack(">I", len(payload))
                self.send(frame(WINDOW, 0, 0, more) + frame(WINDOW, 0, stream, more))
        elif kind == RST:
            one["reset"] = int.from_bytes(payload, "big")
        one["ended"] = one["ended"] or kind == RST or (kind in (DATA, HEADERS) and bool(flags & END_STREAM))

    def answer(self, stream):
        """{"grpc", "data", "reset", "ended"} of a call, once it has ended or nothing more comes."""
        none = {"grpc": None, "data": b"", "reset": None, "ended": False}
        while not self.streams.get(stream, none)["ended"] and self.read() is not None:
            pass
        return self.streams.get(stream, none)

    def until_closed(self):
        while self.read() is not None:
            pass
        return self.closed


def tensor(name, shape, type="FP32", contents=b""):
    dims = b"".join(varint(d) for d in shape)
    return blob(5, blob(1, name) + blob(2, type) + blob(3, dims) + (blob(5, contents) if contents else b""))


class Model:
    """Zeros for a model's only input."""

    def __init__(self, server, name):
        self.name, self.input = name, server.metadata(name)["inputs"][0]
        self.shape = [max(d, 1) for d in self.input["shape"]]
        self.bytes = 4
        for d in self.shape:
            self.bytes *= d

    def request(self, **how):
        """How: raw (bytes), contents, more (bytes to be put behind)."""
        typed = how.get("contents", b"")
        raw = how.get("raw", b"" if typed else bytes(self.bytes))
        body = blob(1, self.name) + tensor(self.input["name"], self.shape, self.input["datatype"], typed)
        return body + (blob(7, raw) if raw else b"") + how.get("more", b"")

"""HTTP/1.1 on asyncio streams, as little of it as the proxy needs: heads, bodies, chunks, kept connections."""
import asyncio
import socket

LIMIT = 1 << 26  # of a body


class Head:
    """First line and headers; names in lower case."""

    def __init__(self, raw):
        first, *rest = raw[:-4].decode("latin-1").split("\r\n")
        self.first = first.split(" ", 2)
        self.headers = {}
        for line in rest:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()

    def get(self, name):
        return self.headers.get(name, "")

    @property
    def chunked(self):
        return "chunked" in self.get("transfer-encoding").lower()

    @property
    def keeps(self):
        return "close" not in self.get("connection").lower()


def encode(first, headers, body=b""):
    text = first + "\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items()) + "\r\n"
    return text.encode("latin-1") + body


async def read_head(reader):
    return Head(await reader.readuntil(b"\r\n\r\n"))


async def chunks(reader):
    """Pieces of a chunked body; IncompleteReadError if it is cut."""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        if not size:
            return
        yield data[:-2]


async def read_body(reader, head, is_response=False):
    if head.chunked:
        return b"".join([piece async for piece in chunks(reader)])
    if head.get("content-length"):
        size = int(head.get("content-length"))
        if size > LIMIT:
            raise ValueError(f"a body of {size} bytes")
        return await reader.readexactly(size)
    return await reader.read() if is_response and not head.keeps else b""


def no_delay(writer):
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def reset(writer):
    """Ends a connection with RST: the peer sees a reset, not an end."""
    if writer.transport.is_closing():
        return
    sock = writer.get_extra_info("socket")
    if sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


class Pool:
    """Kept connections to one server."""

    def __init__(self, host, port, tls=None):
        self.host, self.port, self.tls, self.idle = host, port, tls, []

    async def take(self):
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof() and not writer.transport.is_closing():
                return reader, writer
            writer.transport.abort()
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=1 << 22)
        no_delay(writer)
        return reader, writer

    def give(self, pair):
        if len(self.idle) < 64:
            self.idle.append(pair)
        else:
            pair[1].transport.abort()

    async def send(self, method, path, headers, body):
        """(head, reader, writer) of a response whose body has not been read."""
        headers = {**headers, "host": f"{self.host}:{self.port}"}
        if body or method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(body))
        reader, writer = await self.take()
        try:
            writer.write(encode(f"{method} {path} HTTP/1.1", headers, body))
            return await read_head(reader), reader, writer
        except BaseException:
            writer.transport.abort()
            raise

    async def call(self, method, path, headers, body=b""):
        """(head, body) of a whole response."""
        head, reader, writer = await self.send(method, path, headers, body)
        try:
            text = await read_body(reader, head, True)
        except BaseException:
            writer.transport.abort()
            raise
        if head.keeps:
            self.give((reader, writer))
        else:
            writer.transport.abort()
        return head, text

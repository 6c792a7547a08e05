"""Group G: gRPC and HTTP/2."""
import gzip
import signal
import struct
import threading
import time
import zlib

import h2
from crowd import Crowd, fresh
from h2 import H2, Model, blob, frame, message, number
from harness import MODELS, USUAL, Server, check, item, main

OK, CANCELLED, INVALID, DEADLINE, NOT_FOUND, EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE = 0, 1, 3, 4, 5, 8, 12, 14


def one(server, body, extra=(), method="ModelInfer"):
    """A call on a connection of its own: its grpc-status."""
    with H2(server) as c:
        return c.answer(c.call(method, body, extra))["grpc"]


def served(server):
    check(one(server, message(b""), method="ServerLive") == OK, "the server does not say that it lives")


def ends_calm(server, send, rounds, why):
    """send(connection, i): bytes, again and again until the server has had enough."""
    with H2(server) as c:
        for i in range(rounds):
            if not c.send(send(c, i)):
                break
        else:
            check(c.until_closed(), f"{why}: the connection stayed open")
            check(c.goaway == h2.CALM, f"{why}: GOAWAY {c.goaway}")
    served(server)


@item("G1", "rapid reset, 100,000 calls")
def rapid_reset(ctx):
    def some(c, _):
        out = b""
        for _ in range(50):
            stream, head = c.headers(h2.SERVICE + "ModelInfer")
            out += head + frame(h2.RST, 0, stream, struct.pack(">I", h2.CANCEL))
        return out
    ends_calm(ctx.server, some, 2000, "resets")


@item("G1b", "calls that make the server reset them")
def made_you_reset(ctx):
    def some(c, _):
        out = b""
        for _ in range(50):  # a window beyond all bounds
            stream, head = c.headers(h2.SERVICE + "ModelInfer")
            out += head + frame(h2.WINDOW, 0, stream, struct.pack(">I", 0x7fffffff))
        return out
    ends_calm(ctx.server, some, 2000, "resets by the server")


@item("G2", "headers that go on and on")
def continuation(ctx):
    more = frame(h2.CONTINUATION, 0, 1, h2.literal("x-more", "y" * 100) * 50)
    with H2(ctx.server) as c:
        stream, head = c.headers(h2.SERVICE + "ModelInfer", flags=0)
        check(c.send(head), "not even a start")
        for _ in range(20000):
            if not c.send(more):
                break
        check(c.closed or c.until_closed(), "CONTINUATION without an end")
    empty = frame(h2.CONTINUATION, 0, 1)
    with H2(ctx.server) as c:
        _, head = c.headers(h2.SERVICE + "ModelInfer", flags=0)
        c.send(head)
        for _ in range(2000):
            if not c.send(empty * 100):
                break
        check(c.closed or c.until_closed(), "empty CONTINUATION without an end")
    served(ctx.server)


@item("G3", "floods of SETTINGS, PING, PRIORITY and empty DATA")
def floods(ctx):
    kinds = {"SETTINGS": frame(h2.SETTINGS), "PING": frame(h2.PING, 0, 0, bytes(8)),
             "PRIORITY": frame(h2.PRIORITY, 0, 1, bytes(5)), "unknown": frame(0xee, 0, 0, b"x")}
    for name, bytes_ in kinds.items():
        with H2(ctx.server) as c:
            for _ in range(3000):
                if not c.send(bytes_ * 100):
                    break
            check(c.closed or c.until_closed() or name == "unknown", name)
        served(ctx.server)

    def empty(c, i):
        return c.headers(h2.SERVICE + "ModelInfer")[1] if i == 0 else frame(h2.DATA, 0, 1) * 100
    ends_calm(ctx.server, empty, 3000, "empty DATA")


@item("G3b", "a body of 200,000 bytes, one in a frame")
def tiny(ctx):
    def some(c, i):
        return c.headers(h2.SERVICE + "ModelInfer")[1] if i == 0 else frame(h2.DATA, 0, 1, b"x") * 100
    ends_calm(ctx.server, some, 2000, "tiny DATA")


@item("G3c", "answers that are never taken", flags=["--write-ms", "500"])
def stalled(ctx):
    held = []
    for _ in range(4):  # windows of zero: the answer's bytes have nowhere to go
        c = H2(ctx.server, settings=((1, 0), (4, 0)))
        held.append((c, [c.call("ServerMetadata", message(b"")) for _ in range(50)]))
    for c, streams in held:
        for stream in streams:
            answer = c.answer(stream)
            check(answer["reset"] == h2.CANCEL and not answer["data"], f"{answer}")
        c.s.close()


@item("G4", "lengths before messages: 4 GiB, none, too short, too long")
def prefixes(ctx):
    s, body = ctx.server, Model(ctx.server, "lstm_kws").request()
    check(one(s, message(body)) == OK, "what is right is refused")
    cases = {b"": INVALID, b"\0": INVALID, b"\0\0\0": INVALID, message(b""): NOT_FOUND,
             b"\0\xff\xff\xff\xff" + body: INVALID, b"\0" + struct.pack(">I", len(body) + 1) + body: INVALID,
             b"\0" + struct.pack(">I", len(body) - 1) + body: INVALID, message(body) * 2: INVALID}
    for data, want in cases.items():
        got = one(s, data)
        check(got == want, f"{data[:8]}: {got}, not {want}")
    with H2(s) as c:  # 4 GiB are promised, and held back
        stream, head = c.headers(h2.SERVICE + "ModelInfer")
        c.send(head + frame(h2.DATA, 0, stream, b"\0\xff\xff\xff\xff"))
        time.sleep(0.3)
        check(s.rss() < 4 << 30, "memory for a promise")
        served(s)


@item("G4b", "a body larger than allowed", flags=["--body-mb", "1"])
def large(ctx):
    got = one(ctx.server, message(bytes(2 << 20)))
    check(got == EXHAUSTED, f"{got}, not {EXHAUSTED}")


@item("G5", "compressed messages, unknown encodings")
def compressed(ctx):
    s, body = ctx.server, Model(ctx.server, "lstm_kws").request()
    for encoding in ("snappy", "x" * 100):
        got = one(s, b"\1" + message(body)[1:], [("grpc-encoding", encoding)])
        check(got == UNIMPLEMENTED, f"{encoding}: {got}")
    for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        how, packed = [("grpc-encoding", encoding)], pack(body)
        check(one(s, b"\1" + message(packed)[1:], how) == OK, encoding)
        check(one(s, b"\1" + message(body)[1:], how) == INVALID, f"{encoding}: not compressed")
        for cut in range(0, len(packed), 1 + len(packed) // 16):
            check(one(s, b"\1" + message(packed[:cut])[1:], how) == INVALID, f"{encoding}: cut at {cut}")
        bomb = pack(body + blob(2000, bytes(65 << 20)))
        got = one(s, b"\1" + message(bomb)[1:], how)
        check(got == EXHAUSTED, f"{encoding}: 65 MiB of zeros: {got}")
        check(one(s, b"\1" + message(packed)[1:], how + how) == INVALID, f"{encoding}: the header twice")
    check(one(s, b"\1" + message(body)[1:]) == INVALID, "the flag alone")
    check(one(s, b"\2" + message(body)[1:]) == INVALID, "a flag of 2")
    check(one(s, message(body), [("grpc-encoding", "gzip")]) == OK, "a message that is not compressed after all")


@item("G6", "protobuf: numbers too long, unknown fields, deep groups, raw and typed")
def protobuf(ctx):
    s, m = ctx.server, Model(ctx.server, "lstm_kws")
    good = m.request()
    deep = b"\xa3\x06" * 100000 + b"\xa4\x06" * 100000
    typed = blob(6, bytes(m.bytes))
    cases = {
        "unknown fields": (m.request(more=number(1000, 7) + blob(2000, "x" * 1000) + b"\xfd\x7f" + bytes(4)), OK),
        "a group": (m.request(more=b"\xa3\x06" + number(5, 1) + b"\xa4\x06"), OK),
        "typed": (m.request(contents=typed), OK),
        "deep groups": (m.request(more=deep), INVALID),
        "an open group": (m.request(more=b"\xa3\x06"), INVALID),
        "a number of 11 bytes": (m.request(more=b"\x80\x3f" + b"\xff" * 10 + b"\x01"), INVALID),
        "a number of 65 bits": (m.request(more=b"\x80\x3f" + b"\xff" * 9 + b"\x7f"), INVALID),
        "a length of 2^63": (m.request(more=b"\xaa\x06" + b"\xff" * 8 + b"\x7f"), INVALID),
        "field 0": (m.request(more=b"\x00\x00"), INVALID),
        "raw and typed": (m.request(contents=typed, raw=bytes(m.bytes)), INVALID),
        "two raw for one input": (m.request(more=blob(7, bytes(m.bytes))), INVALID),
        "a byte too few": (m.request(raw=bytes(m.bytes - 1)), INVALID),
        "300 inputs": (blob(1, m.name) + h2.tensor("x", [1]) * 300, EXHAUSTED),
        "10,000 dimensions": (blob(1, m.name) + h2.tensor("x", [1] * 10000), INVALID),
        "a shape of 2^64": (blob(1, m.name) + h2.tensor("x", [65536] * 4), EXHAUSTED),
        "a negative shape": (blob(1, m.name) + h2.tensor("x", [(1 << 64) - 1]), INVALID),
        "a name that is no text": (blob(1, b"\xff\xfe"), INVALID),
        "no model": (b"", NOT_FOUND),
        "another model": (blob(1, "nobody"), NOT_FOUND),
    }
    for name, (body, want) in cases.items():
        got = one(s, message(body))
        check(got == want, f"{name}: {got}, not {want}")
    for cut in range(0, len(good) - 1, max(len(good) // 50, 1)):
        check(one(s, message(good[:cut])) in (INVALID, NOT_FOUND), f"cut at {cut}")


@item("G7", "grpc-timeout: 1n, 99999999H, garbage")
def timeouts(ctx):
    s, body = ctx.server, message(Model(ctx.server, "lstm_kws").request())
    for text, want in (("1n", DEADLINE), ("0S", DEADLINE), ("1u", DEADLINE), ("99999999H", OK), ("10S", OK)):
        got = one(s, body, [("grpc-timeout", text)])
        check(got == want, f"{text}: {got}, not {want}")
    for text in ("", "n", "5", "-1S", "1.5S", "123456789S", "1d", "S1", "1 S", "x" * 200):
        got = one(s, body, [("grpc-timeout", text)])
        check(got == INVALID, f"{text!r}: {got}")


@item("G8", "calls cancelled while they wait, run and are answered")
def cancelled(ctx):
    s, body = ctx.server, message(Model(ctx.server, "squeezenet1_1").request())
    for pause in (0, 0.001, 0.005, 0.02, 0.05):
        with H2(s) as c:
            streams = [c.call("ModelInfer", body) for _ in range(8)]
            time.sleep(pause)
            c.send(b"".join(frame(h2.RST, 0, i, struct.pack(">I", h2.CANCEL)) for i in streams[1:]))
            check(c.answer(streams[0])["grpc"] == OK, "the one that was not cancelled")
    with H2(s) as c:  # and one whose client goes altogether
        for _ in range(8):
            c.call("ModelInfer", body)
    served(s)


class Caller(threading.Thread):
    """Calls until the connection is closed, a few at once."""

    def __init__(self, server, body):
        super().__init__(daemon=True)
        self.c, self.body, self.bad, self.answered = H2(server, timeout=60), body, [], 0

    def run(self):
        while not self.c.closed and self.c.goaway is None:
            streams = [self.c.call("ModelInfer", self.body) for _ in range(3)]
            for stream in streams:
                answer = self.c.answer(stream)
                if answer["grpc"] == OK:
                    self.answered += 1
                elif stream <= self.last():
                    self.bad.append((stream, answer["grpc"], answer["reset"]))

    def last(self):
        """Calls beyond it were never accepted, and a client knows that."""
        return self.c.last if hasattr(self.c, "last") else 1 << 31


def half(settings=((1, 0),), streams=1, body=b""):
    """The bytes of a connection with calls that are not complete."""
    out = h2.PREFACE + frame(h2.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in settings))
    for stream in range(1, 2 * streams, 2):
        block = b"".join(h2.literal(*one) for one in ((":method", "POST"), (":scheme", "http"), (":path", h2.SERVICE + "ModelInfer"),
                                                      (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "trailers")))
        out += frame(h2.HEADERS, h2.END_HEADERS, stream, block) + (frame(h2.DATA, 0, stream, body) if body else b"")
    return out


@item("G11", "more connections than allowed, all unfinished, opened anew when closed: newcomers are served", flags=["--connections", "256"])
def crowds(ctx):
    for name, data in (("no byte", b""), ("half a preface", h2.PREFACE[:10]), ("idle", half(streams=0)),
                       ("calls without a body", half(streams=3)), ("half a message", half(body=b"\0\0\0\1\0x"))):
        with Crowd(ctx.server, 400, data, port="grpc"):
            good = fresh(lambda: one(ctx.server, message(b""), method="ServerLive") == OK)
            check(good >= 48, f"{name}: {good} of 50 newcomers were served")


@item("G9", "told to stop under load: every call that was accepted is answered", own=True)
def goaway(_):
    class Noted(H2):
        def note(self, kind, flags, stream, payload):
            if kind == h2.GOAWAY:
                self.last = int.from_bytes(payload[:4], "big") & 0x7fffffff
            super().note(kind, flags, stream, payload)
    with Server(*MODELS, flags=USUAL) as s:
        body = message(Model(s, "squeezenet1_1").request())
        callers = [Caller(s, body) for _ in range(3)]
        for one_ in callers:
            one_.c.__class__ = Noted
            one_.start()
        time.sleep(1)
        check(s.stop(signal.SIGTERM) == 0, "it did not end well")
        for one_ in callers:
            one_.join(30)
            check(one_.c.goaway == 0, f"GOAWAY {one_.c.goaway}")
            check(not one_.bad, f"calls lost: {one_.bad[:5]}")
        check(sum(one_.answered for one_ in callers) > 0, "no call was answered")


if __name__ == "__main__":
    main()

"""A server of the Open Inference Protocol for tests: each model has its own way to fail.

It prints its port, and each request that it understood as one JSON line to the file given.
"""
import http.server, json, math, struct, sys, threading, time

SIZES = {"FP32": 4, "INT64": 8, "UINT8": 1, "BOOL": 1}
INPUTS = {
    "words": [("text", "BYTES", [-1])],
    "mixed": [("ids", "INT64", [-1, 4]), ("mask", "BOOL", [1, 4]), ("picture", "UINT8", [2, 2])],
}
lock = threading.Lock()


def inputs_of(model):
    return INPUTS.get(model, [("x", "FP32", [-1, 3])])


def take_binary(declared, data):
    """The numbers of one input; an exception when they do not fit."""
    n = math.prod(declared["shape"])
    if declared["datatype"] == "BYTES":
        out, at = [], 0
        while at < len(data):
            size = struct.unpack_from("<I", data, at)[0]
            out.append(data[at + 4:at + 4 + size].decode())
            at += 4 + size
        assert at == len(data) and len(out) == n
        return out
    assert len(data) == n * SIZES[declared["datatype"]]
    code = {"FP32": "f", "INT64": "q", "UINT8": "B", "BOOL": "B"}[declared["datatype"]]
    return list(struct.unpack("<%d%s" % (n, code), data))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body, json_len=None, chunked=False):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if json_len is not None:
            self.send_header("Inference-Header-Content-Length", str(json_len))
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(0, len(body), 7):
                piece = body[i:i + 7]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        parts = self.path.strip("/").split("/")
        if parts == ["v2", "models"]:
            self.answer(200, b'{"models":["good","mixed"]}')
        elif parts[:2] != ["v2", "models"] or parts[2] == "absent":
            self.answer(404, b'{"error":"no such model"}')
        elif parts[-1] == "stats":
            if parts[2] != "aimed":
                self.answer(404, b'{"error":"no statistics"}')
            else:
                self.answer(200, b'{"model_stats":[{"name":"aimed","cotenant":{"target_ms":2000}}]}')
        elif parts[2] == "nonsense":
            self.answer(200, b'{"inputs":[{"name":"x","datatype":"FP33","shape":[1]}]}')
        else:
            slots = [{"name": n, "datatype": t, "shape": s} for n, t, s in inputs_of(parts[2])]
            self.answer(200, json.dumps({"name": parts[2], "inputs": slots, "outputs": []}).encode())

    def do_POST(self):
        model = self.path.strip("/").split("/")[2]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        n = int(self.headers.get("Inference-Header-Content-Length", len(body)))
        doc, at = json.loads(body[:n]), n
        for slot, i in zip(inputs_of(model), doc["inputs"], strict=True):
            assert (slot[0], slot[1]) == (i["name"], i["datatype"])
            if "data" not in i:
                size = i["parameters"]["binary_data_size"]
                i["data"] = take_binary(i, body[at:at + size])
                at += size
            assert len(i["data"]) == math.prod(i["shape"])
        assert at == len(body)
        with lock:
            log.write(json.dumps({"model": model, "time": time.monotonic(), "binary": n < len(body), **doc}) + "\n")
            log.flush()
        getattr(self, "reply_" + model, self.reply_good)()

    def reply_good(self, value=1.5, extra=0):
        head = b'{"model_name":"m","outputs":[{"name":"y","shape":[1],"datatype":"FP32",' \
               b'"parameters":{"binary_data_size":4}}]}'
        self.answer(200, head + struct.pack("<f", value) + b"x" * extra, len(head))

    def reply_chunks(self):
        self.answer(200, b'{"outputs":[{"name":"y","shape":[1],"datatype":"FP32","data":[1]}]}', chunked=True)

    def reply_slow(self):
        time.sleep(0.05)
        self.reply_good()

    def reply_nan(self):
        self.reply_good(math.nan)

    def reply_long(self):
        self.reply_good(extra=3)

    def reply_empty(self):
        self.answer(200, b"")

    def reply_busy(self):
        self.answer(503, b'{"error":"busy"}')

    def reply_late(self):
        self.answer(504, b'{"error":"late"}')

    def reply_broken(self):
        self.answer(500, b'{"error":"a layer failed"}')

    def reply_garbage(self):
        self.wfile.write(b"\0\1\2 this is not HTTP\r\n\r\n")
        self.close_connection = True

    def reply_leaves(self):
        self.close_connection = True

    def reply_hangs(self):
        time.sleep(3)
        self.close_connection = True

    def reply_short(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        kind = sys.exc_info()[0]
        if not issubclass(kind, OSError):  # a client that has gone is no news
            super().handle_error(request, client_address)
            with lock:
                log.write('{"bad":true}\n')
                log.flush()


log = open(sys.argv[1], "w")
server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Timer(120, server.shutdown).start()  # never left running
server.serve_forever()

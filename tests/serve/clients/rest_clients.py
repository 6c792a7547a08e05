"""HTTP clients behind one interface: call(method, path, body, headers) -> (status, headers in lower case, body)."""
import asyncio
import concurrent.futures
import http.client
import subprocess
import tempfile

import aiohttp
import requests
import urllib3


class Client:
    def __init__(self, address):
        self.address = address

    def together(self, calls):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda c: self.call(*c), calls))


class HttpClient(Client):
    name = "http.client"

    def call(self, method, path, body, headers):
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request(method, path, body, headers)
        r = connection.getresponse()
        got = r.status, {k.lower(): v for k, v in r.headers.items()}, r.read()
        connection.close()
        return got


class Urllib3(Client):
    name = "urllib3"

    def __init__(self, address):
        super().__init__(address)
        self.pool = urllib3.PoolManager(maxsize=8)

    def call(self, method, path, body, headers):
        r = self.pool.request(method, f"http://{self.address}{path}", body=body, headers=headers, timeout=60)
        return r.status, {k.lower(): v for k, v in r.headers.items()}, r.data


class Requests(Client):
    name = "requests"

    def __init__(self, address):
        super().__init__(address)
        self.session = requests.Session()

    def call(self, method, path, body, headers):
        r = self.session.request(method, f"http://{self.address}{path}", data=body, headers=headers, timeout=60)
        return r.status_code, {k.lower(): v for k, v in r.headers.items()}, r.content


class Aiohttp(Client):
    name = "aiohttp"

    async def one(self, session, method, path, body, headers):
        async with session.request(method, f"http://{self.address}{path}", data=body, headers=headers) as r:
            return r.status, {k.lower(): v for k, v in r.headers.items()}, await r.read()

    async def all(self, calls):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
            return await asyncio.gather(*[self.one(session, *c) for c in calls])

    def call(self, *what):
        return self.together([what])[0]

    def together(self, calls):
        return asyncio.run(self.all(calls))


class Curl(Client):
    name = "curl"

    def call(self, method, path, body, headers):
        with tempfile.NamedTemporaryFile() as sent, tempfile.NamedTemporaryFile() as head:
            sent.write(body)
            sent.flush()
            args = ["curl", "-s", "-g", "--max-time", "60", "-X", method, "-D", head.name, f"http://{self.address}{path}"]
            for k, v in headers.items():
                args += ["-H", f"{k}: {v}"]
            if method == "POST":
                args += ["--data-binary", f"@{sent.name}"]
            data = subprocess.run(args, check=True, stdout=subprocess.PIPE).stdout
            lines = [line for line in head.read().decode("latin1").split("\r\n") if line]
        last = max(i for i, line in enumerate(lines) if line.startswith("HTTP/"))
        fields = dict(line.split(": ", 1) for line in lines[last + 1:])
        return int(lines[last].split(" ")[1]), {k.lower(): v for k, v in fields.items()}, data


CLIENTS = [HttpClient, Urllib3, Requests, Aiohttp, Curl]

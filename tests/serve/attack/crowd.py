"""A crowd: connections that send too little or read too little, held by a process of its own and opened anew when the server closes them."""
import multiprocessing
import resource
import select
import socket
import time

from harness import check


def hold(port, n, data, opened):
    """Until it is killed. Answers are not read."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, n + 64)), hard))
    held, poll = {}, select.poll()
    while True:
        for _ in range(min(50, n - len(held))):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(1)
            try:
                s.connect(("127.0.0.1", port))
                s.setblocking(False)
                s.send(data)
            except OSError:
                s.close()
                continue
            held[s.fileno()] = s
            poll.register(s, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
            opened.value += 1
        for fd, _ in poll.poll(10):
            poll.unregister(fd)
            held.pop(fd).close()


class Crowd:
    def __init__(self, server, n, data, port="http"):
        self.opened = multiprocessing.get_context("fork").Value("L", 0)
        self.process = multiprocessing.get_context("fork").Process(
            target=hold, args=(server.ports[port], n, data, self.opened), daemon=True)
        self.n = n

    def __enter__(self):
        self.process.start()
        end = time.monotonic() + 20
        while self.opened.value < self.n and time.monotonic() < end:
            time.sleep(0.05)
        check(self.opened.value >= self.n, f"only {self.opened.value} connections of the crowd")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def answered(ask):
    try:
        return bool(ask())
    except OSError:
        return False


def fresh(ask, n=50, per_second=50):
    """So many requests on connections of their own, with one more try each as clients have: how many are answered.
    A client that the machine stops between connecting and sending can be outrun by a crowd."""
    good, begin = 0, time.monotonic()
    for i in range(n):
        time.sleep(max(0, begin + i / per_second - time.monotonic()))
        good += answered(ask) or answered(ask)
    return good

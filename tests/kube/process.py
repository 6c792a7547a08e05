"""Child processes that never outlive this one, however it ends."""
import atexit
import concurrent.futures
import random
import signal
import socket
import subprocess
import sys
import threading

# setpriv kills a child when the thread that started it ends: one thread, as long-lived as the process, starts all.
_starter = concurrent.futures.ThreadPoolExecutor(1)
_children = []


def start(command, log, **more):
    streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **more}
    bound = ["setpriv", "--pdeathsig", "KILL", *map(str, command)]
    child = _starter.submit(lambda: subprocess.Popen(bound, **streams)).result()
    _children.append(child)
    return child


def stop(child, sig=signal.SIGTERM, seconds=10):
    """Ends a child, by force if it does not end in time."""
    if child and child.poll() is None:
        child.send_signal(sig)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child in _children:
        _children.remove(child)


def stop_all():
    for child in _children[::-1]:
        if child.poll() is None:
            child.kill()
        child.wait()
    _children.clear()


def on_signals():
    """A signal that would end the process without its exit handlers becomes an exit."""
    if threading.current_thread() is threading.main_thread():
        for sig in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(sig) == signal.SIG_DFL:
                signal.signal(sig, lambda n, _: sys.exit(128 + n))


def free_port():
    """Below the range that the system gives to outgoing connections, so that it is still free after a restart."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError("no free port on 127.0.0.1 between 20000 and 32000")


atexit.register(stop_all)

"""The log of a server's life, models behind symbolic links, and files that belong to others."""
import json
import os
import signal
import struct
import subprocess
import tempfile
import time

from model import FLOAT, field, model, node, put, value
from harness import COTENANT, Server, check, item, main


def lines_of(s):
    return [json.loads(line) for line in s.said().splitlines()]


def wait_for(ok, why, seconds=60):
    end = time.monotonic() + seconds
    while not ok():
        check(time.monotonic() < end, why() if callable(why) else why)
        time.sleep(0.02)


@item("S1", "the log says from the first line on what the server does", own=True)
def s1(_):
    names = ["a", "b", "c"]
    with Server(*[f"{n}=zoo:lstm_kws" for n in names], flags=["--log-format", "json", "--set", "c.min_cores=1"]) as s:
        wait_for(lambda: any(line["msg"] == "ready" for line in lines_of(s)), "no ready line")
        lines = lines_of(s)
        first = lines[0]
        check(first["msg"] == "starting" and first["cores"] <= first["of"] and first["policy"] == "slack"
              and first["models"] == 3 and first["memory_mb"] > 0 and first["version"] and first["cores_by"], first)
        order = [line["msg"] for line in lines]
        check(order.index("starting") < order.index("listening") < order.index("model loading") < order.index("ready"), order)
        check("profile store" in order or "measured profiles are not stored" in order, order)
        for number, name in enumerate(names, 1):
            loading = next(x for x in lines if x["msg"] == "model loading" and x["model"] == name)
            check((loading["number"], loading["of"]) == (number, 3), loading)
            check(not {"target_ms", "memory_mb", "why"} & set(loading), f"no value yet: {loading}")
            ready = next(x for x in lines if x["msg"] == "model ready" and x["model"] == name)
            check(ready["seconds"] >= 0 and ready["target_ms"] > 0 and ready["cores"] >= 1 and "why" not in ready, ready)
            check(("reserved" in ready) == (name == "c"), ready)
        ready = next(x for x in lines if x["msg"] == "ready")
        check(ready["models"] == 3 and ready["http"].endswith(f":{s.ports['http']}") and ready["seconds"] > 0, ready)
        check('"why":""' not in s.said(), "an empty reason")


@item("S2", "an unload is not an error, and a failed load is", own=True)
def s2(_):
    with tempfile.TemporaryDirectory() as folder:
        put(folder, "a", adder_with(2.0))
        with Server(folder, flags=["--log-format", "json"]) as s:
            check(s.admin_call("POST", "/v2/repository/models/a/unload")[0] == 200, "not unloaded")
            wait_for(lambda: "model unloaded" in s.said(), "no line about it")
            line = next(x for x in lines_of(s) if x["msg"] == "model unloaded")
            check(line["level"] == "info" and line["model"] == "a", line)
            check(not [x for x in lines_of(s) if x["level"] == "error"], s.said())
            check(s.admin_call("POST", "/v2/repository/models/a/load")[0] == 200, "not loaded")
            with open(f"{folder}/a/1/model.onnx", "wb") as f:
                f.write(b"damaged")
            s.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "the loaded version stays" in s.said(), lambda: s.said()[-900:])
            line = next(x for x in lines_of(s) if x["msg"].startswith("model not replaced"))
            check(line["level"] == "error" and "newer file" in line["why"], line)
            check(s.infer("a")[0] == 200, "the loaded version is gone")


@item("S3", "no life-cycle line is lost: many models, log_rate 1, a flood of requests, a failed reload", own=True)
def s3(_):
    many = 700
    with tempfile.TemporaryDirectory() as folder:
        for i in range(many):
            put(f"{folder}/models", f"m{i}", b"not a model")
        put(f"{folder}/models", "good", adder_with(2.0))
        with open(f"{folder}/cotenant.yaml", "w") as f:
            f.write("sources: [models]\ndefaults: {required: false}\n")
        with Server(f"{folder}/cotenant.yaml", flags=["--log-format", "json", "--log-rate", "1", "--log-level", "debug"]) as s:
            body = s.infer_body("good")
            for _ in range(50):
                check(s.infer("good", body)[0] == 200, "not served")
            with open(f"{folder}/cotenant.yaml", "a") as f:
                f.write("modles: []\n")
            s.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "not reloaded" in s.said(), "the failed reload is not in the log")
            lines = lines_of(s)
            for i in range(many):
                of = [x["msg"] for x in lines if x.get("model") == f"m{i}"]
                check(of == ["model loading", "model unavailable"], f"m{i}: {of}")
            check(len([x for x in lines if x["msg"] == "request"]) < 40, "request lines are not limited")
            check(any("did you mean models?" in x.get("why", "") for x in lines), "no suggestion")


@item("S4", "while models load: why says so, SIGHUP is not forgotten", own=True)
def s4(_):
    with Server("zoo:squeezenet1_1", flags=["--log-format", "json", "--tune-s", "4"], wait=0) as s:
        wait_for(lambda: "listening" in s.said(), "it does not listen")
        metrics = next(x for x in lines_of(s) if x["msg"] == "listening")["metrics"]
        told = subprocess.run([COTENANT, "why", "--misses", "3", "--url", "http://" + metrics], capture_output=True,
                              text=True, timeout=30)
        check(told.returncode == 0 and "not ready" in told.stdout, f"{told.returncode} {told.stdout} {told.stderr}")
        s.process.send_signal(signal.SIGHUP)
        check("msg\":\"ready" not in s.said(), "it was ready before the signal")
        s.wait_ready(60)
        wait_for(lambda: '"msg":"reloaded"' in s.said(), "the signal was forgotten")


def external(name, dims, location):
    entry = field(1, "location") + field(2, location)
    return b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) + field(13, entry) + field(14, 1)


def adder_from(location):
    """y = x + a, where a is in another file."""
    return model([node("Add", ["x", "a"], ["y"])], [value("x", FLOAT, 1, 4)], [value("y", FLOAT, 1, 4)],
                 [external("a", [4], location)])


def adder_with(number):
    data = struct.pack("<4f", *[number] * 4)
    raw = field(1, 4) + field(2, FLOAT) + field(8, "a") + field(9, data)
    return model([node("Add", ["x", "a"], ["y"])], [value("x", FLOAT, 1, 4)], [value("y", FLOAT, 1, 4)], [raw])


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def answer(s, name):
    status, _, body = s.infer(name)
    check(status == 200, f"{name}: {status} {body[:300]}")
    return struct.unpack("<4f", body[-16:])[0]


@item("S5", "models and weights behind links: Hugging Face, Kubernetes, and links that lead outside", own=True)
def s5(_):
    with tempfile.TemporaryDirectory() as top:
        four = lambda number: struct.pack("<4f", *[number] * 4)  # noqa: E731
        hub, volume, repository = f"{top}/hub", f"{top}/volume/kube", f"{top}/models"
        write(f"{hub}/blobs/aa", adder_from("model.onnx_data"))
        write(f"{hub}/blobs/bb", four(5))
        os.makedirs(f"{hub}/snapshots/r1/onnx")
        os.symlink("../../../blobs/aa", f"{hub}/snapshots/r1/onnx/model.onnx")
        os.symlink("../../../blobs/bb", f"{hub}/snapshots/r1/onnx/model.onnx_data")
        for date, number in (("..2024_1", 7), ("..2024_2", 8)):
            write(f"{volume}/{date}/1/model.onnx", adder_from("w.bin"))
            write(f"{volume}/{date}/1/w.bin", four(number))
        os.symlink("..2024_1", f"{volume}/..data")
        os.symlink("..data/1", f"{volume}/1")
        write(f"{top}/secret", four(9))
        write(f"{repository}/thief/1/model.onnx", adder_from("w.bin"))
        os.symlink(f"{top}/secret", f"{repository}/thief/1/w.bin")
        write(f"{repository}/climber/1/model.onnx", adder_from("../../../secret"))
        write(f"{repository}/shared/w.bin", four(6))
        write(f"{repository}/fair/1/model.onnx", adder_from("w.bin"))
        os.symlink("../../shared/w.bin", f"{repository}/fair/1/w.bin")
        with Server(f"hub={hub}/snapshots/r1/onnx/model.onnx", volume, repository,
                    flags=["--set", "thief.required=false", "--set", "climber.required=false"]) as s:
            check(answer(s, "hub") == 5 and answer(s, "kube") == 7 and answer(s, "fair") == 6, "other numbers")
            for name, why in (("thief", "leads out of the model's folder"), ("climber", "'..'")):
                check(s.call("GET", f"/v2/models/{name}/ready")[0] == 503, f"{name} is served")
                check(any(f"model={name} " in x and why in x for x in s.said().splitlines()), s.said()[-900:])
            os.symlink("..2024_2", f"{volume}/..next")
            os.rename(f"{volume}/..next", f"{volume}/..data")
            s.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "msg=reloaded" in s.said() or "reloaded in part" in s.said(), "not reloaded")
            check(answer(s, "kube") == 8, "the new weights are not served")
            check(s.stop() == 0, "it did not end well")
    done = subprocess.run([COTENANT, "check", "zoo:lstm_kws", "--http", "127.0.0.1:0", "--grpc", "off", "--metrics", "off"],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, done.stdout)


@item("S6", "files of others: a socket's place taken by a file, a folder, a link", own=True)
def s6(_):
    with tempfile.TemporaryDirectory() as top:
        write(f"{top}/notes", b"my notes")
        os.symlink("notes", f"{top}/link")
        os.mkdir(f"{top}/folder")
        for name in ("notes", "link", "folder"):
            for command in ("serve", "check"):
                done = subprocess.run([COTENANT, command, "zoo:lstm_kws", "--http", f"unix:{top}/{name}", "--grpc", "off",
                                       "--metrics", "off"], capture_output=True, text=True, timeout=60)
                check(done.returncode == 4, f"{command} {name}: {done.returncode} {done.stderr}")
        with open(f"{top}/notes", "rb") as f:
            check(f.read() == b"my notes", "the file was replaced")
        check(os.path.islink(f"{top}/link") and os.path.isdir(f"{top}/folder"), "a link or a folder was replaced")


if __name__ == "__main__":
    main()

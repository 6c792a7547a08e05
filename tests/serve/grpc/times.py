"""Deadlines and cancelled calls."""
import grpc

from client import Code, ask, client, equal, fails, floats, infer, rest, rest_json, run_all, until

NAME = ask("ModelMetadata", {"name": "squeezenet1_1"})["inputs"][0]["name"]
DATA = floats([0] * 150528)


def picture(**more):
    return {"model_name": "squeezenet1_1", "raw_input_contents": [DATA],
            "inputs": [{"name": NAME, "datatype": "FP32", "shape": [1, 3, 224, 224]}], **more}


def count(end):
    return rest_json("/v2/models/squeezenet1_1/stats")["model_stats"][0]["cotenant"]["ends"].get(end, 0)


def long_deadline():
    """a deadline far away"""
    equal(len(infer(picture(), timeout=60).outputs), 1)


def expires(seconds):
    try:
        infer(picture(), timeout=seconds)
        return False
    except grpc.RpcError as e:
        equal(e.code(), Code.DEADLINE_EXCEEDED, e.details())
        return True


def passed():
    """a deadline that has passed, and one that passes before a fast machine answers, sooner or later"""
    fails(Code.DEADLINE_EXCEEDED, ".", lambda: infer(picture(), timeout=-1))
    until("it expires", lambda: expires(0.0001))


def server_side():
    """the server says so too, and where the time went"""
    before = count("expired")
    fails(Code.DEADLINE_EXCEEDED, "us|ms", lambda: infer(picture(parameters={"timeout": {"int64_param": 1}})))
    until("it is counted", lambda: count("expired") > before)


def no_timeouts():
    """timeouts that are none"""
    for t in [{"double_param": -1}, {"bool_param": True}]:
        fails(Code.INVALID_ARGUMENT, "timeout", lambda: infer(picture(parameters={"timeout": t})))
    far = {"timeout": {"uint64_param": 18446744073709551615}}
    equal(len(infer(picture(parameters=far)).outputs), 1)


def outcome(call):
    try:
        call.result()
        return "answered"
    except grpc.FutureCancelledError:
        return Code.CANCELLED
    except grpc.RpcError as e:
        return e.code()


def cancelled():
    """cancelled before, while and after it is computed"""
    before = count("cancelled")
    calls = [client.start("ModelInfer", picture()) for _ in range(40)]
    outcome(calls[0])  # by then the headers of all have been written: grpcio may reset a stream before it opens it
    for c in calls[1:]:
        c.cancel()
    codes = [outcome(c) for c in calls]
    equal(codes[0], "answered")
    assert set(codes[1:]) <= {Code.CANCELLED, "answered"} and Code.CANCELLED in codes, codes
    until("the server gave them up", lambda: count("cancelled") > before)
    late = client.start("ModelInfer", picture())
    equal(outcome(late), "answered")
    late.cancel()
    equal(len(infer(picture()).outputs), 1)


def afterwards():
    """the server is ready afterwards"""
    until("ready", lambda: rest("GET", "/v2/health/ready")[0] == 200)
    equal(ask("ServerReady"), {"ready": True})


run_all([long_deadline, passed, server_side, no_timeouts, cancelled, afterwards])

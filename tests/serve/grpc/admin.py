"""Model control, on a server that allows it."""
import json

from client import Code, ask, equal, fails, infer, rest, rest_json, run_all, until

ROWS = {"model_name": "rows", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4],
                                          "contents": {"fp32_contents": [1, 2, 3, 4]}}]}


def index():
    """the index"""
    models = ask("RepositoryIndex")["models"]
    equal(models, json.loads(rest("POST", "/v2/repository/index")[1]))
    equal([m["name"] for m in models], ["rows"])


def reload():
    """unload and load"""
    equal(ask("RepositoryModelUnload", {"model_name": "rows"}), {})
    until("rows is unloaded", lambda: not ask("RepositoryIndex", {"ready": True})["models"])
    try:
        infer(ROWS)
    except Exception:
        pass
    else:
        raise AssertionError("an unloaded model answers")
    equal(ask("RepositoryModelLoad", {"model_name": "rows"}), {})
    until("rows is ready", lambda: ask("ModelReady", {"name": "rows"})["ready"])
    equal(len(infer(ROWS).outputs), 2)
    assert "rows" in rest_json("/v2/models")["models"]


def rejected():
    """what is rejected"""
    for name in ["", "../../etc", "a;id", "$(id)", "x" * 10000, "r\u043ews"]:
        fails(Code.INVALID_ARGUMENT, "name has 1 to 128", lambda: ask("RepositoryModelLoad", {"model_name": name}))
    fails(Code.INVALID_ARGUMENT, "failed to load 'nobody'", lambda: ask("RepositoryModelLoad", {"model_name": "nobody"}))
    fails(Code.INVALID_ARGUMENT, "failed to load.*cannot be uploaded", lambda: load({"file:1/model.onnx": {"bytes_param": b"x"}}))
    for config in ["", "[]", "7", '"parameters": {"config": {{}}}', '{"max_batch_size":"many"}', '{"max_batch_size":-1}',
                   '{"max_batch_size":1e99}', '{"input":[]}', '{"parameters":{"qos.weights":{"string_value":"in8"}}}',
                   '{"parameters":{"qos.queue":{"string_value":"2"}}}', '{"parameters":{"qos.weights":"int8"}}',
                   '{"max_batch_size":4' + " " * 100]:
        fails(Code.INVALID_ARGUMENT, "failed to load", lambda: load({"config": {"string_param": config}}))
        status, body = rest("POST", "/v2/repository/models/rows/load", json.dumps({"parameters": {"config": config}}))
        assert status == 400 and b"failed to load" in body, (status, body)


def load(parameters):
    return ask("RepositoryModelLoad", {"model_name": "rows", "parameters": parameters})


def override():
    """a load that changes max_batch_size or the width of weights, until the next load"""
    big = {"model_name": "rows", "raw_input_contents": [bytes(16 * 5)],
           "inputs": [{"name": "x", "datatype": "FP32", "shape": [5, 4]}]}
    load({"config": {"string_param": '{"max_batch_size":"4"}'}})
    fails(Code.INVALID_ARGUMENT, "exceeds the 4", lambda: infer(big))
    equal(rest("POST", "/v2/repository/models/rows/load", '{"parameters":{"config":"{\\"max_batch_size\\":5}"}}')[0], 200)
    equal(len(infer(big).outputs), 2)
    load({"config": {"string_param": '{"parameters":{"qos.weights":{"string_value":"int8"}}}'}})
    equal(rest_json("/v2/models/rows/config")["parameters"]["qos.weights"], {"string_value": "int8"})
    load({})
    equal(rest_json("/v2/models/rows/config")["parameters"]["qos.weights"], {"string_value": "fp32"})
    equal(len(infer({**big, "raw_input_contents": [bytes(16 * 9)],
                     "inputs": [{"name": "x", "datatype": "FP32", "shape": [9, 4]}]}).outputs), 2)


run_all([index, reload, rejected, override])

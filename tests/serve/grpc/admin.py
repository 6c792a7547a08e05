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
    fails(Code.INVALID_ARGUMENT, ".", lambda: ask("RepositoryModelLoad", {"model_name": "nobody"}))
    for parameters in [{"file:1/model.onnx": {"bytes_param": b"x"}}, {"config": {"string_param": "{}"}}]:
        fails(Code.INVALID_ARGUMENT, "cannot be uploaded",
              lambda: ask("RepositoryModelLoad", {"model_name": "rows", "parameters": parameters}))


run_all([index, reload, rejected])

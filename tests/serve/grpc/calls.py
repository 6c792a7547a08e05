"""Every call but inference: its answer, the same over REST, and what is rejected."""
from client import SERVICE, Code, ask, client, equal, fails, health, infer, rest, rest_json, run_all


def numbers(stat):
    return {"count": int(stat["count"]), "ns": int(stat["ns"])}


def live_and_ready():
    """the server is live and ready"""
    equal(ask("ServerLive"), {"live": True})
    equal(ask("ServerReady"), {"ready": True})


def server_metadata():
    """server metadata"""
    m = ask("ServerMetadata")
    equal(m, rest_json("/v2"))
    equal(m["name"], "cotenant")


def model_ready():
    """model readiness"""
    equal(ask("ModelReady", {"name": "rows"}), {"ready": True})
    equal(ask("ModelReady", {"name": "rows", "version": "1"}), {"ready": True})
    fails(Code.NOT_FOUND, "'nobody' is not known", lambda: ask("ModelReady", {"name": "nobody"}))
    fails(Code.NOT_FOUND, "not known", lambda: ask("ModelReady", {"name": "rows", "version": "7"}))


def model_metadata():
    """model metadata"""
    for name in ["rows", "echo", "squeezenet1_1"]:
        m, other = ask("ModelMetadata", {"name": name}), rest_json(f"/v2/models/{name}")
        for t in m["inputs"] + m["outputs"]:
            t["shape"] = [int(d) for d in t["shape"]]
        for key in ["name", "versions", "platform", "inputs", "outputs"]:
            equal(m[key], other[key], key)
        equal(float(m["properties"]["target_ms"]), float(f"{other['parameters']['target_ms']:.6g}"))
    for name in ["../../etc", ""]:
        fails(Code.NOT_FOUND, "not known", lambda: ask("ModelMetadata", {"name": name}))


def model_config():
    """model configuration"""
    for name in ["rows", "echo"]:
        config, other = ask("ModelConfig", {"name": name})["config"], rest_json(f"/v2/models/{name}/config")
        for t in config["input"] + config["output"]:
            t["dims"] = [int(d) for d in t["dims"]]
            t.pop("optional", None)
        for key in ["name", "platform", "backend", "max_batch_size", "input", "output", "parameters",
                    "dynamic_batching"]:
            equal(config.get(key), other.get(key), key)
        equal(config["version_policy"]["latest"]["num_versions"], other["version_policy"]["latest"]["num_versions"])
    fails(Code.NOT_FOUND, "not known", lambda: ask("ModelConfig", {"name": "nobody"}))


def statistics():
    """statistics"""
    infer({"model_name": "rows", "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 4],
                                             "contents": {"fp32_contents": [1, 2, 3, 4, 5, 6, 7, 8]}}]})
    stats = ask("ModelStatistics", {"name": "rows"})["model_stats"]
    equal(len(stats), 1)
    ours, theirs = stats[0], rest_json("/v2/models/rows/stats")["model_stats"][0]
    for key in ["name", "version"]:
        equal(ours[key], theirs[key], key)
    for key in ["last_inference", "inference_count", "execution_count"]:
        equal(int(ours[key]), theirs[key], key)
    for key in ["success", "fail", "queue", "compute_input", "compute_infer", "compute_output"]:
        equal(numbers(ours["inference_stats"][key]), theirs["inference_stats"][key], key)
    assert int(ours["inference_stats"]["success"]["count"]) >= 1 and int(ours["inference_count"]) >= 2
    equal(len(ours["batch_stats"]), len(theirs["batch_stats"]))
    for a, b in zip(ours["batch_stats"], theirs["batch_stats"]):
        equal(int(a["batch_size"]), b["batch_size"])
        equal(numbers(a["compute_infer"]), b["compute_infer"])
    equal(len(ask("ModelStatistics")["model_stats"]), 3)
    fails(Code.NOT_FOUND, "not known", lambda: ask("ModelStatistics", {"name": "nobody"}))


def health_checks():
    """health"""
    for service in ["", "inference.GRPCInferenceService", "rows"]:
        equal(health.call("Check", {"service": service}), {"status": "SERVING"})
    fails(Code.NOT_FOUND, "not known", lambda: health.call("Check", {"service": "nobody"}))
    request, watch = health.methods["Watch"]
    fails(Code.UNIMPLEMENTED, "", lambda: list(watch(request(service=""))))


def administration():
    """model control is off by default"""
    denied = "not enabled at this address"
    fails(Code.PERMISSION_DENIED, denied, lambda: ask("RepositoryIndex"))
    for method in ["RepositoryModelLoad", "RepositoryModelUnload"]:
        fails(Code.PERMISSION_DENIED, denied, lambda: ask(method, {"model_name": "rows"}))
    equal(rest("POST", "/v2/repository/index")[0], 403)
    equal(ask("ModelReady", {"name": "rows"}), {"ready": True})


def unknown():
    """calls that the server does not have"""
    method = client.channel.unary_unary(f"/{SERVICE.full_name}/SystemSharedMemoryStatus",
                                        lambda b: b, lambda b: b)
    fails(Code.UNIMPLEMENTED, "no such method", lambda: method(b""))


run_all([live_and_ready, server_metadata, model_ready, model_metadata, model_config, statistics, health_checks,
         administration, unknown])

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
    equal(m["name"], "triton")
    assert "classification" in m["extensions"] and "cotenant_timing" in m["extensions"]


def model_ready():
    """model readiness"""
    equal(ask("ModelReady", {"name": "rows"}), {"ready": True})
    equal(ask("ModelReady", {"name": "rows", "version": "1"}), {"ready": True})
    for unknown in [{"name": "nobody"}, {"name": "rows", "version": "7"}, {"name": "../etc"}, {}]:
        equal(ask("ModelReady", unknown), {"ready": False}, unknown)
    equal(rest("GET", "/v2/models/nobody/ready")[0], 404)


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
        fails(Code.NOT_FOUND, "Request for unknown model: .* is not found", lambda: ask("ModelMetadata", {"name": name}))


def model_config():
    """model configuration"""
    for name in ["rows", "echo"]:
        config, other = ask("ModelConfig", {"name": name})["config"], rest_json(f"/v2/models/{name}/config")
        for t in config["input"] + config["output"]:
            t["dims"] = [int(d) for d in t["dims"]]
        for t in other["input"] + other["output"]:
            for key in ["is_shape_tensor", "allow_ragged_batch"]:
                assert not t.pop(key, False)
        for key in ["name", "platform", "backend", "max_batch_size", "input", "output", "parameters",
                    "default_model_filename", "model_transaction_policy"]:
            equal(config.get(key), other.get(key), key)
        for key in ["version_policy", "dynamic_batching"]:  # neither is in force: a file without versions
            assert key not in config and key not in other, key
    fails(Code.NOT_FOUND, "Request for unknown model: .* is not found", lambda: ask("ModelConfig", {"name": "nobody"}))


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
    fails(Code.NOT_FOUND, "Request for unknown model: .* is not found", lambda: ask("ModelStatistics", {"name": "nobody"}))


def health_checks():
    """health"""
    for service in ["", "inference.GRPCInferenceService", "rows"]:
        equal(health.call("Check", {"service": service}), {"status": "SERVING"})
    fails(Code.NOT_FOUND, "Request for unknown model: .* is not found", lambda: health.call("Check", {"service": "nobody"}))
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
    method = client.channel.unary_unary(f"/{SERVICE.full_name}/Nothing", lambda b: b, lambda b: b)
    fails(Code.UNIMPLEMENTED, "no such method", lambda: method(b""))


def shared_memory():
    """shared memory: there is none"""
    for kind in ["System", "Cuda"]:
        equal(ask(f"{kind}SharedMemoryStatus"), {"regions": {}})
        equal(ask(f"{kind}SharedMemoryUnregister"), {})
        fails(Code.UNIMPLEMENTED, "send tensors in requests", lambda: ask(f"{kind}SharedMemoryRegister", {"name": "a"}))
        path = f"/v2/{kind.lower()}sharedmemory"
        equal(rest("GET", f"{path}/status"), (200, b"[]"))
        equal(rest("POST", f"{path}/unregister"), (200, b""))
        equal(rest("POST", f"{path}/region/a/unregister"), (200, b""))
        equal(rest("POST", f"{path}/region/a/register", '{"key":"/a","byte_size":1}')[0], 400)


def settings():
    """trace and log settings are read-only"""
    trace = ask("TraceSetting")["settings"]
    equal({k: v["value"] for k, v in trace.items()},
          {k: v if isinstance(v, list) else [v] for k, v in rest_json("/v2/trace/setting").items()})
    equal(trace["trace_level"], {"value": ["OFF"]})
    equal(ask("TraceSetting", {"model_name": "rows"})["settings"], trace)
    equal(rest("GET", "/v2/models/rows/trace/setting")[0], 200)
    fails(Code.NOT_FOUND, "unknown model", lambda: ask("TraceSetting", {"model_name": "nobody"}))
    log = ask("LogSettings")["settings"]
    equal({k: next(iter(v.values())) for k, v in log.items()}, rest_json("/v2/logging"))
    equal(log["log_info"], {"bool_param": True})
    change = "cannot be changed"
    fails(Code.INVALID_ARGUMENT, change, lambda: ask("LogSettings", {"settings": {"log_info": {"bool_param": False}}}))
    fails(Code.INVALID_ARGUMENT, change,
          lambda: ask("TraceSetting", {"settings": {"trace_level": {"value": ["TIMESTAMPS"]}}}))
    for path in ["/v2/logging", "/v2/trace/setting", "/v2/models/rows/trace/setting"]:
        equal(rest("POST", path, "{}")[0], 200)
        equal(rest("POST", path, '{"log_info":false}')[0], 400)


run_all([live_and_ready, server_metadata, model_ready, model_metadata, model_config, statistics, health_checks,
         administration, unknown, shared_memory, settings])

// Config: all settings of a server and its models, with the origin of each value.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/settings.h"

#define SERVE_SETTINGS(X)                                                                          \
    X(http, string, "127.0.0.1:8000", 1, 255, "REST: ADDRESS:PORT, or off")                        \
    X(grpc, string, "127.0.0.1:8001", 1, 255, "gRPC: ADDRESS:PORT, or off")                        \
    X(metrics, string, "127.0.0.1:8002", 1, 255, "metrics, why, trace: ADDRESS:PORT, or off")      \
    X(admin, string, "off", 1, 255,                                                                \
      "model administration: unix:FILE, ADDRESS:PORT, http (with grpc), or off")                   \
    X(expose, bool, false, 0, 0, "allow addresses that other machines can reach")                  \
    X(hosts, string, "", 0, 4095,                                                                  \
      "further names that requests may be for (Host), separated by commas; *: all")                \
    X(origins, string, "", 0, 4095,                                                                \
      "sites that may send requests (Origin: https://NAME), separated by commas; *: all")          \
    X(policy, string, "slack", 1, 63, "scheduling policy: see cotenant node policies")             \
    X(cores, int, 0, 0, 256, "cores to compute on; 0: all that affinity and CPU quota allow")      \
    X(store, string, "", 0, 4095, "file of measured profiles; empty: in the cache directory")      \
    X(tune, string, "background", 1, 15,                                                           \
      "search for faster kernel versions: background (while it serves), load, or off")             \
    X(tune_s, double, 20, 0, 3600,                                                                 \
      "time of that search, per model [s]; in the background CPU time; 0: none")                   \
    X(requests, int, 4096, 1, 1 << 20, "maximum requests in flight, queued included")              \
    X(concurrency, int, 4, 1, 64, "maximum requests of a model that run at the same time")         \
    X(shapes, int, 256, 1, 4096, "sets of input shapes kept compiled per model")                   \
    X(connections, int, 1024, 1, 1 << 20, "maximum connections per address")                       \
    X(header_kb, int, 16, 1, 1024, "maximum size of request line and headers [KiB]")               \
    X(body_mb, int, 64, 1, 1 << 16, "maximum size of a decompressed request body [MiB]")           \
    X(buffered_mb, int, 2048, 1, 1 << 20,                                                          \
      "memory of all requests: bodies, intermediate values, outputs, unread responses [MiB]")      \
    X(response_mb, int, 256, 1, 1 << 16, "maximum size of a response [MiB]")                       \
    X(header_ms, int, 10000, 1, 3600000, "time limit for receiving a request's headers [ms]")      \
    X(body_ms, int, 60000, 1, 3600000, "time limit for receiving a request's body [ms]")           \
    X(idle_ms, int, 75000, 1, 3600000, "time limit between requests on a connection [ms]")         \
    X(write_ms, int, 30000, 1, 3600000, "time limit for a client to accept response bytes [ms]")   \
    X(drain_delay_ms, int, 5000, 0, 600000,                                                        \
      "time after SIGTERM during which it is not ready but still serves [ms]")                     \
    X(drain_ms, int, 30000, 0, 600000, "time limit after that for requests in flight [ms]")        \
    X(watchdog_ms, int, 10000, 1, 3600000, "time limit of one block of layers [ms]")               \
    X(quarantine, int, 5, 1, 1000, "consecutive failures that put a model into quarantine")        \
    X(quarantine_s, double, 60, 0, 1e6,                                                            \
      "length of a quarantine [s]; 0: until the model is loaded again")                            \
    X(log_level, string, "info", 1, 15, "debug, info, warn or error")                              \
    X(log_format, string, "logfmt", 1, 15, "logfmt or json")                                       \
    X(log_file, string, "", 0, 4095, "log file; empty: standard error")                            \
    X(log_rate, int, 200, 1, 1000000,                                                              \
      "log lines about requests per second; further ones are counted, not written")                \
    X(why_requests, int, 4096, 16, 1 << 20, "requests kept in the history for `cotenant why`")     \
    X(trace_mb, int, 64, 1, 4096, "maximum size of a trace [MiB]")                                 \
    X(server_name, string, "triton", 1, 63,                                                        \
      "name in the server's metadata; NVIDIA's clients expect triton")                             \
    X(metrics_compat, string, "none", 1, 15, "none, or triton: nv_inference_* counters too")       \
    X(strict, bool, false, 0, 0, "unknown fields in config.pbtxt are errors")

typedef struct ServeSettings {
    SERVE_SETTINGS(SETTING_FIELD)
} ServeSettings;

#define TENANT_SETTINGS(X)                                                                         \
    X(target_ms, double, 0, 0, 1e7, "latency target [ms]; 0: from target_x_isolated")              \
    X(target_x_isolated, double, 5, 1, 1e6,                                                        \
      "latency target as a multiple of the run time alone on one core")                            \
    X(percentile, double, 99, 1, 100, "percentage of requests that should meet the target")        \
    X(class, string, "latency", 1, 15, "latency, throughput or best_effort")                       \
    X(on_miss, string, "serve_late", 1, 15, "for missed deadlines: reject, serve_late or degrade") \
    X(min_cores, int, 0, 0, 256, "cores reserved for this model")                                  \
    X(max_cores, int, 0, 0, 256, "maximum cores for this model; 0: all")                           \
    X(memory_mb, int, 0, 0, 1 << 24, "memory limit of this model [MiB]; 0: none")                  \
    X(request_mb, int, 512, 1, 1 << 20,                                                            \
      "memory of one request, beyond its body and the compiled buffers [MiB]")                     \
    X(buffered_mb, int, 0, 0, 1 << 20,                                                             \
      "memory of this model's requests [MiB]; 0: half of the server's buffered_mb")                \
    X(queue, int, 256, 1, 1 << 20, "maximum queued requests of this model")                        \
    X(timeout_ms, double, 0, 0, 1e7, "timeout of requests that set none [ms]; 0: none")            \
    X(max_batch, int, 0, 0, 65536,                                                                 \
      "maximum batch size, where the first dimension is open; 0: no limit")                        \
    X(weights, string, "fp32", 1, 15,                                                              \
      "weights of matrix products in memory: fp32 (as in the file), fp16 or int8")                 \
    X(warmup, int, 2, 0, 1000, "warm-up runs before the model is ready")                           \
    X(versions, int, 1, 1, 64, "number of newest versions served")                                 \
    X(required, bool, true, 0, 0, "the server is ready only with this model")

typedef struct TenantSettings {
    TENANT_SETTINGS(SETTING_FIELD)
} TenantSettings;

typedef enum ModelClass {  // setting `class`
    CLASS_LATENCY,
    CLASS_THROUGHPUT,
    CLASS_BEST_EFFORT
} ModelClass;

typedef enum TuneWhen { TUNE_BACKGROUND, TUNE_AT_LOAD, TUNE_OFF } TuneWhen;  // setting `tune`

typedef struct ConfigModel {      // one version of a model, as named by a file, an argument or a
                                  // repository
    const char         *name;     // ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$
    const char         *path;     // ONNX file, or zoo:NAME
    const char         *root;     // folder or file that the operator named, which it was found in
    const char         *version;  // "1" if the source has none
    TenantSettings      set;
    const char        **origins;          // [rows of TENANT_SETTINGS] origin of each value
    const char         *pbtxt;            // path of its config.pbtxt; NULL: none
    bool                from_disk;        // found in a folder: unloaded when it disappears there
    const char         *broken;           // why it cannot be served; NULL: it can
    const struct Pbtxt *declared;         // contents of config.pbtxt; NULL: none, or broken
    bool                declared_policy;  // the version policy of config.pbtxt is in force
} ConfigModel;

typedef struct ConfigSources {
    const char *file;  // cotenant.yaml; NULL: COTENANT_CONFIG, or none
    const char *const
            *sources;  // [n_sources] of the command line: DIR, FILE.onnx, zoo:NAME, FILE.yaml
    uint32_t n_sources;
    const char *const *flags;  // [n_flags] "key=value" of the command line; MODEL.key=value too
    uint32_t           n_flags;
    char *const       *environment;  // NULL-terminated "COTENANT_HTTP=..."; NULL: none
    uint32_t           cores;        // that the process may use; 0: unknown, not checked
} ConfigSources;

typedef struct Config {
    Arena         arena;
    ServeSettings serve;
    const char *
        *origins;  // [rows of SERVE_SETTINGS] "built-in", "flag --http", "COTENANT_HTTP", "FILE:7"
    ConfigModel  *models;  // [n_models] all versions to serve, ordered by name and version
    uint32_t      n_models;
    const char  **warnings;
    uint32_t      n_warnings;
    const char  **problems;  // [n_problems] found by config_read; none after config_load
    uint32_t      n_problems;
    ConfigSources loaded_from;  // sources, for config_reload
} Config;

// Reads all sources, including model folders. Without any: three models of the zoo. ERR_CONFIG
// names the first problem; then there is nothing to finish.
MUST_USE Err config_load(Config *c, const ConfigSources *s);
MUST_USE Err config_reload(Config *c, const Config *old);  // the same sources, as they are now
// As config_load, and what a server needs besides at its start: files that it can write.
MUST_USE Err config_load_start(Config *c, const ConfigSources *s);
// Collects all problems instead; a setting with a problem keeps its previous value.
MUST_USE Err config_read(Config *c, const ConfigSources *s);
MUST_USE Err config_read_start(Config *c, const ConfigSources *s);
void         config_finish(Config *c);  // accepts a zeroed Config

const Setting *config_serve_rows(uint32_t *n);
const Setting *config_tenant_rows(uint32_t *n);
#define CONFIG_NAME_RULE                                                                           \
    "a model's name has 1 to 128 letters, digits, '.', '_' or '-', a letter or digit first"
// Index of a word among those that a setting (class, on_miss, ...) allows; 0 if it is not one.
uint32_t config_word(const char *key, const char *word);
bool     config_valid_name(const char *name, size_t len);

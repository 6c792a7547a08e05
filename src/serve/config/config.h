// Config: everything that can be set about a server, and where each value came from.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/settings.h"

#define SERVE_SETTINGS(X)                                                                          \
    X(http, string, "127.0.0.1:8000", 1, 255, "REST: ADDRESS:PORT, or off")                        \
    X(grpc, string, "127.0.0.1:8001", 1, 255, "gRPC: ADDRESS:PORT, or off")                        \
    X(metrics, string, "127.0.0.1:8002", 1, 255, "metrics, why, trace: ADDRESS:PORT, or off")      \
    X(admin, string, "off", 1, 255,                                                                \
      "loads models: unix:FILE, ADDRESS:PORT, http (and grpc), or off")                            \
    X(expose, bool, false, 0, 0, "addresses that other machines reach are allowed")                \
    X(policy, string, "slack", 1, 63, "who decides: see cotenant node policies")                   \
    X(cores, int, 0, 0, 256, "cores to compute on; 0: as many as we may use")                      \
    X(store, string, "", 0, 4095, "file of measured profiles; empty: in the cache directory")      \
    X(tune_s, double, 0, 0, 3600, "seconds of search for better versions, for each model")         \
    X(requests, int, 4096, 1, 1 << 20, "requests at once, those that wait included")               \
    X(concurrency, int, 4, 1, 64, "requests of a model that are computed at once")                 \
    X(shapes, int, 4, 1, 64, "shapes of a model's inputs that are kept compiled")                  \
    X(connections, int, 1024, 1, 1 << 20, "connections at once, of each address")                  \
    X(header_kb, int, 16, 1, 1024, "request line and headers [KiB]")                               \
    X(body_mb, int, 64, 1, 1 << 16, "body of a request, decompressed [MiB]")                       \
    X(buffered_mb, int, 512, 1, 1 << 20, "bodies of all requests together [MiB]")                  \
    X(response_mb, int, 256, 1, 1 << 16, "an answer [MiB]")                                        \
    X(header_ms, int, 10000, 1, 3600000, "for a request's headers [ms]")                           \
    X(body_ms, int, 60000, 1, 3600000, "for a request's body [ms]")                                \
    X(idle_ms, int, 75000, 1, 3600000, "between requests of a connection [ms]")                    \
    X(write_ms, int, 30000, 1, 3600000, "for an answer that is not taken [ms]")                    \
    X(drain_delay_ms, int, 5000, 0, 600000, "serves on after SIGTERM, not ready any more [ms]")    \
    X(drain_ms, int, 30000, 0, 600000, "for requests on their way after that [ms]")                \
    X(watchdog_ms, int, 10000, 1, 3600000, "a block that takes longer is stopped [ms]")            \
    X(quarantine, int, 5, 1, 1000, "failures in a row after which a model is not served")          \
    X(quarantine_s, double, 60, 0, 1e6, "until it is tried again; 0: only when it is loaded anew") \
    X(log_level, string, "info", 1, 15, "debug, info, warn or error")                              \
    X(log_format, string, "logfmt", 1, 15, "logfmt or json")                                       \
    X(log_file, string, "", 0, 4095, "empty: standard error")                                      \
    X(log_rate, int, 200, 1, 1000000, "lines a second; beyond it they are counted")                \
    X(why_requests, int, 4096, 16, 1 << 20, "requests that are remembered for `cotenant why`")     \
    X(trace_mb, int, 64, 1, 4096, "most of a trace [MiB]")                                         \
    X(metrics_compat, string, "none", 1, 15, "none or triton: also nv_inference_* counters")       \
    X(strict, bool, false, 0, 0, "what is not understood in config.pbtxt is an error")

typedef struct ServeSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SERVE_SETTINGS(X)
#undef X
} ServeSettings;

#define TENANT_SETTINGS(X)                                                                         \
    X(target_ms, double, 0, 0, 1e7, "latency target [ms]; 0: by target_x_isolated")                \
    X(target_x_isolated, double, 5, 1, 1e6, "target, times what it takes alone on one core")       \
    X(percentile, double, 99, 1, 100, "of requests that shall meet the target")                    \
    X(class, string, "latency", 1, 15, "latency, throughput or best_effort")                       \
    X(on_miss, string, "serve_late", 1, 15, "reject, serve_late or degrade")                       \
    X(min_cores, int, 0, 0, 256, "kept for it")                                                    \
    X(max_cores, int, 0, 0, 256, "it gets no more; 0: all")                                        \
    X(memory_mb, int, 0, 0, 1 << 24, "it may use [MiB]; 0: no limit of its own")                   \
    X(queue, int, 256, 1, 1 << 20, "requests that wait")                                           \
    X(timeout_ms, double, 0, 0, 1e7, "for requests that bring none [ms]; 0: none")                 \
    X(max_batch, int, 0, 0, 65536, "largest first dimension where that is open; 0: no limit")      \
    X(warmup, int, 2, 0, 1000, "runs before it is ready")                                          \
    X(versions, int, 1, 1, 64, "the newest so many are served")                                    \
    X(required, bool, true, 0, 0, "the server is not ready without it")

typedef struct TenantSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    TENANT_SETTINGS(X)
#undef X
} TenantSettings;

typedef enum ModelClass {  // `class`, in the order of its words
    CLASS_LATENCY,
    CLASS_THROUGHPUT,
    CLASS_BEST_EFFORT
} ModelClass;

typedef struct ConfigModel {  // as a configuration file, an argument or a repository names it
    const char    *name;      // ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$
    const char    *path;      // an ONNX file, or zoo:NAME
    const char    *version;   // "1" where the source has none
    TenantSettings set;
    const char   **origins;  // [rows of TENANT_SETTINGS] where each value came from
    // Of config.pbtxt; empty without
    const char         *pbtxt;      // its path; NULL: none
    bool                from_disk;  // found in a repository: unloaded when it goes away
    const char         *broken;     // why it cannot be served, known already; NULL: nothing
    const struct Pbtxt *declared;   // what it says; NULL: none, or broken
} ConfigModel;

typedef struct ConfigSources {
    const char *file;  // cotenant.yaml; NULL: COTENANT_CONFIG, or none
    const char *const
            *sources;  // [n_sources] of the command line: DIR, FILE.onnx, zoo:NAME, FILE.yaml
    uint32_t n_sources;
    const char *const *flags;  // [n_flags] "key=value" of the command line; MODEL.key=value too
    uint32_t           n_flags;
    char *const       *environment;  // NULL-terminated "COTENANT_HTTP=..."; NULL: none
} ConfigSources;

typedef struct Config {
    Arena         arena;
    ServeSettings serve;
    const char *
        *origins;  // [rows of SERVE_SETTINGS] "built-in", "flag --http", "COTENANT_HTTP", "FILE:7"
    ConfigModel  *models;  // [n_models] all versions that are to be served, by name, then version
    uint32_t      n_models;
    const char  **warnings;
    uint32_t      n_warnings;
    const char  **problems;  // [n_problems] what config_read found wrong; none after config_load
    uint32_t      n_problems;
    ConfigSources loaded_from;  // where all of it came from, to look again
} Config;

// Reads everything, models' folders included. Without any source: three models of the zoo.
// ERR_CONFIG names the first problem and leaves nothing to finish.
MUST_USE Err config_load(Config *c, const ConfigSources *s);
MUST_USE Err config_reload(Config *c, const Config *old);  // from the same sources, as they are now
// Goes on after a problem and remembers all of them; what has one keeps the value before.
MUST_USE Err config_read(Config *c, const ConfigSources *s);
void         config_finish(Config *c);  // accepts a zeroed Config

const Setting *config_serve_rows(uint32_t *n);
const Setting *config_tenant_rows(uint32_t *n);
#define CONFIG_NAME_RULE                                                                           \
    "a model's name has 1 to 128 letters, digits, '.', '_' or '-', a letter or digit first"
// Number of a word among those that a setting allows (class, on_miss, ...); 0 where it is none.
uint32_t config_word(const char *key, const char *word);
bool     config_valid_name(const char *name, size_t len);

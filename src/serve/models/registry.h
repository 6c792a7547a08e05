// ModelRegistry: the models of a server. Versions are loaded, warmed up, swapped and unloaded while
// other models serve requests.
//
// All functions are called on the loop's thread. A loader thread does the work and reports back
// through the loop.
#pragma once

#include "base/budget.h"
#include "net/loop.h"
#include "node/live/node_live.h"
#include "serve/config/config.h"
#include "serve/models/model_override.h"
#include "serve/tensor/infer_request.h"

enum { REGISTRY_SLOTS = 1024 };  // model names since the start; metrics have a row for each

typedef enum ModelState {
    MODEL_LOADING,
    MODEL_READY,
    MODEL_UNLOADING,
    MODEL_UNAVAILABLE
} ModelState;

typedef struct ModelInfo {  // one version of a model; pinned while requests use it
    const char        *name, *version;
    uint32_t           slot;  // number of its name; the same for all versions, for good
    const ConfigModel *config;
    ModelClass class;
    OnMiss         on_miss;
    ModelSignature signature;
    TimeNs         target_ns;
    ModelState     state;
    const char    *reason;    // UNAVAILABLE: why; READY: why a newer file failed to load, or ""
    bool           unloaded;  // UNAVAILABLE: by request, or because no source has it any more
    uint32_t       load_number, load_count;  // LOADING: it is the number-th of count loads
    TimeNs         load_ns;                  // READY: time that loading took
    TimeNs         quarantined;              // until this time; 0: not in quarantine
    bool           tuning;        // READY: faster versions are being searched or compiled
    uint32_t       cores;         // on which a run is fastest, as measured; 0: not known yet
    uint64_t       memory_bytes;  // weights, execution contexts, tables
    Budget         memory;        // of its requests
    uint32_t       job_tenant;    // in the engine, for jobs of its requests; UINT32_MAX: none
    char           sha256[65];    // of the file; "" for zoo models
} ModelInfo;

typedef struct ModelRegistry ModelRegistry;

typedef struct ModelTuned {           // result of a search in the background
    double      before_ms, after_ms;  // run time alone on one core
    double      seconds;  // from the begin of the search until its versions were in service
    const char *kept;     // why the versions in service stay; NULL: new ones are in service
    bool        failed;   // for a reason that an operator may remove
} ModelTuned;

typedef struct ModelRegistryOptions {
    Loop             *loop;
    NodeLive         *engine;
    struct Host      *host;
    const Config     *config;  // outlives the registry
    Budget           *memory;  // of all requests; NULL: no limit
    const NodePolicy *policy;
    const void       *policy_settings;
    void (*changed)(void *self, const ModelInfo *s);  // its state has changed; may be NULL
    // A search in the background has ended, unless its model was unloaded; may be NULL.
    void (*tuned)(void *self, const ModelInfo *s, const ModelTuned *t);
    void *self;
} ModelRegistryOptions;

MUST_USE Err registry_create(ModelRegistry **out, const ModelRegistryOptions *o);
void registry_destroy(ModelRegistry *r);  // accepts NULL; requires that no request is in flight
// Loads the models that c names and unloads all others; a version with unchanged file and settings
// stays. If a load fails, the version being served stays. done is called when all of it is over,
// maybe before this returns. c must stay valid while registry_uses(r, c).
void registry_reload(ModelRegistry *r, const Config *c, void (*done)(void *self, uint32_t failed),
                     void *self);
// Loads or unloads one model, from configuration and folders as they are now. override: NULL, or
// settings that hold until the model is loaded again. why NULL: it worked.
void registry_load(ModelRegistry *r, const char *name, const ModelOverride *override,
                   void (*done)(void *self, const char *why), void *self);
void registry_unload(ModelRegistry *r, const char *name, void (*done)(void *self, const char *why),
                     void *self);

// Whether c is the present configuration, or that of a version still in memory.
bool registry_uses(const ModelRegistry *r, const Config *c);

void registry_stop_tuning(ModelRegistry *r);  // for good: before the server drains

bool registry_ready(const ModelRegistry *r);  // every required model has a version ready

// The version named; without one (version.at NULL) the newest that is ready, else the newest: check
// its state. NULL: no such model or version.
ModelInfo *registry_find(ModelRegistry *r, Str name, Str version);
void       registry_pin(ModelInfo *s);
void       registry_release(ModelRegistry *r, ModelInfo *s);
// All versions, ready or not, ordered by name and version.
uint32_t         registry_count(const ModelRegistry *r);
uint32_t         registry_count_ready(const ModelRegistry *r);
const ModelInfo *registry_at(const ModelRegistry *r, uint32_t i);

typedef enum ShapeLookup {
    SHAPE_READY,
    SHAPE_COMPILING,
    SHAPE_INVALID,
    SHAPE_TOO_LARGE,
    SHAPE_CROWDED  // other requests hold the memory that it needs: retry later
} ShapeLookup;

// How requests of certain input shapes run. Several shapes share an engine tenant.
typedef struct ServedShape {
    uint32_t              tenant;
    const Program        *program;    // for these shapes; NULL: the tenant's
    TimeNs                target_ns;  // latency target: target_x_isolated depends on the shape
    struct CompiledShape *compiled;   // of the registry, as the next one
    struct ShapedProgram *shaped;
} ServedShape;

// How these input shapes are served. COMPILING: call again from when->run, which runs once
// compilation has ended. INVALID, TOO_LARGE, CROWDED: err_why() says why.
// held: bytes that the request itself has taken from the memory of its model.
ShapeLookup registry_find_shape(ModelRegistry *r, ModelInfo *s, const Tensor *inputs, size_t held,
                                LoopPost *when, ServedShape *out);
void        registry_cancel_wait(ModelRegistry *r, ModelInfo *s,
                                 LoopPost *when);  // the request was cancelled
// Once for each SHAPE_READY, when the engine has finished the request or it was not submitted. Only
// shapes without requests are evicted.
void registry_release_shape(ModelRegistry *r, ModelInfo *s, const ServedShape *shape);

typedef enum ModelResult { MODEL_WORKED, MODEL_FAILED, MODEL_STUCK } ModelResult;
// Result of a computed request: `quarantine` failures in a row put the version into quarantine. A
// stuck run of a version that worked before is the inputs' fault and does not count.
void     registry_note_result(ModelRegistry *r, ModelInfo *s, ModelResult result);
uint64_t registry_estimate_ns(const ModelInfo *s);  // of one request, alone on all cores

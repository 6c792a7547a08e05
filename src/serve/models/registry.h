// ModelRegistry: the models of a server: loaded, warmed, swapped and unloaded while others are
// served.
//
// Everything here is called on the loop's thread; a loader thread works behind it and reports
// through the loop.
#pragma once

#include "net/loop.h"
#include "node/live/node_live.h"
#include "serve/config/config.h"
#include "serve/tensor/infer_request.h"

enum { REGISTRY_SLOTS = 1024 };  // model names ever seen; metrics have a row for each

typedef enum ModelState {
    MODEL_LOADING,
    MODEL_READY,
    MODEL_UNLOADING,
    MODEL_UNAVAILABLE
} ModelState;

typedef struct ModelInfo {  // one version of a model; pinned while requests use it
    const char        *name, *version;
    uint32_t           slot;  // of its name: stays while versions come and go
    const ConfigModel *config;
    ModelSignature     signature;
    TimeNs             target_ns;
    ModelState         state;
    const char        *reason;        // UNAVAILABLE: why; READY: why a newer file is not
    TimeNs             quarantined;   // until then; 0: it is not
    uint64_t           memory_bytes;  // weights, places, tables
    char               sha256[65];    // of the file; "" for the zoo
} ModelInfo;

typedef struct ModelRegistry ModelRegistry;

typedef struct ModelRegistryOptions {
    Loop             *loop;
    NodeLive         *engine;
    struct Host      *host;
    const Config     *config;  // outlives the registry
    const NodePolicy *policy;
    const void       *policy_settings;
    void (*changed)(void *self, const ModelInfo *s);  // its state; NULL: nobody cares
    void *self;
} ModelRegistryOptions;

MUST_USE Err registry_create(ModelRegistry **out, const ModelRegistryOptions *o);
void         registry_destroy(ModelRegistry *r);  // accepts NULL; when no request is on its way
// Loads what the configuration names and unloads what it does not; a model whose file and settings
// are the same stays. What fails keeps the version that is served. done is called at the end, maybe
// before this returns. c stays where it is while registry_uses says so.
void registry_reload(ModelRegistry *r, const Config *c, void (*done)(void *self, uint32_t failed),
                     void *self);
// One model by name, as the configuration or its folder has it now. done(self, NULL) or the reason.
void registry_load(ModelRegistry *r, const char *name, void (*done)(void *self, const char *why),
                   void *self);
void registry_unload(ModelRegistry *r, const char *name, void (*done)(void *self, const char *why),
                     void *self);

// Whether this is the configuration at hand, or some version is served by it yet.
bool registry_uses(const ModelRegistry *r, const Config *c);

bool registry_ready(const ModelRegistry *r);  // all that are required

// The version named, or the newest that is ready (version.at NULL), or else the newest: look at its
// state. NULL: there is none such.
ModelInfo *registry_find(ModelRegistry *r, Str name, Str version);
void       registry_pin(ModelInfo *s);
void       registry_release(ModelRegistry *r, ModelInfo *s);
// All versions known, ready or not, by name and version.
uint32_t         registry_count(const ModelRegistry *r);
const ModelInfo *registry_at(const ModelRegistry *r, uint32_t i);

typedef enum ShapeLookup {
    SHAPE_READY,
    SHAPE_COMPILING,
    SHAPE_INVALID,
    SHAPE_TOO_LARGE
} ShapeLookup;

// The engine's tenant that computes these inputs. LATER: it is being compiled, when->run is posted
// once that has ended and then to be asked again. NEVER: err_why says why.
ShapeLookup registry_find_shape(ModelRegistry *r, ModelInfo *s, const Tensor *inputs,
                                LoopPost *when, uint32_t *tenant);
void registry_cancel_wait(ModelRegistry *r, ModelInfo *s, LoopPost *when);  // its request has gone
// Once for each SHAPE_READY: the engine has answered, or nothing was submitted. Shapes that nobody
// uses make room for others.
void registry_release_shape(ModelRegistry *r, ModelInfo *s, uint32_t tenant);
// Of requests that this tenant computes: a relative target is of their own shape.
TimeNs registry_target_ns(const ModelInfo *s, uint32_t tenant);

// After each request that was computed: failures in a row lead to quarantine.
void     registry_note_result(ModelRegistry *r, ModelInfo *s, bool failed);
uint64_t registry_estimate_ns(const ModelInfo *s);  // alone, on all cores

// Internals of the registry: ModelVersions, and CompiledShapes (a version compiled for certain
// input shapes).
//
// The loop's thread owns everything. While a loader job runs, the job alone uses the version's
// source and the shape's prepared model.
#pragma once

#include <stdatomic.h>

#include "node/prepared_model.h"
#include "serve/models/registry.h"
#include "serve/models/loader.h"

enum { MODEL_VERSION_WHY = 512 };

typedef struct ModelVersion ModelVersion;

typedef struct LoadWaiter {  // callback once a version is loaded or unloaded
    struct LoadWaiter *next;
    void (*done)(void *self, const char *why);
    void *self;
} LoadWaiter;

typedef enum CompiledShapeState {
    COMPILED_SHAPE_FREE,
    COMPILED_SHAPE_COMPILING,
    COMPILED_SHAPE_READY,
    COMPILED_SHAPE_FAILED
} CompiledShapeState;

typedef struct CompiledShape {
    ModelVersion      *owner;
    CompiledShapeState state;
    bool               large;   // FAILED: it is too large
    Tensor            *shapes;  // [inputs] shapes it is compiled for
    PreparedModel      prepared;
    bool               is_prepared, joined;
    bool               in_policy;  // the engine's policy has been set up with it
    bool     leaked;   // the policy still refers to it and could not be replaced: never freed
    uint32_t tenant;   // in the engine
    uint32_t running;  // requests using it
    uint64_t used;     // registry.uses at its last use, for LRU eviction
    TimeNs   retry;    // FAILED: compiled again from this time on
    TimeNs   target_ns;
    _Atomic uint64_t memory_bytes;
    size_t           charged;  // of it to the memory of the model's requests
    LoopPost        *waiters;
    _Atomic bool     deserted;  // all waiters have left
    bool             skipped;   // it was not compiled, as it was deserted
    LoaderJob        job;
    char             why[MODEL_VERSION_WHY];
} CompiledShape;

struct ModelVersion {
    ModelInfo      info;
    ModelRegistry *registry;
    const Config  *from;  // holds info.config
    Arena          arena;
    Source         source;
    SourceStamp    stamp;   // of the loaded file
    CompiledShape *shapes;  // [n_shapes]
    uint32_t       n_shapes;
    CompiledShape *last;           // used by the last request
    LoopPost      *shape_waiters;  // requests waiting for a shape to become unused
    uint32_t       pins, failures;
    _Atomic bool   worked;            // a run has succeeded
    bool           loading, leaving;  // a loader job is in progress
    bool           same;  // same bytes as the previous version: only the file's date is new
    char           previous_sha256[SHA256_TEXT];  // of the previous version; "" if settings differ
    ModelSignature signature;                     // becomes info.signature once it is ready
    bool           listed;                        // in its slot and in registry.listed
    bool           retiring;   // unloaded once another version of the model is ready
    bool           unloaded;   // by request; stays listed as UNAVAILABLE
    _Atomic bool   cancelled;  // while loading
    LoadWaiter    *load_waiters;
    ModelVersion  *replacement, *previous;  // being loaded to replace it; replaced by it
    ModelVersion  *next;                    // in its slot, newest first
    ModelVersion  *next_detached;           // in registry.detached
    LoaderJob      job;
    char           why[MODEL_VERSION_WHY];
};

typedef struct ModelSlot {
    const char   *name;
    ModelVersion *versions;
} ModelSlot;

typedef struct InternedText {  // a name or version; never freed, since receipts refer to it
    struct InternedText *next;
    char                 text[];
} InternedText;

typedef struct OwnConfig {  // read again for one load request
    struct OwnConfig *next;
    Config            config;
} OwnConfig;

typedef struct LoadGroup LoadGroup;  // see registry_reload.c

struct ModelRegistry {
    struct LoadGroup    *load_groups;  // with callbacks pending
    ModelRegistryOptions o;
    Arena                names;
    InternedText        *interned;
    const Config        *config;
    OwnConfig           *own;
    Loader              *loader;
    ModelSlot            slots[REGISTRY_SLOTS];
    uint32_t             n_slots;
    uint16_t       slot_index[2 * REGISTRY_SLOTS];  // open-addressing hash table: slot + 1, or 0
    ModelVersion  *detached;  // in no slot: replacements, and versions that are being unloaded
    ModelVersion **listed;    // [n_listed] by name and version
    uint32_t       n_listed, cap_listed;
    uint64_t       uses;                         // shape lookups
    LoopPost      *calling;                      // waiters being called
    uint32_t       n_queued, n_begun, n_loaded;  // loads since the loader was last idle
    bool           open;   // registry_create has returned: `changed` is called
    bool           begun;  // the first configuration is loading or loaded
    LoaderJob      quiet;
};

static inline ModelVersion *model_version_of(const ModelInfo *s) {
    return (ModelVersion *)(uintptr_t)s;
}

// registry.c
MUST_USE Err model_slot_take(ModelRegistry *r, const char *name, uint32_t *slot);
ModelSlot   *model_slot_find(ModelRegistry *r, Str name);
MUST_USE Err model_slot_add(ModelVersion *mv);     // adds it to its slot and to `listed`
void         model_slot_remove(ModelVersion *mv);  // accepts one that is not listed
const char  *registry_intern(ModelRegistry *r, const char *text);  // NULL: no memory
void registry_forget_detached(ModelVersion *mv);  // takes it out of `detached`, if it is there

// model_version.c. model_version_open creates it detached; model_version_load starts loading.
MUST_USE Err model_version_open(ModelRegistry *r, const Config *from, const ConfigModel *m,
                                ModelVersion **out);
void         model_version_load(ModelVersion *mv);
void         model_version_retire(ModelVersion *mv);  // no new requests; unloads after the last one
void         model_version_unpinned(ModelVersion *mv);
void         model_version_free(ModelVersion *mv);       // takes its shapes out of the engine
MUST_USE Err model_version_signature(ModelVersion *mv);  // model_signature.c, as the next
void         model_version_set_outputs(ModelVersion *mv, const PreparedModel *s);
uint64_t     model_version_memory_left(const ModelVersion *mv);  // bytes it may still allocate
TimeNs       model_version_target(const ModelVersion *mv, const PreparedModel *s);
void         model_version_update(ModelVersion *mv);      // its memory and target
bool         model_version_busy(const ModelVersion *mv);  // a loader job uses it

void registry_free_unused_configs(ModelRegistry *r);  // registry_reload.c, as the next two
void registry_free_load_groups(ModelRegistry *r);     // without calling back
bool registry_same_settings(const ConfigModel *a, const ConfigModel *b);

// warm_up.c, on the loader's threads. changed: policies have to read its table again.
MUST_USE Err compiled_shape_warm(CompiledShape *cs, bool *changed);

// compiled_shape.c. compile, join and leave run on the loader's threads.
MUST_USE Err compiled_shape_init(ModelVersion *mv);
MUST_USE Err compiled_shape_compile(CompiledShape *cs, const Tensor *shapes);
MUST_USE Err compiled_shape_join(CompiledShape *cs);
void         compiled_shape_leave(CompiledShape *cs);      // leaves the engine, frees its memory
MUST_USE Err registry_set_policy(const ModelRegistry *r);  // for the tenants that have joined
double       compiled_shape_priority(ModelClass c);

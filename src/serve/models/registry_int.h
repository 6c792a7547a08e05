// Internals of the registry: ModelVersions, CompiledShapes (a version compiled for certain input
// shapes, a tenant of the engine) and ShapedPrograms (for smaller shapes, run by such a tenant).
//
// The loop's thread owns everything. While a loader job runs, the job alone uses the version's
// source and the shape's prepared model.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "node/prepared_model.h"
#include "node/prepared_shape.h"
#include "node/version_search.h"
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
    bool               large;    // FAILED: it is too large
    bool               crowded;  // FAILED: other requests held the memory that it needs
    Tensor            *shapes;   // [inputs] shapes it is compiled for
    PreparedModel      prepared;
    bool               is_prepared, joined;
    bool               in_policy;  // the engine's policy has been set up with it
    bool     leaked;   // the policy still refers to it and could not be replaced: never freed
    uint32_t tenant;   // in the engine
    uint32_t running;  // requests using it
    uint64_t used;     // registry.uses at its last use, for LRU eviction
    TimeNs   used_at;
    TimeNs   retry;  // FAILED: compiled again from this time on
    TimeNs   target_ns;
    _Atomic uint64_t      memory_bytes;
    size_t                charged;  // of it to the memory of the model's requests
    uint64_t              limit;    // bytes that one run could have when it was last compiled
    uint64_t              alone;    // the same, had there been no other requests
    uint64_t              needed;   // bytes of one run, as far as known
    size_t                held;     // bytes of the request for which it is compiled
    struct CompiledShape *instead;  // compiled once this one is evicted; NULL: none
    LoopPost             *waiters;
    LoopTimer             desertion;  // while it is compiled without waiters
    WorkFlag              stop;   // it has no waiters: compiling ends. Cleared before the next time
    bool                  begun;  // the loader compiles it
    bool                  calling;  // its waiters are told that it failed
    LoaderJob             job;
    char                  why[MODEL_VERSION_WHY];
} CompiledShape;

typedef enum ShapedProgramState {
    SHAPED_PROGRAM_FREE,
    SHAPED_PROGRAM_MAKING,
    SHAPED_PROGRAM_READY,
    SHAPED_PROGRAM_MISFIT,  // the compiled shape's tenant cannot run it: these shapes need their
                            // own
    SHAPED_PROGRAM_FAILED
} ShapedProgramState;

// A program for shapes that the tenant of a compiled shape runs.
typedef struct ShapedProgram {
    ModelVersion         *owner;
    ShapedProgramState    state;
    CompiledShape        *of;
    Tensor               *shapes;    // [inputs]
    PreparedShape         prepared;  // READY
    bool                  fits;
    uint32_t              running;  // requests using it
    uint64_t              used;     // registry.uses at its last use
    TimeNs                retry;    // FAILED, MISFIT: made again from this time on
    size_t                charged;  // to the memory of the model's requests
    bool                  large;    // FAILED: it is too large
    size_t                lacked;   // FAILED: bytes that other requests held; 0: for other reasons
    LoopPost             *waiters;
    struct ShapedProgram *next;  // in the owner's list of pending ones
    LoaderJob             job;
    char                  why[MODEL_VERSION_WHY];
} ShapedProgram;

// The search for faster versions of one model after another, beside serving. Its job may outlive
// the version: the search has copies of all it needs.
typedef struct ModelTuning {
    ModelVersion *of;      // searched; NULL: it was unloaded, or there is none
    bool          busy;    // the job is with the tuner
    bool          off;     // the server drains
    Loader       *tuner;   // created for the first search
    Arena         memory;  // of the copies
    WorkFlag      stop;
    TimeNs        began;
    VersionSearch search;
    SourceStamp   stamp;
    VersionGain   gain;
    LoaderJob     job;
} ModelTuning;

struct ModelVersion {
    ModelInfo      info;
    ModelRegistry *registry;
    const Config  *from;  // holds info.config
    Arena          arena;
    Source         source;
    SourceStamp    stamp;   // of the loaded file
    CompiledShape *shapes;  // [n_shapes]
    uint32_t       n_shapes;
    ShapedProgram *programs;                // [n_programs]
    ShapedProgram *making;                  // with the shaper now
    ShapedProgram *pending, *last_pending;  // to be made after it
    uint32_t       n_programs;
    Tensor        *bucket;         // [inputs] of shape_bucket
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
    WorkFlag       cancelled;  // while loading
    bool           searched;   // its versions were searched, or are those that a search found
    // Of a version that replaces `previous` because a search found faster versions; else 0.
    TimeNs        search_began;
    double        untuned_ns;      // run time of the previous one alone on one core
    TimeNs        kept_target_ns;  // target of the previous one
    LoadWaiter   *load_waiters;
    ModelVersion *replacement, *previous;  // being loaded to replace it; replaced by it
    ModelVersion *next;                    // in its slot, newest first
    ModelVersion *next_detached;           // in registry.detached
    LoaderJob     job;
    char          why[MODEL_VERSION_WHY];
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
    Loader              *shaper;       // compiles shapes for waiting requests, in milliseconds
    Arena                scratch;      // of the shaper
    pthread_mutex_t      engine_lock;  // held to change the engine's tenants and policy
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
    ModelTuning    tuning;
    LoopTimer      sweep;  // see idle_shapes.c
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
uint64_t     model_version_memory_left(const ModelVersion *mv);    // bytes it may still allocate
uint64_t     model_version_memory_beside(const ModelVersion *mv);  // bytes for another of the model
// Loads it again, to take the versions that a search has stored, and to replace it.
MUST_USE Err model_version_load_tuned(ModelVersion *mv, TimeNs search_began);
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
void         compiled_shape_leave(CompiledShape *cs);  // leaves the engine, frees its memory
void         compiled_shape_cancel(ModelVersion *mv);  // on the loop: those being compiled end
void         compiled_shape_drop(CompiledShape *cs);   // on the loop: one without requests
// The first one made: times of others are scaled from its own. NULL: none.
const CompiledShape *compiled_shape_base(const ModelVersion *mv);
ShapeLookup compiled_shape_find(ModelVersion *mv, const Tensor *inputs, size_t held, LoopPost *when,
                                CompiledShape **out);
bool        compiled_shape_matches(const Tensor *shapes, const Tensor *inputs, uint32_t n);
void        compiled_shape_release(CompiledShape *cs);  // a use has ended
void        registry_wake(ModelRegistry *r, LoopPost **waiters);
bool        registry_unlink(LoopPost **list, const LoopPost *when);
// registry.c, on the loader's threads: one at a time changes the engine.
void registry_lock_engine(ModelRegistry *r);
void registry_unlock_engine(ModelRegistry *r);

// shaped_program.c, on the loop's thread.
MUST_USE Err shaped_program_init(ModelVersion *mv);
void shaped_program_drop(const CompiledShape *cs);  // all that its tenant runs; none is in use

MUST_USE Err registry_set_policy(const ModelRegistry *r);  // for the tenants that have joined
double       compiled_shape_priority(ModelClass c);

// model_tuning.c, on the loop's thread.
double model_tuning_seconds(const ModelVersion *mv, TuneWhen when);  // 0: not then
void   model_tuning_next(ModelRegistry *r);  // starts a search, if none runs and nothing loads
void   model_tuning_stop(const ModelVersion *mv);    // accepts one that is not searched
void   model_tuning_report(const ModelVersion *mv);  // it has replaced the one that was searched
void   model_tuning_report_kept(const ModelVersion *mv, TimeNs began, const char *why, bool failed);
void   model_tuning_finish(ModelRegistry *r);

// idle_shapes.c. On the loop, when a shape that a request brought is ready.
void idle_shapes_watch(ModelRegistry *r);

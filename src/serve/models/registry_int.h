// The registry inside: versions are versions of models, shapes are their programs for certain
// shapes.
//
// The loop's thread owns all of it. While a job is under way the job owns the owner's source and
// the variant's prepared, and nobody else looks at them.
#pragma once

#include <stdatomic.h>

#include "node/prepared_model.h"
#include "serve/models/registry.h"
#include "serve/models/loader.h"

enum { MODEL_VERSION_WHY = 512 };

typedef struct ModelVersion ModelVersion;

typedef struct LoadWaiter {  // who waits for a owner to be loaded or gone
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
    bool               large;   // FAILED: for its size
    Tensor            *shapes;  // [inputs] that it is for
    PreparedModel      prepared;
    bool               is_prepared, joined;
    bool               in_policy;  // some policy knows it
    bool               leaked;     // and may look at it for good: there was no memory for another
    uint32_t           tenant;     // in the engine
    uint32_t           running;    // requests that were told to go there
    uint64_t           used;       // when it was asked for last, by the registry's count
    TimeNs             retry;      // FAILED: it may be tried again
    TimeNs             target_ns;
    _Atomic uint64_t   memory_bytes;
    LoopPost          *waiters;
    LoaderJob          job;
    char               why[MODEL_VERSION_WHY];
} CompiledShape;

struct ModelVersion {
    ModelInfo      info;
    ModelRegistry *registry;
    const Config  *from;  // of info.config
    Arena          arena;
    Source         source;
    SourceStamp    stamp;   // of the file that is served
    CompiledShape *shapes;  // [n_shapes]
    uint32_t       n_shapes;
    CompiledShape *last;           // that a request fitted
    LoopPost      *shape_waiters;  // wait for a variant that nobody uses
    uint32_t       pins, failures;
    bool           loading, leaving;              // a job is under way
    bool           same;                          // the file has a new date, and is the same
    char           previous_sha256[SHA256_TEXT];  // to see that by; "" where settings differ
    ModelSignature signature;                     // of info, once it is ready
    bool           listed;                        // in its slot
    bool           retiring;                      // goes when another version of its name is ready
    bool           unloaded;                      // nobody wants it, but it is still listed
    _Atomic bool   cancelled;                     // given up while it is loaded
    LoadWaiter    *load_waiters;
    ModelVersion  *replacement, *previous;  // loaded to take its place; whose place it takes
    ModelVersion  *next;                    // in its slot, the newest version first
    ModelVersion  *next_detached;           // of those that are in no slot
    LoaderJob      job;
    char           why[MODEL_VERSION_WHY];
};

typedef struct ModelSlot {
    const char   *name;
    ModelVersion *versions;
} ModelSlot;

typedef struct InternedText {  // a name or a version; kept for good, because receipts name it
    struct InternedText *next;
    char                 text[];
} InternedText;

typedef struct OwnConfig {  // read again for one model
    struct OwnConfig *next;
    Config            config;
} OwnConfig;

typedef struct LoadGroup LoadGroup;  // see registry_reload.c

struct ModelRegistry {
    struct LoadGroup    *load_groups;  // that somebody waits for
    ModelRegistryOptions o;
    Arena                names;
    InternedText        *interned;
    const Config        *config;
    OwnConfig           *own;
    Loader              *loader;
    ModelSlot            slots[REGISTRY_SLOTS];
    uint32_t             n_slots;
    uint16_t             slot_index[2 * REGISTRY_SLOTS];  // by hash of the name: slot + 1, or 0
    ModelVersion        *detached;                        // in no slot: heirs, and those that leave
    ModelVersion       **listed;                          // [n_listed] by name and version
    uint32_t             n_listed, cap_listed;
    uint64_t             uses;     // counts fits
    LoopPost            *calling;  // waiters that are being called
    uint32_t             n_ready;
    bool                 open;   // registry_create is over: changes are told
    bool                 begun;  // the first configuration has come
    LoaderJob            hush;
};

static inline ModelVersion *model_version_of(const ModelInfo *s) {
    return (ModelVersion *)(uintptr_t)s;
}

// Seats.
MUST_USE Err model_slot_take(ModelRegistry *r, const char *name, uint32_t *slot);
ModelSlot   *model_slot_find(ModelRegistry *r, Str name);
MUST_USE Err model_slot_add(ModelVersion *mv);                     // lists it
void         model_slot_remove(ModelVersion *mv);                  // accepts who is not listed
const char  *registry_intern(ModelRegistry *r, const char *text);  // NULL: no memory
int          version_compare(const char *a, const char *b);

// Units. Opened in no slot, LOADING; loads once model_version_load is called.
MUST_USE Err model_version_open(ModelRegistry *r, const Config *from, const ConfigModel *m,
                                ModelVersion **out);
void         model_version_load(ModelVersion *mv);
void model_version_retire(ModelVersion *mv);  // no new requests; goes when the last one has gone
void model_version_unpinned(ModelVersion *mv);
void model_version_free(ModelVersion *mv);    // with its shapes out of the engine
void model_version_notify(ModelVersion *mv);  // its state has changed
void model_version_complete(ModelVersion *mv, const char *why);  // calls its load_waiters
MUST_USE Err model_version_signature(ModelVersion *mv);          // what it takes and gives
void         model_version_set_outputs(ModelVersion *mv, const PreparedModel *s);
uint64_t     model_version_memory_left(const ModelVersion *mv);  // bytes that it may still ask for
TimeNs       model_version_target(const ModelVersion *mv, const PreparedModel *s);
void         model_version_update(ModelVersion *mv);      // its memory, target
bool         model_version_busy(const ModelVersion *mv);  // a job looks at it

void registry_free_unused_configs(ModelRegistry *r);  // that nobody uses
bool registry_same_settings(const ConfigModel *a, const ConfigModel *b);

// Variants. make and settle are the loader's.
MUST_USE Err compiled_shape_init(ModelVersion *mv);
MUST_USE Err compiled_shape_compile(CompiledShape *cs, const Tensor *shapes);
MUST_USE Err compiled_shape_join(CompiledShape *cs);
void         compiled_shape_leave(CompiledShape *cs);  // out of the engine, its memory given back
void         compiled_shape_wake(CompiledShape *cs);   // whoever waited asks again
void         registry_free_load_groups(ModelRegistry *r);  // nobody is told

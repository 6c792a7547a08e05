// The fleet inside: units are versions of models, variants are their programs for certain shapes.
//
// The loop's thread owns all of it. While a job is under way the job owns the unit's source and the
// variant's stage, and nobody else looks at them.
#pragma once

#include <stdatomic.h>

#include "node/stage.h"
#include "serve/fleet.h"
#include "serve/loader.h"

enum { UNIT_WHY = 512 };

typedef struct Unit Unit;

typedef struct Caller {  // who waits for a unit to be loaded or gone
    struct Caller *next;
    void (*done)(void *self, const char *why);
    void *self;
} Caller;

typedef enum VariantState {
    VARIANT_FREE,
    VARIANT_MAKING,
    VARIANT_READY,
    VARIANT_FAILED
} VariantState;

typedef struct Variant {
    Unit            *unit;
    VariantState     state;
    bool             large;   // FAILED: for its size
    Tensor          *shapes;  // [inputs] that it is for
    Stage            stage;
    bool             staged, joined;
    bool             governed;  // some policy knows it
    bool             lost;      // and may look at it for good: there was no memory for another
    uint32_t         tenant;    // in the engine
    uint32_t         running;   // requests that were told to go there
    uint64_t         used;      // when it was asked for last, by the fleet's count
    TimeNs           retry;     // FAILED: it may be tried again
    TimeNs           target_ns;
    _Atomic uint64_t memory_bytes;
    LoopPost        *waiters;
    LoaderJob        job;
    char             why[UNIT_WHY];
} Variant;

struct Unit {
    Served        pub;
    Fleet        *fleet;
    const Config *from;  // of pub.config
    Arena         arena;
    Source        source;
    SourceStamp   stamp;     // of the file that is served
    Variant      *variants;  // [n_variants]
    uint32_t      n_variants;
    Variant      *last;     // that a request fitted
    LoopPost     *starved;  // wait for a variant that nobody uses
    uint32_t      pins, failures;
    bool          loading, leaving;           // a job is under way
    bool          same;                       // the file has a new date, and is the same
    char          elder_sha256[SHA256_TEXT];  // to see that by; "" where settings differ
    InferPort     port;                       // of pub, once it is ready
    bool          listed;                     // in its seat
    bool          doomed;                     // goes when another version of its name is ready
    bool          unloaded;                   // nobody wants it, but it is still listed
    _Atomic bool  unwanted;                   // given up while it is loaded
    Caller       *callers;
    Unit         *heir, *elder;  // loaded to take its place; whose place it takes
    Unit         *next;          // in its seat, the newest version first
    Unit         *next_out;      // of those that are in no seat
    LoaderJob     job;
    char          why[UNIT_WHY];
};

typedef struct Seat {
    const char *name;
    Unit       *units;
} Seat;

typedef struct Word {  // a name or a version; kept for good, because receipts name it
    struct Word *next;
    char         text[];
} Word;

typedef struct OwnConfig {  // read again for one model
    struct OwnConfig *next;
    Config            config;
} OwnConfig;

typedef struct Batch Batch;  // see fleet_reload.c

struct Fleet {
    struct Batch *batches;  // that somebody waits for
    FleetOptions  o;
    Arena         names;
    Word         *words;
    const Config *config;
    OwnConfig    *own;
    Loader       *loader;
    Seat          seats[FLEET_SEATS];
    uint32_t      n_seats;
    uint16_t      places[2 * FLEET_SEATS];  // by hash of the name: seat + 1, or 0
    Unit         *out;                      // in no seat: heirs, and those that leave
    Unit        **listed;                   // [n_listed] by name and version
    uint32_t      n_listed, cap_listed;
    uint64_t      uses;     // counts fits
    LoopPost     *calling;  // waiters that are being called
    uint32_t      n_ready;
    bool          open;   // fleet_create is over: changes are told
    bool          begun;  // the first configuration has come
    LoaderJob     hush;
};

static inline Unit *unit_of(const Served *s) { return (Unit *)(uintptr_t)s; }

// Seats.
MUST_USE Err seat_take(Fleet *f, const char *name, uint32_t *seat);
Seat        *seat_find(Fleet *f, Str name);
MUST_USE Err seat_add(Unit *u);                        // lists it
void         seat_remove(Unit *u);                     // accepts who is not listed
const char  *seat_intern(Fleet *f, const char *text);  // NULL: no memory
int          version_compare(const char *a, const char *b);

// Units. Opened in no seat, LOADING; loads once unit_bring is called.
MUST_USE Err unit_open(Fleet *f, const Config *from, const ConfigModel *m, Unit **out);
void         unit_bring(Unit *u);
void         unit_retire(Unit *u);  // no new requests; goes when the last one has gone
void         unit_unpinned(Unit *u);
void         unit_free(Unit *u);                     // with its variants out of the engine
void         unit_tell(Unit *u);                     // its state has changed
void         unit_answer(Unit *u, const char *why);  // calls its callers
MUST_USE Err unit_port(Unit *u);                     // what it takes and gives
void         unit_port_outputs(Unit *u, const Stage *s);
uint64_t     unit_room(const Unit *u);  // bytes that it may still ask for
TimeNs       unit_target(const Unit *u, const Stage *s);
void         unit_measure(Unit *u);     // its memory, target
bool         unit_busy(const Unit *u);  // a job looks at it

void fleet_forget_configs(Fleet *f);  // that nobody uses
bool fleet_same_settings(const ConfigModel *a, const ConfigModel *b);

// Variants. make and settle are the loader's.
MUST_USE Err variant_init(Unit *u);
MUST_USE Err variant_stage(Variant *v, const Tensor *shapes);
MUST_USE Err variant_join(Variant *v);
void         variant_leave(Variant *v);       // out of the engine, its memory given back
void         variant_wake(Variant *v);        // whoever waited asks again
void         fleet_forget_batches(Fleet *f);  // nobody is told

// Fleet: the models of a server: loaded, warmed, swapped and unloaded while others are served.
//
// Everything here is called on the loop's thread; a loader thread works behind it and reports
// through the loop.
#pragma once

#include "net/loop.h"
#include "node/node_live.h"
#include "serve/config.h"
#include "serve/infer.h"

enum { FLEET_SEATS = 1024 };  // model names ever seen; metrics have a row for each

typedef enum FleetState {
    FLEET_LOADING,
    FLEET_READY,
    FLEET_UNLOADING,
    FLEET_UNAVAILABLE
} FleetState;

typedef struct Served {  // one version of a model; pinned while requests use it
    const char        *name, *version;
    uint32_t           seat;  // of its name: stays while versions come and go
    const ConfigModel *config;
    InferPort          port;
    TimeNs             target_ns;
    FleetState         state;
    const char        *reason;        // UNAVAILABLE: why; READY: why a newer file is not
    TimeNs             quarantined;   // until then; 0: it is not
    uint64_t           memory_bytes;  // weights, places, tables
    char               sha256[65];    // of the file; "" for the zoo
} Served;

typedef struct Fleet Fleet;

typedef struct FleetOptions {
    Loop             *loop;
    NodeLive         *engine;
    struct Host      *host;
    const Config     *config;  // outlives the fleet
    const NodePolicy *policy;
    const void       *policy_settings;
    void (*changed)(void *self, const Served *s);  // its state; NULL: nobody cares
    void *self;
} FleetOptions;

MUST_USE Err fleet_create(Fleet **out, const FleetOptions *o);
void         fleet_destroy(Fleet *f);  // accepts NULL; when no request is on its way
// Loads what the configuration names and unloads what it does not; a model whose file and settings
// are the same stays. What fails keeps the version that is served. done is called at the end, maybe
// before this returns. c stays where it is while fleet_uses says so.
void fleet_reload(Fleet *f, const Config *c, void (*done)(void *self, uint32_t failed), void *self);
// One model by name, as the configuration or its folder has it now. done(self, NULL) or the reason.
void fleet_load(Fleet *f, const char *name, void (*done)(void *self, const char *why), void *self);
void fleet_unload(Fleet *f, const char *name, void (*done)(void *self, const char *why),
                  void *self);

// Whether this is the configuration at hand, or some version is served by it yet.
bool fleet_uses(const Fleet *f, const Config *c);

bool fleet_ready(const Fleet *f);  // all that are required

// The version named, or the newest that is ready (version.at NULL), or else the newest: look at its
// state. NULL: there is none such.
Served *fleet_find(Fleet *f, Str name, Str version);
void    fleet_pin(Served *s);
void    fleet_release(Fleet *f, Served *s);
// All versions known, ready or not, by name and version.
uint32_t      fleet_count(const Fleet *f);
const Served *fleet_at(const Fleet *f, uint32_t i);

typedef enum FleetFit { FLEET_FITS, FLEET_LATER, FLEET_NEVER, FLEET_LARGE } FleetFit;

// The engine's tenant that computes these inputs. LATER: it is being compiled, when->run is posted
// once that has ended and then to be asked again. NEVER: err_why says why.
FleetFit fleet_fit(Fleet *f, Served *s, const Tensor *inputs, LoopPost *when, uint32_t *tenant);
void     fleet_forget_wait(Fleet *f, Served *s, LoopPost *when);  // its request has gone
// Once for each FLEET_FITS: the engine has answered, or nothing was submitted. Shapes that nobody
// uses make room for others.
void fleet_done(Fleet *f, Served *s, uint32_t tenant);
// Of requests that this tenant computes: a relative target is of their own shape.
TimeNs fleet_target_ns(const Served *s, uint32_t tenant);

// After each request that was computed: failures in a row lead to quarantine.
void     fleet_note(Fleet *f, Served *s, bool failed);
uint64_t fleet_estimate_ns(const Served *s);  // alone, on all cores

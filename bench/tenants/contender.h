// Contender: one way of serving several networks in one process, opened once, then tried with the
// same arrivals as all others.
#pragma once

#include "base/clock.h"
#include "bench/ort/network.h"
#include "node/mix.h"
#include "sim/arrivals.h"

typedef struct ContenderOptions {
    const char *lib;           // ONNX Runtime's shared library
    const char *store;         // of our profiles; NULL: in the cache directory
    double      tune_seconds;  // per network without stored versions
    const char *files[MIX_TENANTS], *names[MIX_TENANTS];
    int64_t     longest[MIX_TENANTS];  // of an open dimension: lengths are drawn; 0: has none
    uint32_t    n;
} ContenderOptions;

typedef struct Trial {
    double   rate;
    uint64_t seed;
    uint32_t n, skip;  // requests, and warm-up requests that are not counted
    TimeNs   qos_ns[MIX_TENANTS];
} Trial;

// Length of a request's open dimension, 1 to longest: the same for all contenders.
int64_t trial_length(const Trial *t, uint32_t request, int64_t longest);

typedef struct RequestOutcome {  // outcome of a request
    TimeNs   arrival, finish;
    uint32_t tenant;
    bool     answered;
} RequestOutcome;

typedef struct Tally {
    uint32_t n, met;
    uint32_t tenant_n[MIX_TENANTS], tenant_met[MIX_TENANTS];
    double   mean_ms, p99_ms;  // of answered requests
    double   conflict_rate;
    double   core_use;  // CPU time of the process, of all cores
} Tally;

typedef struct Contender {
    const char *name;
    int         option;  // distinguishes contenders of one kind
    // Loads everything; *state lives in the arena or until the process exits.
    Err (*open)(const struct Contender *c, const ContenderOptions *t, Arena *a, void **state);
    Err (*alone)(void *state, uint32_t tenant, TimeNs *took);  // one run, at the longest length
    // Fills served[arrivals.n].
    Err (*serve)(void *state, const Trial *trial, const Arrivals *arrivals, Arena *a,
                 RequestOutcome *served, double *conflict_rate);
} Contender;

extern const Contender contenders[];  // ends with a name of NULL
const Contender       *contender_find(const char *name);

Err ours_open(const Contender *c, const ContenderOptions *t, Arena *a, void **state);
Err ours_alone(void *state, uint32_t tenant, TimeNs *took);
Err ours_serve(void *state, const Trial *trial, const Arrivals *arrivals, Arena *a,
               RequestOutcome *served, double *conflict_rate);
Err ort_open(const Contender *c, const ContenderOptions *t, Arena *a, void **state);
Err ort_alone(void *state, uint32_t tenant, TimeNs *took);
Err ort_serve(void *state, const Trial *trial, const Arrivals *arrivals, Arena *a,
              RequestOutcome *served, double *conflict_rate);

// Warm-up of a compiled shape in the engine, before it is served: runs with random inputs, and for
// short models the choice of core counts.
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sync.h"
#include "serve/models/registry_int.h"

#define WARM_MOST  INT64_C(5000000000)   // limit for all warm-up runs of a shape
#define WARM_BRIEF INT64_C(500000000)    // the same for a shape that a request brought
#define WARM_EACH  INT64_C(60000000000)  // deadline of a warm-up run: none

enum { SUBMIT_PAUSE_US = 1000 };
enum { TRY_RUNS = 12, TRY_NS = 2000000, TRY_MOST_NS = 250000000 };

typedef struct Warm {
    _Atomic uint32_t released;
    LiveEnd          end;
    LiveTiming       timing;
} Warm;

static void warmed(void *self, const EngineResult *a) {
    Warm *w = self;
    w->end = a->end;
    w->timing = a->timing;
}

static void released(void *self) {
    Warm *w = self;
    atomic_store(&w->released, 1);
    futex_wake(&w->released, 1);
}

// Within the memory of a request. cores 0: as the policy decides.
static Warm warm_once(CompiledShape *cs, TimeNs until, uint32_t cores) {
    NodeLive     *l = cs->owner->registry->o.engine;
    Warm          w = {.end = LIVE_DONE};
    TimeNs        t = clock_monotonic_ns();
    Budget        memory = {.setting = "request_mb",
                            .whole = &cs->owner->info.memory,
                            .most = (size_t)cs->owner->info.config->set.request_mb << 20};
    EngineRequest request = {.tenant = cs->tenant,
                             .arrival = t,
                             .deadline = t + WARM_EACH,
                             .expire = until,
                             .on_miss = ON_MISS_SERVE_LATE,
                             .cores = cores,
                             .budget = &memory,
                             .done = warmed,
                             .released = released,
                             .self = &w};
    while (!node_live_submit(l, &request)) {
        if (clock_monotonic_ns() > until) return (Warm){.end = LIVE_FULL};
        (void)usleep(SUBMIT_PAUSE_US);
    }
    while (atomic_load(&w.released) == 0) futex_wait(&w.released, 0);
    if (w.end == LIVE_DONE) atomic_store_explicit(&cs->owner->worked, true, memory_order_relaxed);
    return w;
}

// The least time of several runs is that of a quiet machine; how busy cores slow blocks down is
// learned while serving. 0: no run had so many cores.
static void try_cores(CompiledShape *cs, TimeNs until, uint32_t cores, double *least) {
    Warm w = warm_once(cs, until, cores);
    bool had = w.end == LIVE_DONE && w.timing.cores_least == cores && w.timing.cores_most == cores;
    double ns = (double)w.timing.compute_ns;
    if (had && (*least == 0 || ns < *least)) *least = ns;
}

typedef struct TableChange {
    PreparedModel *prepared;
    const double  *ns;
} TableChange;

static void correct_table(void *self) {
    const TableChange *c = self;
    prepared_model_correct(c->prepared, c->ns);
}

// Each core count in turn, so that a disturbance hits all of them: 1, 2, 4 ... and all cores.
static void run_in_turns(CompiledShape *cs, TimeNs until, double *ns) {
    const Host *h = cs->owner->registry->o.host;
    for (uint32_t i = 0; i < TRY_RUNS && clock_monotonic_ns() < until; i++)
        for (uint32_t k = 0; k < h->n_counts; k++) {
            bool power = (h->counts[k] & (h->counts[k] - 1)) == 0;
            if (power || k + 1 == h->n_counts) try_cores(cs, until, h->counts[k], &ns[k]);
        }
}

// Starting and joining more cores costs microseconds, which a model's table does not know. Models
// that take longer do not depend on it.
static bool measure_cores(CompiledShape *cs) {
    double      ns[PROFILE_COUNTS] = {0};
    TableChange change = {&cs->prepared, ns};
    uint32_t    before = prepared_model_cores(&cs->prepared);
    const Host *h = cs->owner->registry->o.host;
    if (h->n_counts < 2 || cs->prepared.solo_ns[0] > TRY_NS) return false;
    run_in_turns(cs, clock_monotonic_ns() + TRY_MOST_NS, ns);
    node_live_change_table(cs->owner->registry->o.engine, correct_table, &change);
    return prepared_model_cores(&cs->prepared) != before;
}

// Random inputs may make a layer fail, but every run has to end. A single stuck run may be the
// machine's fault, so it is repeated once.
Err compiled_shape_warm(CompiledShape *cs, bool *changed) {
    TimeNs until = clock_monotonic_ns() + (cs->owner->loading ? WARM_MOST : WARM_BRIEF);
    int    runs = cs->owner->info.config->set.warmup;
    for (int i = 0; i < runs && clock_monotonic_ns() < until; i++)
        if (warm_once(cs, until, 0).end == LIVE_STUCK && warm_once(cs, 0, 0).end == LIVE_STUCK)
            return err_set(ERR_LIMIT, "a run with random inputs exceeded `watchdog_ms`");
    *changed = runs > 0 && measure_cores(cs);
    return ERR_OK;
}

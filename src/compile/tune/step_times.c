// Measures whole runs, so that caches hold what they hold in service. Run i uses version i of each
// step that has so many versions, else version 0.
#include "compile/tune/step_times.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sync.h"
#include "base/work_stop.h"
#include "compile/tune/stopwatch.h"

enum { BARRIER_NS = 1000, LOOK_NS = 20000000 };

typedef struct StepTimes {
    Program                *program;
    const StepTimesOptions *o;
    Team                   *team;
    RunMemory               mem;
    Tensor                 *outputs;
    uint32_t                version;  // of the current run
    uint32_t                runs;     // finished, of each version and core count
    TimeNs                 *now;      // times of the current run
    TimeNs                 *times;    // [versions][counts][runs][steps]
    _Atomic uint32_t        over;     // no run is in progress any more
    _Atomic bool            late;     // runs were stopped
} StepTimes;

// CPU time of the thread if co-runners may preempt it, else wall time.
static TimeNs read_clock(const StepTimes *w) {
    return w->o->extrapolate ? stopwatch_cpu_time() : clock_now(clock_monotonic());
}

// Time of the interpreted tail is added to the last step. If it fails on the given inputs, it is
// not counted.
static void run_tail(StepTimes *w, TimeNs last) {
    const Program *p = w->program;
    if (program_layer_count(p) == p->n_steps || p->n_steps == 0 || w->mem.failed != ERR_OK) return;
    program_run_layer(p, &w->mem, p->n_steps, 0, 0, 1, w->outputs);
    if (w->mem.failed == ERR_OK) w->now[p->n_steps - 1] += read_clock(w) - last;
    w->mem.failed = ERR_OK;
}

static void run_part(void *ctx, uint32_t index, uint32_t count) {
    StepTimes     *w = ctx;
    const Program *p = w->program;
    TimeNs         last = index == 0 ? read_clock(w) : 0;

    WorkFlag *before = work_stop_watch(run_memory_stop_flag(&w->mem));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        uint32_t v = w->version < p->steps[i].n_versions ? w->version : 0;
        program_run_layer(p, &w->mem, i, v, index, count, w->outputs);
        bool alone = p->steps[i].serial && i + 1 < p->n_steps && p->steps[i + 1].serial;
        if (count > 1 && !alone) team_barrier(w->team);
        if (index != 0) continue;
        TimeNs t = read_clock(w);
        w->now[i] = t - last;
        last = t;
    }
    if (index == 0) run_tail(w, last);
    (void)work_stop_watch(before);
}

static void run_once(StepTimes *w, uint32_t v, uint32_t k, uint32_t r) {
    size_t at = ((size_t)v * w->o->n_counts + k) * w->o->runs + r;
    w->version = v;
    w->now = w->times + at * w->program->n_steps;
    program_begin(w->program, &w->mem, w->o->inputs);
    team_run_some(w->team, w->o->counts[k], run_part, w);
}

static int by_time(const void *x, const void *y) {
    const TimeNs a = *(const TimeNs *)x, b = *(const TimeNs *)y;
    return a < b ? -1 : a > b;
}

// Lower quartile: slower samples contain interference.
static TimeNs lower_quartile(const StepTimes *w, size_t first, uint32_t step, TimeNs *sorted) {
    uint32_t n = w->runs;
    for (uint32_t r = 0; r < n; r++) sorted[r] = w->times[(first + r) * w->program->n_steps + step];
    qsort(sorted, n, sizeof *sorted, by_time);
    TimeNs t = sorted[(n - 1) / 4];
    return t > 0 ? t : 1;
}

static void keep_times(const StepTimes *w, uint32_t v, uint32_t k, TimeNs *sorted, TimeNs *light) {
    size_t first = ((size_t)v * w->o->n_counts + k) * w->o->runs;
    for (uint32_t i = 0; i < w->program->n_steps; i++) {
        const Step *s = &w->program->steps[i];
        TimeNs      t = lower_quartile(w, first, i, sorted);
        if (s->key == NULL && v == 0) light[i * w->o->n_counts + k] = t;
        if (s->key != NULL && v < s->n_versions) s->profile->candidates[v].time_ns[k] = t;
    }
}

// Time on `cores` cores: tasks of the busiest core.
static TimeNs extrapolated(const Step *s, uint32_t version, TimeNs one, uint32_t cores) {
    uint32_t tasks = s->kind->tasks(s, &s->versions[version]);
    if (tasks <= 1 || s->serial) return one;
    uint32_t most = (tasks + cores - 1) / cores;
    return 1 + one * most / tasks + BARRIER_NS;
}

static void extrapolate(const Program *p, const StepTimesOptions *o, TimeNs *light) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        for (uint32_t k = 1; k < o->n_counts; k++) {
            TimeNs *row = &light[i * o->n_counts];
            if (s->key == NULL) row[k] = extrapolated(s, 0, row[0], o->counts[k]);
            for (uint32_t v = 0; s->key != NULL && v < s->n_versions; v++) {
                TimeNs *t = s->profile->candidates[v].time_ns;
                t[k] = extrapolated(s, v, t[0], o->counts[k]);
            }
        }
    }
}

// A profile of the step's versions without times.
static Err make_profile(const Program *p, Step *s, const uint32_t *counts, uint32_t n_counts,
                        Arena *a) {
    LayerProfile *f = arena_try_new(a, LayerProfile, 1);
    if (f == NULL) return err_set(ERR_LIMIT, "no memory for a profile");
    *f = (LayerProfile){.n_counts = n_counts, .n_kept = s->n_versions, .n = s->n_versions};
    f->candidates = arena_try_new(a, Candidate, f->n);
    if (f->candidates == NULL) return err_set(ERR_LIMIT, "no memory for a profile");
    memcpy(f->counts, counts, n_counts * sizeof *counts);
    for (uint32_t v = 0; v < s->n_versions; v++) {
        const Version *version = &s->versions[v];
        f->kept[v] = v;
        f->candidates[v] = (Candidate){.version = *version, .tasks = s->kind->tasks(s, version)};
        f->candidates[v].traffic = s->kind->traffic(s, version, &p->caches, counts[n_counts - 1]);
    }
    s->profile = f;
    return ERR_OK;
}

static uint32_t most_versions(const Program *p) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].n_versions > most) most = p->steps[i].n_versions;
    return most;
}

static bool cancelled(const StepTimes *w) { return w->o->stop != NULL && atomic_load(w->o->stop); }
static bool stopped(const StepTimes *w) { return atomic_load(&w->late) || cancelled(w); }

// Ends a run that takes too long: a layer may take minutes. A new run clears its flag, so that it
// is set again until all are over.
static void *end_in_time(void *self) {
    StepTimes *w = self;
    TimeNs     until = clock_now(clock_monotonic()) + w->o->most_ns;
    while (atomic_load(&w->over) == 0) {
        if (clock_now(clock_monotonic()) > until) atomic_store(&w->late, true);
        if (stopped(w)) work_stop_tell(&w->mem.stop, WORK_STOP);
        futex_wait_for(&w->over, 0, LOOK_NS);
    }
    return NULL;
}

// Versions in turns, so that a disturbance affects a few samples of each instead of all of one.
static void measure_all(StepTimes *w, uint32_t versions, uint32_t counts) {
    TimeNs began = clock_now(clock_monotonic()), most = w->o->most_ns;
    run_once(w, 0, 0, 0);  // warm-up: page faults
    for (uint32_t r = 0; r < w->o->runs; r++) {
        if (r > 0 && most > 0 && clock_now(clock_monotonic()) - began > most) break;
        for (uint32_t v = 0; v < versions && !stopped(w); v++)
            for (uint32_t k = 0; k < counts; k++) run_once(w, v, k, r);
        if (stopped(w)) return;
        w->runs = r + 1;
    }
}

static void measure_in_time(StepTimes *w, uint32_t versions, uint32_t counts) {
    pthread_t timer;
    bool      timed = w->o->most_ns > 0 && pthread_create(&timer, NULL, end_in_time, w) == 0;
    measure_all(w, versions, counts);
    if (!timed) return;
    atomic_store(&w->over, 1);
    futex_wake(&w->over, 1);
    (void)pthread_join(timer, NULL);
}

static Err measure(StepTimes *w, Arena *a, TimeNs *light) {
    const StepTimesOptions *o = w->o;
    uint32_t versions = most_versions(w->program), counts = o->extrapolate ? 1 : o->n_counts;
    size_t   mark = a->used, n = (size_t)versions * o->n_counts * o->runs;
    TimeNs  *sorted = arena_try_new(a, TimeNs, o->runs);
    w->times = arena_try_new(a, TimeNs, n * w->program->n_steps);
    w->outputs = arena_try_new(a, Tensor, w->program->shaped->graph->n_outputs);
    if (sorted == NULL || w->times == NULL || w->outputs == NULL)
        return err_set(ERR_LIMIT, "no memory for %u runs", o->runs);
    measure_in_time(w, versions, counts);
    if (cancelled(w) || (stopped(w) && w->runs == 0))
        return err_set(ERR_LIMIT, "measuring was stopped");
    for (uint32_t v = 0; v < versions; v++)
        for (uint32_t k = 0; k < counts; k++) keep_times(w, v, k, sorted, light);
    arena_rewind(a, mark);
    return w->mem.failed == ERR_OK || stopped(w) ? ERR_OK
                                                 : err_set(w->mem.failed, "%s", w->mem.why);
}

Err step_times_measure(Program *p, Team *team, const StepTimesOptions *o, Arena *a,
                       TimeNs **light_ns) {
    StepTimes w = {.program = p, .o = o, .team = team};
    CHECK(o->runs > 0 && o->n_counts > 0 && o->counts[0] == 1);
    CHECK(o->extrapolate || o->counts[o->n_counts - 1] <= team_size(team));
    TimeNs *light = arena_try_new(a, TimeNs, (size_t)p->n_steps * o->n_counts);
    if (light == NULL) return err_set(ERR_LIMIT, "no memory for %u steps", p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].key != NULL) TRY(make_profile(p, &p->steps[i], o->counts, o->n_counts, a));
    TRY(run_memory_init(&w.mem, p, team_size(team)));
    if (!o->extrapolate) team_pin(team);
    Err e = measure(&w, a, light);
    team_unpin(team);
    if (o->extrapolate) extrapolate(p, o, light);
    run_memory_finish(&w.mem);
    if (e == ERR_OK) *light_ns = light;
    return e;
}

enum { RUNS = 5 };

typedef struct UntunedStep {
    const Step *step;
    RunMemory  *mem;
} UntunedStep;

static void run(void *self, const Version *v, Part part) {
    const UntunedStep *p = self;
    StepCall           c = {p->step, v, p->mem, part, 0};
    p->step->kind->run(&c);
}

static void measure_step(Step *s, Stopwatch *w, RunMemory *mem) {
    UntunedStep         self = {s, mem};
    StopwatchWork       work = {.run = run, .self = &self, .version = &s->versions[0]};
    const LayerProfile *p = s->profile;
    TimeNs             *time_ns = p->candidates[0].time_ns;
    for (uint32_t k = 0; k < p->n_counts; k++)
        for (int i = 0; i < RUNS; i++) {
            bool   clean;
            TimeNs t = stopwatch_run(w, work, p->counts[k], &clean);
            if (time_ns[k] == 0 || (clean && t < time_ns[k])) time_ns[k] = t;
        }
}

static Err measure_missing(Program *p, Stopwatch *w, RunMemory *mem, const uint32_t *counts,
                           uint32_t n, Arena *a) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step *s = &p->steps[i];
        if (s->key == NULL || s->profile != NULL) continue;
        TRY(make_profile(p, s, counts, n, a));
        measure_step(s, w, mem);
    }
    return ERR_OK;
}

Err step_times_measure_missing(Program *p, Team *team, const uint32_t *counts, uint32_t n,
                               Arena *a) {
    Stopwatch *w = NULL;
    RunMemory  mem;
    TRY(run_memory_init(&mem, p, team_size(team)));
    Err e = run_memory_zero_inputs(&mem, p, a);
    if (e == ERR_OK) e = stopwatch_create(&w, team, program_scratch(p) + 64, p->caches.l2, 0);
    if (e == ERR_OK) e = measure_missing(p, w, &mem, counts, n, a);
    stopwatch_destroy(w);
    run_memory_finish(&mem);
    return e;
}

// Whole runs, because caches are then filled as they will be. A run is one version of every step:
// the i-th where there are so many, else the first.
#include "compile/laps.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"

enum { BARRIER_NS = 1000 };

typedef struct Laps {
    Program           *program;
    const LapsOptions *o;
    Team              *team;
    Space              space;
    Tensor            *outputs;
    uint32_t           version;  // of the run at hand
    uint32_t           runs;     // so far, of each
    TimeNs            *now;      // its laps
    TimeNs            *laps;     // [versions][counts][runs][steps]
} Laps;

// Beside others only the thread's own time means anything.
static TimeNs look(const Laps *w) {
    struct timespec t;
    if (!w->o->reckon) return clock_now(clock_steady());
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

// What the interpreter does behind the last step counts as that step's. Numbers at random may not
// please it: then it is left out.
static void run_rest(Laps *w, TimeNs last) {
    const Program *p = w->program;
    if (program_layers(p) == p->n_steps || p->n_steps == 0 || w->space.failed != ERR_OK) return;
    program_layer(p, &w->space, p->n_steps, 0, 0, 1, w->outputs);
    if (w->space.failed == ERR_OK) w->now[p->n_steps - 1] += look(w) - last;
    w->space.failed = ERR_OK;
}

static void run_part(void *ctx, uint32_t index, uint32_t count) {
    Laps          *w = ctx;
    const Program *p = w->program;
    TimeNs         last = index == 0 ? look(w) : 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        uint32_t v = w->version < p->steps[i].n_versions ? w->version : 0;
        program_layer(p, &w->space, i, v, index, count, w->outputs);
        bool alone = p->steps[i].solo && i + 1 < p->n_steps && p->steps[i + 1].solo;
        if (count > 1 && !alone) team_barrier(w->team);
        if (index != 0) continue;
        TimeNs t = look(w);
        w->now[i] = t - last;
        last = t;
    }
    if (index == 0) run_rest(w, last);
}

static void run_once(Laps *w, uint32_t v, uint32_t k, uint32_t r) {
    size_t at = ((size_t)v * w->o->n_counts + k) * w->o->runs + r;
    w->version = v;
    w->now = w->laps + at * w->program->n_steps;
    program_begin(w->program, &w->space, w->o->inputs);
    team_run_some(w->team, w->o->counts[k], run_part, w);
}

static int by_time(const void *x, const void *y) {
    const TimeNs a = *(const TimeNs *)x, b = *(const TimeNs *)y;
    return a < b ? -1 : a > b;
}

// The lower quartile of a step's own laps: what slower ones have more was not its own.
static TimeNs lap_of(const Laps *w, size_t first, uint32_t step, TimeNs *sorted) {
    uint32_t n = w->runs;
    for (uint32_t r = 0; r < n; r++) sorted[r] = w->laps[(first + r) * w->program->n_steps + step];
    qsort(sorted, n, sizeof *sorted, by_time);
    TimeNs t = sorted[(n - 1) / 4];
    return t > 0 ? t : 1;
}

static void keep_laps(const Laps *w, uint32_t v, uint32_t k, TimeNs *sorted, TimeNs *light) {
    size_t first = ((size_t)v * w->o->n_counts + k) * w->o->runs;
    for (uint32_t i = 0; i < w->program->n_steps; i++) {
        const Step *s = &w->program->steps[i];
        TimeNs      t = lap_of(w, first, i, sorted);
        if (s->key == NULL && v == 0) light[i * w->o->n_counts + k] = t;
        if (s->key != NULL && v < s->n_versions) s->profile->candidates[v].time_ns[k] = t;
    }
}

// On more cores than were measured: the tasks of the fullest core.
static TimeNs reckoned(const Step *s, uint32_t version, TimeNs one, uint32_t cores) {
    uint32_t tasks = s->kind->tasks(s, &s->versions[version]);
    if (tasks <= 1 || s->solo) return one;
    uint32_t most = (tasks + cores - 1) / cores;
    return 1 + one * most / tasks + BARRIER_NS;
}

static void reckon(const Program *p, const LapsOptions *o, TimeNs *light) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        for (uint32_t k = 1; k < o->n_counts; k++) {
            TimeNs *row = &light[i * o->n_counts];
            if (s->key == NULL) row[k] = reckoned(s, 0, row[0], o->counts[k]);
            for (uint32_t v = 0; s->key != NULL && v < s->n_versions; v++) {
                TimeNs *t = s->profile->candidates[v].time_ns;
                t[k] = reckoned(s, v, t[0], o->counts[k]);
            }
        }
    }
}

static Err make_profile(const Program *p, Step *s, const LapsOptions *o, Arena *a) {
    Profile *f = arena_try_new(a, Profile, 1);
    if (f == NULL) return err_set(ERR_LIMIT, "no memory for a profile");
    *f = (Profile){.n_counts = o->n_counts, .n_kept = s->n_versions, .n = s->n_versions};
    f->candidates = arena_try_new(a, Candidate, f->n);
    if (f->candidates == NULL) return err_set(ERR_LIMIT, "no memory for a profile");
    memcpy(f->counts, o->counts, sizeof f->counts);
    for (uint32_t v = 0; v < s->n_versions; v++) {
        const Version *version = &s->versions[v];
        f->kept[v] = v;
        f->candidates[v] = (Candidate){.version = *version, .tasks = s->kind->tasks(s, version)};
        f->candidates[v].traffic =
            s->kind->traffic(s, version, &p->caches, o->counts[o->n_counts - 1]);
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

static bool stopped(const Laps *w) { return w->o->stop != NULL && atomic_load(w->o->stop); }

// In turns, so that a bad moment of the machine spoils a little of each rather than all of one.
static void measure_all(Laps *w, uint32_t versions, uint32_t counts) {
    TimeNs began = clock_now(clock_steady()), most = w->o->most_ns;
    run_once(w, 0, 0, 0);  // touches what the first run would
    for (uint32_t r = 0; r < w->o->runs; r++) {
        if (r > 0 && most > 0 && clock_now(clock_steady()) - began > most) break;
        for (uint32_t v = 0; v < versions && !stopped(w); v++)
            for (uint32_t k = 0; k < counts; k++) run_once(w, v, k, r);
        if (stopped(w)) return;
        w->runs = r + 1;
    }
}

static Err measure(Laps *w, Arena *a, TimeNs *light) {
    const LapsOptions *o = w->o;
    uint32_t           versions = most_versions(w->program), counts = o->reckon ? 1 : o->n_counts;
    size_t             mark = a->used, n = (size_t)versions * o->n_counts * o->runs;
    TimeNs            *sorted = arena_try_new(a, TimeNs, o->runs);
    w->laps = arena_try_new(a, TimeNs, n * w->program->n_steps);
    w->outputs = arena_try_new(a, Tensor, w->program->special->graph->n_outputs);
    if (sorted == NULL || w->laps == NULL || w->outputs == NULL)
        return err_set(ERR_LIMIT, "no memory for %u runs", o->runs);
    measure_all(w, versions, counts);
    if (stopped(w)) return err_set(ERR_LIMIT, "measuring was given up");
    for (uint32_t v = 0; v < versions; v++)
        for (uint32_t k = 0; k < counts; k++) keep_laps(w, v, k, sorted, light);
    arena_rewind(a, mark);
    return w->space.failed == ERR_OK ? ERR_OK : err_set(w->space.failed, "%s", w->space.why);
}

Err laps_measure(Program *p, Team *team, const LapsOptions *o, Arena *a, TimeNs **light_ns) {
    Laps w = {.program = p, .o = o, .team = team};
    CHECK(o->runs > 0 && o->n_counts > 0 && o->counts[0] == 1);
    CHECK(o->reckon || o->counts[o->n_counts - 1] <= team_size(team));
    TimeNs *light = arena_try_new(a, TimeNs, (size_t)p->n_steps * o->n_counts);
    if (light == NULL) return err_set(ERR_LIMIT, "no memory for %u steps", p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].key != NULL) TRY(make_profile(p, &p->steps[i], o, a));
    TRY(space_init(&w.space, p, team_size(team)));
    if (!o->reckon) team_pin(team);
    Err e = measure(&w, a, light);
    team_unpin(team);
    if (o->reckon) reckon(p, o, light);
    space_finish(&w.space);
    if (e == ERR_OK) *light_ns = light;
    return e;
}

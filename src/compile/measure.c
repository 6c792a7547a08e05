#include "compile/measure.h"

#include "compile/stopwatch.h"

enum { RUNS = 5 };

typedef struct Probing {
    const Step *step;
    Space      *space;
} Probing;

static void run(void *self, const Version *v, Part part) {
    const Probing *p = self;
    StepCall       c = {p->step, v, p->space, part};
    p->step->kind->run(&c);
}

static Err measure_step(const Program *p, Step *s, Stopwatch *w, Space *space, Profile *profile) {
    Probing       probing = {s, space};
    StopwatchWork work = {.run = run, .self = &probing, .version = &s->versions[0]};
    Candidate    *c = &profile->candidates[0];
    *c = (Candidate){.version = s->versions[0], .tasks = s->kind->tasks(s, &s->versions[0])};
    uint32_t most = profile->counts[profile->n_counts - 1];
    c->traffic = s->kind->traffic(s, &s->versions[0], &p->caches, most);
    for (uint32_t k = 0; k < profile->n_counts; k++)
        for (int i = 0; i < RUNS; i++) {
            bool   clean;
            TimeNs t = stopwatch_run(w, work, profile->counts[k], &clean);
            if (c->time_ns[k] == 0 || (clean && t < c->time_ns[k])) c->time_ns[k] = t;
        }
    s->profile = profile;
    return ERR_OK;
}

static Err make_profile(const uint32_t *counts, uint32_t n, Arena *a, Profile **out) {
    Profile *p = arena_try_new(a, Profile, 1);
    if (p == NULL) return err_set(ERR_LIMIT, "no memory for a profile");
    *p =
        (Profile){.n_counts = n, .n_kept = 1, .n = 1, .candidates = arena_try_new(a, Candidate, 1)};
    if (p->candidates == NULL) return err_set(ERR_LIMIT, "no memory for a profile");
    for (uint32_t i = 0; i < n; i++) p->counts[i] = counts[i];
    *out = p;
    return ERR_OK;
}

static Err measure_all(Program *p, Stopwatch *w, Space *space, const uint32_t *counts, uint32_t n,
                       Arena *a) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step    *s = &p->steps[i];
        Profile *profile = NULL;
        if (s->key == NULL || s->profile != NULL) continue;
        TRY(make_profile(counts, n, a, &profile));
        TRY(measure_step(p, s, w, space, profile));
    }
    return ERR_OK;
}

Err measure_steps(Program *p, Team *team, const uint32_t *counts, uint32_t n, Arena *a) {
    Stopwatch *w = NULL;
    Space      space;
    TRY(space_init(&space, p, team_size(team)));
    Err e = space_blank_inputs(&space, p, a);
    if (e == ERR_OK) e = stopwatch_create(&w, team, program_scratch(p) + 64, p->caches.l2, 0);
    if (e == ERR_OK) e = measure_all(p, w, &space, counts, n, a);
    stopwatch_destroy(w);
    space_finish(&space);
    return e;
}

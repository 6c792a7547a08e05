#include "train/course.h"

enum { DRAW_REQUESTS = 160, CELL_REQUESTS = 200 };

Err course_open(const CourseOptions *o, Arena *a, Course *out) {
    Course c = {.stages = arena_new(a, ChipScenario, (size_t)o->n_chips * o->n_mixes)};
    for (uint32_t i = 0; i < o->n_chips; i++)
        for (uint32_t k = 0; k < o->n_mixes; k++) {
            ChipScenarioOptions so = {.package = o->chips[i], .workload = o->mixes[k]};
            so.period_us = o->period_us;
            TRY(chip_scenario_open(&so, a, &c.stages[c.n++]));
        }
    *out = c;
    return ERR_OK;
}

static double between(Rng *rng, double lo, double hi) { return lo + (hi - lo) * rng_unit64(rng); }

CourseRun course_draw(const Course *c, uint64_t seed, uint64_t i) {
    Rng       rng = rng_fork((Rng){seed}, i);
    CourseRun x = {.requests = DRAW_REQUESTS, .seed = COURSE_TRAIN + rng_below(&rng, 900000)};
    x.stage = &c->stages[rng_below(&rng, c->n)];
    x.load = between(&rng, 0.3, 1.2);
    if (rng_unit(&rng) < 0.4f) x.load = between(&rng, 1.2, 2.2);
    x.bandwidth = rng_unit(&rng) < 0.35f ? 1 : between(&rng, 0.22, 1.1);
    x.burst = rng_unit(&rng) < 0.25f ? between(&rng, 1.5, 5) : 0;
    x.firm = rng_unit(&rng) < 0.2f;
    return x;
}

CourseRun course_cell(const Course *c, uint32_t i, uint32_t trace) {
    static const double loads[COURSE_LOADS] = {0.5, 1, 1.7};
    static const double bandwidths[COURSE_BANDWIDTHS] = {1, 0.6, 0.3};
    uint32_t            each = COURSE_LOADS * COURSE_BANDWIDTHS;
    return (CourseRun){.stage = &c->stages[i / each],
                       .load = loads[i % COURSE_LOADS],
                       .bandwidth = bandwidths[i / COURSE_LOADS % COURSE_BANDWIDTHS],
                       .requests = CELL_REQUESTS,
                       .seed = COURSE_CHECK + trace};
}

Err course_run(const CourseRun *x, const ChipPolicy *p, const void *settings, const void *loaded,
               Arena *a, ChipRun *run, ChipResult *out) {
    ChipTrace   trace;
    ChipTraffic t = {x->load, x->burst, x->requests, x->seed};
    TRY(chip_scenario_trace(x->stage, &t, a, &trace));
    *run = chip_scenario_run(x->stage, trace);
    run->setup.bytes_ns *= (float)x->bandwidth;
    run->setup.firm = x->firm;
    run->policy = p;
    run->settings = settings;
    run->loaded = loaded;
    run->seed = x->seed;
    return chip_simulate(run, a, out);
}

double course_sla(const ChipRun *run, const ChipResult *r) {
    uint32_t met = 0;
    for (uint32_t i = run->skip; i < r->n; i++) met += r->answers[i].outcome == OUTCOME_MET;
    return r->n > run->skip ? (double)met / (r->n - run->skip) : 0;
}

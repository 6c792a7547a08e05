#include "train/chip_curriculum.h"

enum { TRAIN_REQUESTS = 160, CHECK_REQUESTS = 200 };

Err chip_curriculum_open(const ChipCurriculumOptions *o, Arena *a, ChipCurriculum *out) {
    ChipCurriculum c = {.scenarios = arena_new(a, ChipScenario, (size_t)o->n_chips * o->n_mixes)};
    for (uint32_t i = 0; i < o->n_chips; i++)
        for (uint32_t k = 0; k < o->n_mixes; k++) {
            ChipScenarioOptions so = {
                .package = o->chips[i], .workload = o->mixes[k], .period_us = o->period_us};
            TRY(chip_scenario_open(&so, a, &c.scenarios[c.n++]));
        }
    *out = c;
    return ERR_OK;
}

static double between(Rng *rng, double lo, double hi) { return lo + (hi - lo) * rng_unit64(rng); }

ChipTrainRun chip_curriculum_draw(const ChipCurriculum *c, uint64_t seed, uint64_t i) {
    Rng          rng = rng_fork((Rng){seed}, i);
    ChipTrainRun x = {.requests = TRAIN_REQUESTS,
                      .seed = CHIP_TRAIN_SEED + rng_below(&rng, 900000)};
    x.scenario = &c->scenarios[rng_below(&rng, c->n)];
    x.load = between(&rng, 0.3, 1.2);
    if (rng_unit(&rng) < 0.4f) x.load = between(&rng, 1.2, 2.2);
    x.bandwidth = rng_unit(&rng) < 0.35f ? 1 : between(&rng, 0.22, 1.1);
    x.burst = rng_unit(&rng) < 0.25f ? between(&rng, 1.5, 5) : 0;
    x.firm = rng_unit(&rng) < 0.2f;
    return x;
}

ChipTrainRun chip_curriculum_cell(const ChipCurriculum *c, uint32_t i, uint32_t trace) {
    static const double loads[CHIP_CHECK_LOADS] = {0.5, 1, 1.7};
    static const double bandwidths[CHIP_CHECK_BANDWIDTHS] = {1, 0.6, 0.3};
    uint32_t            each = CHIP_CHECK_LOADS * CHIP_CHECK_BANDWIDTHS;
    return (ChipTrainRun){.scenario = &c->scenarios[i / each],
                          .load = loads[i % CHIP_CHECK_LOADS],
                          .bandwidth = bandwidths[i / CHIP_CHECK_LOADS % CHIP_CHECK_BANDWIDTHS],
                          .requests = CHECK_REQUESTS,
                          .seed = CHIP_CHECK_SEED + trace};
}

static double sla_of(const ChipRun *run, const ChipResult *r) {
    uint32_t met = 0;
    for (uint32_t i = run->skip; i < r->n; i++) met += r->answers[i].outcome == OUTCOME_MET;
    return r->n > run->skip ? (double)met / (r->n - run->skip) : 0;
}

Err chip_curriculum_run(const ChipTrainRun *x, const ChipTrainPolicy *p, Arena *a, ChipResult *out,
                        double *sla) {
    ChipTrace   trace;
    ChipTraffic traffic = {x->load, x->burst, x->requests, x->seed};
    TRY(chip_scenario_trace(x->scenario, &traffic, a, &trace));
    ChipRun run = chip_scenario_run(x->scenario, trace);
    run.setup.bytes_ns *= (float)x->bandwidth;
    run.setup.firm = x->firm;
    run.policy = p->policy;
    run.settings = p->settings;
    run.loaded = p->loaded;
    run.seed = x->seed;
    TRY(chip_simulate(&run, a, out));
    *sla = sla_of(&run, out);
    return ERR_OK;
}

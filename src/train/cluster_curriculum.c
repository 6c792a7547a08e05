#include "train/cluster_curriculum.h"

Err cluster_curriculum_open(const ClusterCurriculumOptions *o, Arena *a, ClusterCurriculum *out) {
    ClusterCurriculum c = {.jobs = o->jobs};
    uint32_t          told = o->n_information > 0 ? o->n_information : 1;
    uint32_t          n = o->n_traces * o->n_servers * told;
    c.scenarios = arena_new(a, ClusterScenario, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t            k = i / told;
        ClusterScenarioSpec spec = {.trace = o->traces[k / o->n_servers],
                                    .servers = o->servers[k % o->n_servers],
                                    .profiles = o->profiles,
                                    .jobs = o->jobs,
                                    .load = 1,
                                    .max_s = CLUSTER_SCENARIO_MAX_S};
        if (o->n_information > 0) spec.information = o->information[i % told];
        TRY(cluster_scenario_open(&spec, a, &c.scenarios[c.n++]));
    }
    *out = c;
    return ERR_OK;
}

static double between(Rng *rng, double lo, double hi) { return lo + (hi - lo) * rng_unit64(rng); }

ClusterTrainRun cluster_curriculum_draw(const ClusterCurriculum *c, uint64_t seed, uint64_t i) {
    Rng             rng = rng_fork((Rng){seed}, i);
    ClusterTrainRun x = {.scenario = &c->scenarios[rng_below(&rng, c->n)]};
    x.seed = CLUSTER_SCENARIO_TRAIN + rng_below(&rng, CLUSTER_CHECK_SEED - CLUSTER_SCENARIO_TRAIN);
    x.load = between(&rng, 0.8, 1.5);
    if (rng_unit(&rng) < 0.5f) x.load = between(&rng, 1.5, 3);
    x.jobs = (uint32_t)(c->jobs * between(&rng, 0.5, 1)) + 1;
    return x;
}

ClusterTrainRun cluster_curriculum_cell(const ClusterCurriculum *c, uint32_t i, uint32_t trace) {
    static const double loads[CLUSTER_CHECK_LOADS] = {1, 1.5, 2.5};
    return (ClusterTrainRun){.scenario = &c->scenarios[i / CLUSTER_CHECK_LOADS],
                             .load = loads[i % CLUSTER_CHECK_LOADS],
                             .jobs = c->jobs,
                             .seed = CLUSTER_CHECK_SEED + trace};
}

static Err load(ClusterRun *run, Arena *a) {
    ClusterSetup setup;
    if (run->policy->load == NULL || run->loaded != NULL) return ERR_OK;
    TRY(cluster_setup(run, a, &setup));
    return run->policy->load(&setup, run->settings, a, &run->loaded);
}

Err cluster_curriculum_run(const ClusterTrainRun *x, ClusterRun *run, Arena *a,
                           ClusterResult *result, ClusterTrainResult *out) {
    ClusterScenario      scenario = *x->scenario;
    ClusterScenarioDraw *draw = arena_new(a, ClusterScenarioDraw, 1);
    ClusterSummary       sum;
    scenario.n_jobs = x->jobs;
    scenario.synth.jobs = x->jobs;
    scenario.load = scenario.synth.load = x->load;
    TRY(cluster_scenario_draw(&scenario, x->seed, a, draw));
    run->jobs = &draw->jobs;
    run->servers = &x->scenario->servers;
    run->profiles = draw->truth;
    run->beliefs = draw->beliefs;
    run->info = scenario.information;
    run->error = scenario.information.error;
    run->class_of = draw->class_of;
    run->seed = x->seed;
    run->knows = information_knows(&run->info, run->policy->knows);
    TRY(cluster_sim_params("own", run->policy, &run->params));
    cluster_stop_options(scenario.stops, &run->params);
    TRY(load(run, a));
    TRY(cluster_simulate(run, a, result));
    TRY(cluster_summary(run, result, a, &sum));
    *out = (ClusterTrainResult){.jct_s = sum.jct_mean_s, .makespan_s = sum.makespan_s};
    return ERR_OK;
}

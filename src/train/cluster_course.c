#include "train/cluster_course.h"

Err cluster_course_open(const ClusterCourseOptions *o, Arena *a, ClusterCourse *out) {
    ClusterCourse c = {.jobs = o->jobs};
    c.scenes = arena_new(a, ClusterScenario, (size_t)o->n_traces * o->n_servers);
    for (uint32_t i = 0; i < o->n_traces; i++)
        for (uint32_t k = 0; k < o->n_servers; k++) {
            ClusterScenarioSpec spec = {.trace = o->traces[i],
                                        .servers = o->servers[k],
                                        .profiles = o->profiles,
                                        .jobs = o->jobs,
                                        .load = 1,
                                        .max_s = CLUSTER_SCENARIO_MAX_S};
            TRY(cluster_scenario_open(&spec, a, &c.scenes[c.n++]));
        }
    *out = c;
    return ERR_OK;
}

static double between(Rng *rng, double lo, double hi) { return lo + (hi - lo) * rng_unit64(rng); }

ClusterCourseRun cluster_course_draw(const ClusterCourse *c, uint64_t seed, uint64_t i) {
    Rng              rng = rng_fork((Rng){seed}, i);
    ClusterCourseRun x = {.scene = &c->scenes[rng_below(&rng, c->n)]};
    x.seed =
        CLUSTER_SCENARIO_TRAIN + rng_below(&rng, CLUSTER_COURSE_CHECK - CLUSTER_SCENARIO_TRAIN);
    x.load = between(&rng, 0.8, 1.5);
    if (rng_unit(&rng) < 0.5f) x.load = between(&rng, 1.5, 3);
    x.jobs = (uint32_t)(c->jobs * between(&rng, 0.5, 1)) + 1;
    return x;
}

ClusterCourseRun cluster_course_cell(const ClusterCourse *c, uint32_t i, uint32_t trace) {
    static const double loads[CLUSTER_COURSE_LOADS] = {1, 1.5, 2.5};
    return (ClusterCourseRun){.scene = &c->scenes[i / CLUSTER_COURSE_LOADS],
                              .load = loads[i % CLUSTER_COURSE_LOADS],
                              .jobs = c->jobs,
                              .seed = CLUSTER_COURSE_CHECK + trace};
}

static Err load(ClusterRun *run, Arena *a) {
    ClusterSetup setup;
    if (run->policy->load == NULL || run->loaded != NULL) return ERR_OK;
    TRY(cluster_setup(run, a, &setup));
    return run->policy->load(&setup, run->settings, a, &run->loaded);
}

Err cluster_course_watch(const ClusterCourseRun *x, ClusterRun *run, Arena *a,
                         ClusterResult *result, ClusterCourseEnd *out) {
    ClusterScenario      scene = *x->scene;
    ClusterScenarioDraw *draw = arena_new(a, ClusterScenarioDraw, 1);
    ClusterSummary       sum;
    scene.n_jobs = x->jobs;
    scene.synth.jobs = x->jobs;
    scene.load = scene.synth.load = x->load;
    TRY(cluster_scenario_draw(&scene, x->seed, a, draw));
    run->jobs = &draw->jobs;
    run->servers = &x->scene->servers;
    run->profiles = x->scene->profiles;
    run->class_of = draw->class_of;
    run->seed = x->seed;
    run->knows = run->policy->knows;
    TRY(cluster_sim_params("own", run->policy, &run->params));
    TRY(load(run, a));
    TRY(cluster_simulate(run, a, result));
    TRY(cluster_summary(run, result, a, &sum));
    *out = (ClusterCourseEnd){.jct_s = sum.jct_mean_s, .makespan_s = sum.makespan_s};
    return ERR_OK;
}

Err cluster_course_run(const ClusterCourseRun *x, const ClusterPlayer *player, Arena *a,
                       ClusterCourseEnd *out) {
    ClusterRun run = {
        .policy = player->policy, .settings = player->settings, .loaded = player->loaded};
    ClusterResult result;
    return cluster_course_watch(x, &run, a, &result, out);
}

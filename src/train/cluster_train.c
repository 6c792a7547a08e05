#include "train/cluster_train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "learn/weights_file.h"
#include "train/evolve.h"
#include "train/stages.h"

static const double ASTRAY = 0.01;  // below the best: back to it

ClusterPlan cluster_plan(uint32_t generations, uint32_t stages) {
    static const uint32_t parts[CLUSTER_STAGES] = {1, 1, 4};
    ClusterPlan           plan = {.episodes = 16,
                                  .updates = 100,
                                  .pairs = 12,
                                  .runs = 32,
                                  .check = 4,
                                  .sigma = 0.05f,
                                  .step = 0.12f};
    uint32_t              all = 0, last = CLUSTER_STAGES, left = generations;
    for (uint32_t i = 0; i < CLUSTER_STAGES; i++) {
        if ((stages >> i & 1) == 0) continue;
        all += parts[i];
        last = i;
    }
    CHECK(last < CLUSTER_STAGES);
    for (uint32_t i = 0; i < last; i++) {
        if ((stages >> i & 1) != 0) plan.generations[i] = generations * parts[i] / all;
        left -= plan.generations[i];
    }
    plan.generations[last] = left;
    return plan;
}

Err cluster_train_open(ClusterTrain *t, Arena *a) {
    t->generation = 0;
    t->best = float_vec_new(a, t->pupil->w.n);
    t->way = float_vec_new(a, t->pupil->head.n);
    TRY(cluster_gauge_open(&t->gauge, t->pupil, a, &t->rule_mark));
    t->best_mark = t->rule_mark;
    t->best_mark.score = -INFINITY;  // of networks
    return ERR_OK;
}

uint32_t cluster_train_total(const ClusterTrain *t) {
    return stages_total(t->plan.generations, CLUSTER_STAGES);
}

ClusterStage cluster_train_stage(const ClusterTrain *t, uint32_t generation) {
    return (ClusterStage)stages_at(t->plan.generations, CLUSTER_STAGES, generation);
}

// A stage ends with the best that was found so far, and the next one starts from there.
static bool ends_stage(const ClusterTrain *t, uint32_t g) {
    return stages_end(t->plan.generations, CLUSTER_STAGES, g);
}

static void back_to_best(ClusterTrain *t) {
    float_vec_copy(t->pupil->w, t->best);
    t->pupil->moved(t->pupil);
    float_vec_zero(t->way);
}

static Err check(ClusterTrain *t, Arena *scratch, ClusterReport *out) {
    TRY(cluster_gauge_weights(&t->gauge, t->pupil, t->pupil->w.at, scratch, &out->mark));
    out->checked = true;
    out->better = out->mark.score > t->best_mark.score;
    if (out->better) {
        float_vec_copy(t->best, t->pupil->w);
        t->best_mark = out->mark;
    } else if (out->mark.score < t->best_mark.score - ASTRAY) {
        back_to_best(t);
    }
    return ERR_OK;
}

static Err try_one(void *self, const float *w, uint32_t run, Arena *a, double *worth) {
    const ClusterTrain *t = self;
    const Pupil        *p = t->pupil;
    uint64_t            at = (uint64_t)t->generation * t->plan.runs + run;
    ClusterCourseRun    x = cluster_course_draw(t->gauge.course, t->seed ^ 0xe7, at);
    ClusterPlayer       player = {p->policy, p->settings, p->loaded(p, w, a)};
    ClusterCourseEnd    end;
    TRY(cluster_course_run(&x, &player, a, &end));
    *worth = -(log(fmax(end.jct_s, 1)) + t->gauge.weight * log(fmax(end.makespan_s, 1)));
    return ERR_OK;
}

static Err polish(ClusterTrain *t, Arena *scratch, double *worth) {
    EvolveOptions o = {.pairs = t->plan.pairs,
                       .runs = t->plan.runs,
                       .sigma = t->plan.sigma,
                       .step = t->plan.step,
                       .keep = 0.8f,
                       .clip = 0.04f,
                       .scale = t->pupil->scale};
    Rng           rng = rng_fork((Rng){t->seed ^ 0xa11}, t->generation);
    TRY(evolve_step(&o, t->gauge.runs, rng, try_one, t, t->pupil->w, t->pupil->head, t->way,
                    scratch, worth));
    t->pupil->moved(t->pupil);
    return ERR_OK;
}

static Err generation(ClusterTrain *t, Arena *scratch, ClusterReport *out) {
    PupilLesson l = {.course = t->gauge.course,
                     .runs = t->gauge.runs,
                     .seed = t->seed,
                     .generation = t->generation,
                     .episodes = t->plan.episodes,
                     .updates = t->plan.updates,
                     .weight = t->gauge.weight};
    switch (out->stage) {
    case CLUSTER_IMITATE: return t->pupil->imitate(t->pupil, &l, scratch, &out->loss);
    case CLUSTER_LEARN: return t->pupil->learn(t->pupil, &l, scratch, &out->loss);
    case CLUSTER_POLISH: return polish(t, scratch, &out->loss);
    case CLUSTER_STAGES: break;
    }
    return ERR_OK;
}

Err cluster_train_step(ClusterTrain *t, Arena *scratch, ClusterReport *out) {
    uint32_t      g = t->generation;
    ClusterReport r = {.stage = cluster_train_stage(t, g)};
    size_t        mark = scratch->used;
    Err           e = generation(t, scratch, &r);
    arena_rewind(scratch, mark);
    TRY(e);
    if ((g + 1) % t->plan.check == 0 || ends_stage(t, g)) TRY(check(t, scratch, &r));
    if (ends_stage(t, g)) back_to_best(t);
    t->generation++;
    *out = r;
    return ERR_OK;
}

enum { PARTS = 3 };

static size_t parts_of(const ClusterTrain *t, FloatVec *parts) {
    parts[0] = t->pupil->state;
    parts[1] = t->best;
    parts[2] = t->way;
    return parts[0].n + parts[1].n + parts[2].n;
}

static char *facts_of(const ClusterTrain *t, Arena *a) {
    const ClusterPlan *p = &t->plan;
    return arena_printf(a,
                        "training=%s\nseed=%" PRIu64 "\nscenes=%u\njobs=%u\nplan=%u-%u-%u-%u-%u-%u-"
                        "%u-%u\n%s",
                        t->pupil->policy->name, t->seed, t->gauge.course->n, t->gauge.course->jobs,
                        p->generations[0], p->generations[1], p->generations[2], p->episodes,
                        p->updates, p->pairs, p->runs, p->check, t->pupil->facts);
}

Err cluster_train_save(const ClusterTrain *t, const char *path, Arena *scratch) {
    size_t   mark = scratch->used;
    FloatVec parts[PARTS];
    FloatVec all = float_vec_new(scratch, parts_of(t, parts));
    float   *to = all.at;
    for (uint32_t i = 0; i < PARTS; to += parts[i++].n)
        float_vec_copy((FloatVec){to, parts[i].n}, parts[i]);
    char *facts = arena_printf(
        scratch, "%sgeneration=%u\njct=%.17g\nmakespan=%.17g\nworst=%.17g\nscore=%.17g\n",
        facts_of(t, scratch), t->generation, t->best_mark.jct, t->best_mark.makespan,
        t->best_mark.worst, t->best_mark.score);
    Err e = weights_save(path, facts, all);
    arena_rewind(scratch, mark);
    return e;
}

static double number(const WeightsFile *w, const char *key, Arena *a) {
    const char *text = weights_metadata(w, key, a);
    return text != NULL ? strtod(text, NULL) : 0;
}

Err cluster_train_resume(ClusterTrain *t, const char *path, Arena *scratch) {
    size_t      mark = scratch->used;
    FloatVec    parts[PARTS];
    WeightsFile w;
    size_t      n = parts_of(t, parts);
    Err         e = weights_load(path, facts_of(t, scratch), n, scratch, &w);
    if (e != ERR_OK) return err_add(e, "no training of this kind to go on with");
    float *from = w.params.at;
    for (uint32_t i = 0; i < PARTS; from += parts[i++].n)
        float_vec_copy(parts[i], (FloatVec){from, parts[i].n});
    t->generation = (uint32_t)number(&w, "generation", scratch);
    t->best_mark = (ClusterMark){number(&w, "jct", scratch), number(&w, "makespan", scratch),
                                 number(&w, "worst", scratch), number(&w, "score", scratch)};
    arena_rewind(scratch, mark);
    return ERR_OK;
}

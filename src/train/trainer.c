#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fp.h"
#include "base/parallel_for.h"
#include "learn/weights_file.h"

const char *const train_stage_names[TRAIN_STAGES] = {"imitate", "learn", "finetune"};

typedef struct Jobs {
    TrainJob *fn;
    void     *self;
} Jobs;

static Err run_flushed(void *self, uint32_t i, Arena *a) {
    const Jobs *j = self;
    FpuState    old = fpu_flush_denormals();
    Err         e = j->fn(j->self, i, a);
    fpu_restore(old);
    return e;
}

Err train_parallel(TrainJob *fn, void *self, uint32_t n, uint32_t threads) {
    Jobs        j = {fn, self};
    ParallelFor jobs = {.run = run_flushed, .self = &j, .n = n};
    return parallel_for(&jobs, threads);
}

uint32_t train_count_until(const TimeNs *first, size_t stride, uint32_t n, TimeNs t) {
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (*(const TimeNs *)(const void *)((const char *)first + mid * stride) <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

TrainPlan train_plan(const TrainDefaults *d, uint32_t generations, uint32_t stages) {
    TrainPlan plan = d->plan;
    uint32_t  all = 0, rest = TRAIN_STAGES, left = generations;
    for (uint32_t i = 0; i < TRAIN_STAGES; i++) {
        if ((stages >> i & 1) == 0) continue;
        all += d->parts[i];
        if (!d->rest_first || rest == TRAIN_STAGES) rest = i;
    }
    CHECK(rest < TRAIN_STAGES);
    for (uint32_t i = 0; i < TRAIN_STAGES; i++) {
        if (i == rest || (stages >> i & 1) == 0) continue;
        plan.generations[i] = generations * d->parts[i] / all;
        left -= plan.generations[i];
    }
    plan.generations[rest] = left;
    return plan;
}

uint32_t trainer_total(const Trainer *t) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < TRAIN_STAGES; i++) sum += t->plan.generations[i];
    return sum;
}

TrainStage trainer_stage(const Trainer *t, uint32_t generation) {
    uint32_t stage = 0, before = 0;
    while (stage + 1 < TRAIN_STAGES && generation >= before + t->plan.generations[stage])
        before += t->plan.generations[stage++];
    return (TrainStage)stage;
}

static bool ends_stage(const Trainer *t, uint32_t g) {
    return g + 1 == trainer_total(t) || trainer_stage(t, g) != trainer_stage(t, g + 1);
}

Err trainer_open(Trainer *t, Arena *a) {
    t->generation = 0;
    t->best = float_vec_new(a, t->trainee->params.n);
    t->direction = float_vec_new(a, t->trainee->head.n);
    TRY(t->evaluator->open(t->evaluator, t->trainee, a, &t->rule_score));
    t->best_score = t->rule_score;
    if (!t->plan.beat_rule) t->best_score.objective = -INFINITY;
    return team_create(&t->team, t->threads, NULL);
}

void trainer_close(Trainer *t) {
    team_destroy(t->team);
    t->team = NULL;
}

// Without kept parameters training goes on from where it is: zeros have no gradient.
static void restore_best(Trainer *t) {
    float_vec_zero(t->direction);
    if (!(float_vec_norm(t->best) > 0)) return;
    float_vec_copy(t->trainee->params, t->best);
    t->trainee->params_set(t->trainee);
}

static Err check(Trainer *t, Arena *scratch, TrainReport *out) {
    TRY(t->evaluator->evaluate(t->evaluator, t->trainee, t->trainee->params.at, scratch,
                               &out->score));
    out->checked = true;
    out->better = out->score.objective > t->best_score.objective;
    if (out->better) {
        float_vec_copy(t->best, t->trainee->params);
        t->best_score = out->score;
    } else if (out->score.objective < t->best_score.objective - t->plan.tolerance) {
        restore_best(t);
    }
    return ERR_OK;
}

static Err fitness(void *self, const float *params, uint32_t run, Arena *a, double *out) {
    const Trainer *t = self;
    uint64_t       i = (uint64_t)t->generation * t->plan.es.runs + run;
    return t->evaluator->fitness(t->evaluator, t->trainee, params, t->seed ^ 0xe7, i, a, out);
}

static Err finetune(Trainer *t, Arena *scratch, double *mean) {
    EsProblem x = {.fitness = fitness,
                   .self = t,
                   .params = t->trainee->params,
                   .part = t->trainee->head,
                   .scale = t->trainee->head_scale,
                   .direction = t->direction,
                   .threads = t->threads};
    TRY(es_step(&t->plan.es, &x, rng_fork((Rng){t->seed ^ 0xa11}, t->generation), scratch, mean));
    t->trainee->params_set(t->trainee);
    return ERR_OK;
}

static Err generation(Trainer *t, Arena *scratch, TrainReport *out) {
    TrainRound r = {.imitate = out->stage == TRAIN_IMITATE,
                    .seed = t->seed,
                    .generation = t->generation,
                    .episodes = t->plan.episodes,
                    .updates = t->plan.updates,
                    .threads = t->threads,
                    .team = t->team};
    if (out->stage == TRAIN_FINETUNE) return finetune(t, scratch, &out->fitness);
    return t->trainee->train(t->trainee, &r, scratch, &out->loss);
}

// A stage ends with an evaluation, and the next one starts from the best parameters so far.
Err trainer_step(Trainer *t, Arena *scratch, TrainReport *out) {
    uint32_t    g = t->generation;
    TrainReport r = {.stage = trainer_stage(t, g)};
    size_t      mark = scratch->used;
    Err         e = generation(t, scratch, &r);
    arena_rewind(scratch, mark);
    TRY(e);
    if ((g + 1) % t->plan.check == 0 || ends_stage(t, g)) TRY(check(t, scratch, &r));
    if (ends_stage(t, g)) restore_best(t);
    t->generation++;
    *out = r;
    return ERR_OK;
}

enum { PARTS = 3 };

static size_t parts_of(const Trainer *t, FloatVec *parts) {
    parts[0] = t->trainee->state;
    parts[1] = t->best;
    parts[2] = t->direction;
    return parts[0].n + parts[1].n + parts[2].n;
}

static char *facts_of(const Trainer *t, Arena *a) {
    const TrainPlan *p = &t->plan;
    return arena_printf(a, "training=%s\nseed=%" PRIu64 "\nplan=%u-%u-%u-%u-%u-%u-%u-%u\n%s%s",
                        t->trainee->name, t->seed, p->generations[0], p->generations[1],
                        p->generations[2], p->episodes, p->updates, p->es.pairs, p->es.runs,
                        p->check, t->evaluator->facts, t->trainee->facts);
}

static char *score_facts(const Trainer *t, Arena *a) {
    char *text = arena_printf(a, "generation=%u\n", t->generation);
    for (uint32_t i = 0; i < SCORE_VALUES && t->evaluator->names[i] != NULL; i++)
        text =
            arena_printf(a, "%s%s=%.17g\n", text, t->evaluator->names[i], t->best_score.values[i]);
    return arena_printf(a, "%sscore=%.17g\n", text, t->best_score.objective);
}

Err trainer_save(const Trainer *t, const char *path, Arena *scratch) {
    size_t   mark = scratch->used;
    FloatVec parts[PARTS];
    FloatVec all = float_vec_new(scratch, parts_of(t, parts));
    float   *to = all.at;
    for (uint32_t i = 0; i < PARTS; to += parts[i++].n)
        float_vec_copy((FloatVec){to, parts[i].n}, parts[i]);
    char *facts = arena_printf(scratch, "%s%s", facts_of(t, scratch), score_facts(t, scratch));
    Err   e = weights_save(path, facts, all);
    arena_rewind(scratch, mark);
    return e;
}

static double number(const WeightsFile *w, const char *key, Arena *a) {
    const char *text = weights_metadata(w, key, a);
    return text != NULL ? strtod(text, NULL) : 0;
}

Err trainer_resume(Trainer *t, const char *path, Arena *scratch) {
    size_t      mark = scratch->used;
    FloatVec    parts[PARTS];
    WeightsFile w;
    size_t      n = parts_of(t, parts);
    Err         e = weights_load(path, facts_of(t, scratch), n, scratch, &w);
    if (e != ERR_OK) return err_add(e, "not a checkpoint of this training");
    float *from = w.params.at;
    for (uint32_t i = 0; i < PARTS; from += parts[i++].n)
        float_vec_copy(parts[i], (FloatVec){from, parts[i].n});
    t->generation = (uint32_t)number(&w, "generation", scratch);
    for (uint32_t i = 0; i < SCORE_VALUES && t->evaluator->names[i] != NULL; i++)
        t->best_score.values[i] = number(&w, t->evaluator->names[i], scratch);
    t->best_score.objective = number(&w, "score", scratch);
    arena_rewind(scratch, mark);
    return ERR_OK;
}

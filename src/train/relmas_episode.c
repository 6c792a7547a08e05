#include "train/relmas_episode.h"

#include <math.h>
#include <string.h>

#include "learn/noise.h"
#include "policy/policies.h"
#include "train/trainee.h"

enum { TEACHERS = 10, BIAS_PERIODS = 200, ROOM = 1 << 14 };

static RelmasSettings teacher_settings(const RelmasSettings *usual, uint32_t i) {
    RelmasSettings s = *usual;
    switch (i) {
    case 1: s.fit = 0; break;
    case 2: s.fit = 1.5; break;
    case 3: s.slack = 0.8; break;
    case 4: s.time = 0.3; break;
    case 5: s.time = 3; break;
    case 6: s.size = 1, s.size_units = 0.4; break;
    case 7: s.size = 2, s.size_units = 2; break;
    case 8: s.size = 6, s.size_units = 3; break;
    case 9: s.fit = 0, s.size = 2; break;
    default: break;
    }
    return s;
}

// outputs [n][RELMAS_OUTPUTS] for the tasks of an observation.
static void teacher_outputs(const RelmasSettings *teacher, const RelmasScorer *scorer,
                            const RelmasObservation *seen, float *outputs) {
    const RelmasSettings *own = &scorer->cfg;
    float                 gain = (float)own->gain, usual = scorer->table->usual;
    for (uint32_t i = 0; i < seen->n; i++) {
        const RelmasTaskState *c = &seen->at[i];
        float size = relmas_log2(c->work / usual + 1e-6f), slack = c->slack_ns / usual;
        float more =
            (relmas_size_weight(own, scorer) - relmas_size_weight(teacher, scorer)) * size +
            (float)(own->slack - teacher->slack) * slack;
        float *to = outputs + (size_t)i * RELMAS_OUTPUTS;
        to[0] = relmas_clip(more / gain, -0.95f, 0.95f);
        to[1] = relmas_clip((float)(teacher->fit - own->fit) / gain, -0.95f, 0.95f);
        to[2] = relmas_clip((float)(teacher->time - own->time) / gain, -0.95f, 0.95f);
        to[3] = 0;
    }
}

Err relmas_teacher_choose(const ChipTrainRun *x, const RelmasSettings *usual, Arena *a,
                          RelmasSettings *out) {
    double best = -1;
    for (uint32_t i = 0; i < TEACHERS; i++) {
        RelmasSettings  s = teacher_settings(usual, i);
        RelmasLoaded    none = {.w = NULL};
        ChipTrainPolicy p = {&chip_policy_relmas, &s, &none};
        double          sum = 0;
        for (uint32_t k = 0; k < 2; k++) {
            size_t       mark = a->used;
            ChipTrainRun again = *x;
            ChipResult   r;
            double       sla;
            again.seed += k;
            TRY(chip_curriculum_run(&again, &p, a, &r, &sla));
            sum += sla;
            arena_rewind(a, mark);
        }
        if (sum <= best + 0.005) continue;
        best = sum;
        *out = s;
    }
    return ERR_OK;
}

typedef struct Period {  // one call of the network
    TimeNs   at;
    uint32_t n;
    float   *x, *outputs, *taught;
    float    crowded;  // bandwidth requested beyond what there is, over the memory's
} Period;

typedef struct Recording {
    const RelmasEpisodeOptions *o;
    Arena                      *arena;
    Rng                         rng;
    Period                     *at;  // [n], at most ROOM
    uint32_t                    n;
    float                       bias[RELMAS_OUTPUTS];
} Recording;

static float *copy(Arena *a, const float *x, size_t n) {
    float *to = arena_new(a, float, n);
    if (n > 0) memcpy(to, x, n * sizeof *x);
    return to;
}

// A change that lasts one period hardly affects the reward; one that lasts many does.
static void add_noise(Recording *r, size_t n, float *outputs) {
    if (r->n % BIAS_PERIODS == 0)
        for (uint32_t k = 0; k < RELMAS_OUTPUTS; k++)
            r->bias[k] = r->o->bias * noise_normal(&r->rng);
    for (size_t i = 0; i < n; i++)
        outputs[i] = relmas_clip(outputs[i] + r->bias[i % RELMAS_OUTPUTS], -1.0f, 1.0f);
    noise_add(&r->rng, r->o->sigma, n, outputs);
}

static void explore(void *self, const RelmasScorer *scorer, const ChipView *v,
                    const RelmasObservation *seen, float *outputs) {
    Recording *r = self;
    size_t     n = (size_t)seen->n * RELMAS_OUTPUTS;
    add_noise(r, n, outputs);
    if (r->n == ROOM) return;
    Period *p = &r->at[r->n++];
    float   over = v->demand / v->setup->bytes_ns - 1.0f;
    *p = (Period){.at = v->now, .n = seen->n, .crowded = over > 0 ? over : 0};
    p->x = copy(r->arena, seen->x, (size_t)seen->n * RELMAS_FEATURES);
    p->outputs = copy(r->arena, outputs, n);
    if (r->o->teacher == NULL) return;
    p->taught = arena_new(r->arena, float, n);
    teacher_outputs(r->o->teacher, scorer, seen, p->taught);
}

// The last period that began by a time; r->n: none did.
static uint32_t period_at(const Recording *r, TimeNs at) {
    if (r->n == 0) return 0;
    uint32_t before = train_count_until(&r->at->at, sizeof *r->at, r->n, at);
    return before > 0 ? before - 1 : r->n;
}

static void add_met(const Recording *r, const ChipResult *result, double each, double *out) {
    for (uint32_t i = 0; i < result->n; i++) {
        if (result->answers[i].outcome != OUTCOME_MET) continue;
        uint32_t at = period_at(r, result->answers[i].finish);
        if (at < r->n) out[at] += each;
    }
}

// Requests in time, less those that the heuristic alone gets in time in the same period, which
// removes what the trace decides. The mean number of requests in a period counts 1 - discount, so
// that values are shares of requests.
static void reward(const ChipTrainRun *x, const Recording *r, const ChipResult *result,
                   const ChipResult *rule, double *out) {
    double per_period = x->load * x->scenario->capacity * (double)x->scenario->setup.period / 1e9;
    double period = 1 - (double)r->o->discount;
    for (uint32_t i = 0; i < r->n; i++)
        out[i] = -(double)(r->o->crowding * r->at[i].crowded) * period;
    add_met(r, result, period / per_period, out);
    add_met(r, rule, -period / per_period, out);
}

// The network is not called in periods without requests; these are discounted too.
static float discount(const Recording *r, const ChipTrainRun *x, uint32_t from, uint32_t to) {
    double periods = (double)(r->at[to].at - r->at[from].at) / (double)x->scenario->setup.period;
    return powf(r->o->discount, (float)periods);
}

static void make_step(const ChipTrainRun *x, const Recording *r, const double *rewards, uint32_t i,
                      DdpgTransition *to) {
    const Period *p = &r->at[i];
    uint32_t      last = i + r->o->n_return < r->n ? i + r->o->n_return : r->n - 1;
    double        sum = 0;
    for (uint32_t k = i; k < last; k++) sum += (double)discount(r, x, i, k) * rewards[k];
    *to = (DdpgTransition){.x = p->x,
                           .action = p->outputs,
                           .teacher = p->taught,
                           .next_x = r->at[last].x,
                           .n = p->n,
                           .next_n = r->at[last].n,
                           .reward = (float)sum,
                           .discount = discount(r, x, i, last),
                           .weight = 1};
}

static Err simulate(const ChipTrainRun *x, Recording *r, Arena *sim, RelmasEpisode *out) {
    const RelmasEpisodeOptions *o = r->o;
    RelmasLoaded    loaded = {.actor = o->actor, .w = o->params, .explore = explore, .self = r};
    RelmasLoaded    none = {.w = NULL};
    ChipTrainPolicy net = {&chip_policy_relmas, o->settings, &loaded};
    ChipTrainPolicy heuristic = {&chip_policy_relmas, o->settings, &none};
    ChipResult      result, rule = {0};
    double          sla;
    TRY(chip_curriculum_run(x, &net, sim, &result, &sla));
    if (o->bias > 0) TRY(chip_curriculum_run(x, &heuristic, sim, &rule, &sla));
    double *rewards = arena_new(r->arena, double, r->n + 1);
    reward(x, r, &result, &rule, rewards);
    *out = (RelmasEpisode){.steps = arena_new(r->arena, DdpgTransition, r->n)};
    for (uint32_t i = 0; i + 1 < r->n; i++)
        if (r->at[i].n > 0) make_step(x, r, rewards, i, &out->steps[out->n++]);
    return ERR_OK;
}

Err relmas_episode_run(const ChipTrainRun *x, const RelmasEpisodeOptions *o, Arena *a,
                       RelmasEpisode *out) {
    Recording r = {.o = o, .arena = a, .rng = {o->seed}, .at = arena_new(a, Period, ROOM)};
    Arena     sim;
    TRY(arena_init(&sim, (size_t)1 << 30));
    Err e = simulate(x, &r, &sim, out);
    arena_finish(&sim);
    return e;
}

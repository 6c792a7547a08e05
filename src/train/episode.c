#include "train/episode.h"

#include <math.h>
#include <string.h>

#include "learn/noise.h"
#include "policy/policies.h"
#include "train/tutor.h"

typedef struct Thought {
    TimeNs   at;
    uint32_t n;
    float   *x, *says, *taught;
    float    crowded;  // bandwidth asked for beyond what there is, in memories
} Thought;

typedef struct Diary {
    const EpisodeOptions *o;
    Arena                *arena;
    Rng                   rng;
    Thought              *at;
    uint32_t              n, room;
    float                 sway[RELMAS_OUTPUTS];
} Diary;

enum { SWAY_THOUGHTS = 200 };

static float *copy(Arena *a, const float *x, size_t n) {
    float *to = arena_new(a, float, n);
    if (n > 0) memcpy(to, x, n * sizeof *x);
    return to;
}

// What is said for one period hardly shows among all else that happens; what is said for long does.
static void stir(Diary *d, size_t n, float *says) {
    if (d->n % SWAY_THOUGHTS == 0)
        for (uint32_t k = 0; k < RELMAS_OUTPUTS; k++)
            d->sway[k] = d->o->sway * noise_normal(&d->rng);
    for (size_t i = 0; i < n; i++)
        says[i] = relmas_clip(says[i] + d->sway[i % RELMAS_OUTPUTS], -1.0f, 1.0f);
    noise_add(&d->rng, d->o->sigma, n, says);
}

static void explore(void *self, const RelmasScorer *rule, const ChipView *v,
                    const RelmasObservation *look, float *says) {
    Diary *d = self;
    size_t n = (size_t)look->n * RELMAS_OUTPUTS;
    stir(d, n, says);
    if (d->n == d->room) return;
    Thought *t = &d->at[d->n++];
    float    over = v->demand / v->setup->bytes_ns - 1.0f;
    *t = (Thought){.at = v->now, .n = look->n, .crowded = over > 0 ? over : 0};
    t->x = copy(d->arena, look->x, (size_t)look->n * RELMAS_FEATURES);
    t->says = copy(d->arena, says, n);
    if (d->o->tutor == NULL) return;
    t->taught = arena_new(d->arena, float, n);
    tutor_says(d->o->tutor, rule, look, t->taught);
}

// The thought that came last before a time; n: none did.
static uint32_t thought_before(const Diary *d, TimeNs at) {
    uint32_t lo = 0, hi = d->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (d->at[mid].at <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? lo - 1 : d->n;
}

static void count(const Diary *d, const ChipResult *r, double each, double *out) {
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->answers[i].outcome != OUTCOME_MET) continue;
        uint32_t at = thought_before(d, r->answers[i].finish);
        if (at < d->n) out[at] += each;
    }
}

// Requests in time, less those that the rule alone gets in time meanwhile: what the trace brings
// and what no policy could change falls out. The usual number of requests in a period counts 1 -
// discount, so that values are about shares of requests.
static void reward(const CourseRun *x, const Diary *d, const ChipResult *r, const ChipResult *rule,
                   double *out) {
    double per_period = x->load * x->stage->capacity * (double)x->stage->setup.period / 1e9;
    double period = 1 - (double)d->o->discount;
    for (uint32_t i = 0; i < d->n; i++)
        out[i] = -(double)(d->o->crowding * d->at[i].crowded) * period;
    count(d, r, period / per_period, out);
    count(d, rule, -period / per_period, out);
}

// Periods without requests are not thought about: what passes meanwhile is discounted all the same.
static float between(const Diary *d, const CourseRun *x, uint32_t from, uint32_t to) {
    double periods = (double)(d->at[to].at - d->at[from].at) / (double)x->stage->setup.period;
    return powf(d->o->discount, (float)periods);
}

static void make_step(const CourseRun *x, const Diary *d, const double *rewards, uint32_t i,
                      DdpgTransition *to) {
    const Thought *t = &d->at[i];
    uint32_t       last = i + d->o->n_return < d->n ? i + d->o->n_return : d->n - 1;
    double         sum = 0;
    for (uint32_t k = i; k < last; k++) sum += (double)between(d, x, i, k) * rewards[k];
    *to = (DdpgTransition){.x = t->x,
                           .action = t->says,
                           .teacher = t->taught,
                           .next_x = d->at[last].x,
                           .n = t->n,
                           .next_n = d->at[last].n,
                           .reward = (float)sum,
                           .discount = between(d, x, i, last),
                           .weight = 1};
}

static Err run_both(const CourseRun *x, Diary *d, Arena *sim, Episode *out) {
    const EpisodeOptions *o = d->o;
    RelmasLoaded          loaded = {.actor = o->actor, .w = o->w, .explore = explore, .self = d};
    RelmasLoaded          none = {.w = NULL};
    ChipRun               run;
    ChipResult            r, rule = {0};
    TRY(course_run(x, &chip_policy_relmas, o->settings, &loaded, sim, &run, &r));
    if (o->sway > 0) TRY(course_run(x, &chip_policy_relmas, o->settings, &none, sim, &run, &rule));
    double *rewards = arena_new(d->arena, double, d->n + 1);
    reward(x, d, &r, &rule, rewards);
    *out =
        (Episode){.steps = arena_new(d->arena, DdpgTransition, d->n), .sla = course_sla(&run, &r)};
    for (uint32_t i = 0; i + 1 < d->n; i++)
        if (d->at[i].n > 0) make_step(x, d, rewards, i, &out->steps[out->n++]);
    return ERR_OK;
}

Err episode_run(const CourseRun *x, const EpisodeOptions *o, Arena *a, Episode *out) {
    Diary d = {.o = o, .arena = a, .rng = {o->seed}, .room = 1 << 14};
    Arena sim;
    d.at = arena_new(a, Thought, d.room);
    TRY(arena_init(&sim, (size_t)1 << 30));
    Err e = run_both(x, &d, &sim, out);
    arena_finish(&sim);
    return e;
}

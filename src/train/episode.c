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
} Diary;

static float *copy(Arena *a, const float *x, size_t n) {
    float *to = arena_new(a, float, n);
    if (n > 0) memcpy(to, x, n * sizeof *x);
    return to;
}

static void explore(void *self, const RelmasRule *rule, const ChipView *v, const RelmasLook *look,
                    float *says) {
    Diary *d = self;
    size_t n = (size_t)look->n * RELMAS_SAYS;
    noise_add(&d->rng, d->o->sigma, n, says);
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

// The usual number of requests in a period counts 1 - discount, so that values are about shares of
// requests in time.
static void reward(const CourseRun *x, const Diary *d, const ChipResult *r, double *out) {
    double per_period = x->load * x->stage->capacity * (double)x->stage->setup.period / 1e9;
    double each = (1 - (double)d->o->discount) / per_period;
    for (uint32_t i = 0; i < d->n; i++)
        out[i] = -(double)(d->o->crowding * d->at[i].crowded) * (1 - (double)d->o->discount);
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->answers[i].outcome != OUTCOME_MET) continue;
        uint32_t lo = 0, hi = d->n;  // the first thought after it
        while (lo < hi) {
            uint32_t mid = (lo + hi) / 2;
            if (d->at[mid].at <= r->answers[i].finish)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo > 0) out[lo - 1] += each;
    }
}

// Periods without requests are not thought about: what passes meanwhile is discounted all the same.
static float between(const Diary *d, const CourseRun *x, uint32_t from, uint32_t to) {
    double periods = (double)(d->at[to].at - d->at[from].at) / (double)x->stage->setup.period;
    return powf(d->o->discount, (float)periods);
}

static void make_step(const CourseRun *x, const Diary *d, const double *rewards, uint32_t i,
                      DdpgStep *to) {
    const Thought *t = &d->at[i];
    uint32_t       last = i + d->o->n_return < d->n ? i + d->o->n_return : d->n - 1;
    double         sum = 0;
    for (uint32_t k = i; k < last; k++) sum += (double)between(d, x, i, k) * rewards[k];
    *to = (DdpgStep){.x = t->x,
                     .action = t->says,
                     .teacher = t->taught,
                     .next_x = d->at[last].x,
                     .n = t->n,
                     .next_n = d->at[last].n,
                     .reward = (float)sum,
                     .discount = between(d, x, i, last),
                     .weight = 1};
}

Err episode_run(const CourseRun *x, const EpisodeOptions *o, Arena *a, Episode *out) {
    Diary        d = {.o = o, .arena = a, .rng = {o->seed}, .room = 1 << 14};
    RelmasLoaded loaded = {.actor = o->actor, .w = o->w, .explore = explore, .self = &d};
    ChipRun      run;
    ChipResult   r;
    Arena        sim;
    d.at = arena_new(a, Thought, d.room);
    TRY(arena_init(&sim, (size_t)1 << 30));
    Err e = course_run(x, &chip_policy_relmas, o->settings, &loaded, &sim, &run, &r);
    if (e == ERR_OK) {
        double *rewards = arena_new(a, double, d.n + 1);
        reward(x, &d, &r, rewards);
        *out = (Episode){.steps = arena_new(a, DdpgStep, d.n), .sla = course_sla(&run, &r)};
        for (uint32_t i = 0; i + 1 < d.n; i++)
            if (d.at[i].n > 0) make_step(x, &d, rewards, i, &out->steps[out->n++]);
    }
    arena_finish(&sim);
    return e;
}

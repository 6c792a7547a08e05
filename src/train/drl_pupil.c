#include "train/drl_pupil.h"

#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "learn/adam.h"
#include "policy/policies.h"

enum {
    ROLLOUTS = 8,  // of the same trace
    MORE = 4,      // episodes here for each that a lesson asks for: they are short
    PAGES = 1024,  // that are kept of an episode
    ROWS = 128,    // of a batch
};
static const float ENTROPY = 0.01f, STRAY = 0.3f, DOUBT = 0.1f;

typedef struct Page {  // one choice
    float    x[DRL_IN];
    bool     can[DRL_OUT];
    uint32_t took;
    TimeNs   at;
    float    gain;  // what came of it beyond what usually does
} Page;

typedef struct Diary {  // of an episode
    Page    *pages;
    uint32_t n;
    Rng      rng;
    bool     imitate;
    double   jct_s;
} Diary;

typedef struct DrlPupil {
    Pupil    pupil;
    DrlNet   net;
    FloatVec w, m, v, steps;  // parts of the state
    FloatVec gradient;
} DrlPupil;

typedef struct Lesson {
    DrlPupil          *of;
    const PupilLesson *l;
    Diary             *diaries;
    bool               imitate;
} Lesson;

// Chances of those that can be, as the network says.
static void chances(const bool *can, const float *says, float *out) {
    float most = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < DRL_OUT; i++)
        if (can[i] && says[i] > most) most = says[i];
    for (uint32_t i = 0; i < DRL_OUT; i++) sum += out[i] = can[i] ? repro_exp(says[i] - most) : 0;
    for (uint32_t i = 0; i < DRL_OUT; i++) out[i] /= sum;
}

static uint32_t draw(Rng *rng, const float *p) {
    float    at = rng_unit(rng);
    uint32_t last = 0;
    for (uint32_t i = 0; i < DRL_OUT; i++) {
        if (!(p[i] > 0)) continue;
        last = i;
        if (at < p[i]) break;
        at -= p[i];
    }
    return last;
}

static uint32_t first_that_can(const DrlObservation *look) {
    uint32_t i = 0;
    while (i < DRL_WINDOW && !look->can[i]) i++;
    return i;
}

// Who imitates strays now and then, so as to learn the way back.
static uint32_t choose(void *self, const ClusterView *v, const DrlObservation *look,
                       const float *says) {
    Diary *d = self;
    float  p[DRL_OUT];
    bool   stray = d->imitate && rng_unit(&d->rng) < STRAY;
    float  none[DRL_OUT] = {0};
    chances(look->can, stray ? none : says, p);
    uint32_t rule = first_that_can(look), took = d->imitate ? rule : draw(&d->rng, p);
    if (stray) took = draw(&d->rng, p);
    if (d->n == PAGES) return took;
    Page *page = &d->pages[d->n++];
    memcpy(page->x, look->x, sizeof page->x);
    memcpy(page->can, look->can, sizeof page->can);
    page->took = d->imitate ? rule : took;
    page->at = v->now;
    return took;
}

static ClusterCourseRun run_of(const Lesson *x, uint32_t i) {
    uint32_t n = x->l->episodes * MORE;
    uint32_t trace = x->imitate ? i : i / ROLLOUTS;
    return cluster_course_draw(x->l->course, x->l->seed, (uint64_t)x->l->generation * n + trace);
}

// What is still to come of jobs' time in the cluster after each choice, less is better.
static void look_back(Diary *d, const ClusterRun *run, const ClusterResult *r) {
    for (uint32_t k = 0; k < d->n; k++) {
        Page  *p = &d->pages[k];
        double sum = 0;
        for (uint32_t j = 0; j < r->n; j++) {
            TimeNs from = run->jobs->at[j].submit > p->at ? run->jobs->at[j].submit : p->at;
            if (r->ends[j].finish > from) sum += (double)(r->ends[j].finish - from);
        }
        p->gain = (float)(-sum / (double)CLUSTER_SECOND / r->n);
    }
}

static Err play(void *self, uint32_t i, Arena *a) {
    Lesson          *x = self;
    Diary           *d = &x->diaries[i];
    ClusterCourseRun at = run_of(x, i);
    DrlLoaded        loaded = {.net = x->of->net, .w = x->of->w.at, .choose = choose, .self = d};
    ClusterRun       run = {.policy = x->of->pupil.policy, .settings = x->of->pupil.settings};
    ClusterResult    result;
    ClusterCourseEnd end;
    run.loaded = &loaded;
    d->rng = rng_fork((Rng){x->l->seed ^ 0xd1a}, (uint64_t)x->l->generation << 20 | i);
    d->imitate = x->imitate;
    TRY(cluster_course_watch(&at, &run, a, &result, &end));
    look_back(d, &run, &result);
    d->jct_s = end.jct_s;
    return ERR_OK;
}

static float to_come(const Diary *d, TimeNs at) {  // after the last choice up to a time
    uint32_t lo = 0, hi = d->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (d->pages[mid].at <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return d->n > 0 ? d->pages[lo > 0 ? lo - 1 : 0].gain : 0;
}

// Gains over the mean of the runs on the same trace from the same time on, in their deviations.
static void weigh(Diary *group, float *room) {
    double   squares = 0;
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < ROLLOUTS; i++)
        for (uint32_t k = 0; k < group[i].n; k++, n++) {
            float mean = 0;
            for (uint32_t j = 0; j < ROLLOUTS; j++)
                mean += to_come(&group[j], group[i].pages[k].at) / ROLLOUTS;
            room[n] = group[i].pages[k].gain - mean;
            squares += (double)room[n] * (double)room[n];
        }
    float scale = squares > 0 ? (float)(1 / sqrt(squares / n)) : 0;
    for (uint32_t i = 0; i < ROLLOUTS; i++)
        for (uint32_t k = 0; k < group[i].n; k++) group[i].pages[k].gain = room[at++] * scale;
}

typedef struct Batch {
    float *x, *y, *dy, *cache;
} Batch;

// Cross entropy, weighed by gains. Who imitates is to leave others a chance, who learns is to go on
// trying: there the entropy of chances counts.
static double slope(const Page *p, const float *says, bool imitate, float *dy) {
    float chance[DRL_OUT], spread = 0, weight = imitate ? 1 : p->gain, can = 0;
    chances(p->can, says, chance);
    for (uint32_t i = 0; i < DRL_OUT; i++) can += p->can[i] ? 1 : 0;
    for (uint32_t i = 0; i < DRL_OUT; i++)
        if (chance[i] > 1e-7f) spread -= chance[i] * repro_log(chance[i]);
    for (uint32_t i = 0; i < DRL_OUT; i++) {
        float c = chance[i], wants = i == p->took ? 1 : 0;
        if (imitate) wants = (1 - DOUBT) * wants + (p->can[i] ? DOUBT / can : 0);
        dy[i] = weight * (c - wants) / ROWS;
        if (!imitate && c > 1e-7f) dy[i] += ENTROPY * c * (repro_log(c) + spread) / ROWS;
    }
    float c = chance[p->took];
    return (double)(-weight * repro_log(c > 1e-7f ? c : 1e-7f));
}

static double update(DrlPupil *d, Page *const *pages, uint32_t n, bool imitate, Batch *b) {
    double      loss = 0;
    AdamOptions adam = adam_defaults(imitate ? 1e-3f : 2e-4f);
    memset(b->x, 0, (size_t)ROWS * DRL_IN * sizeof *b->x);
    memset(b->dy, 0, (size_t)ROWS * DRL_OUT * sizeof *b->dy);
    for (uint32_t i = 0; i < n; i++)
        memcpy(b->x + (size_t)i * DRL_IN, pages[i]->x, sizeof pages[i]->x);
    drl_net_forward(d->net, d->w.at, ROWS, b->x, b->y, b->cache);
    for (uint32_t i = 0; i < n; i++)
        loss +=
            slope(pages[i], b->y + (size_t)i * DRL_OUT, imitate, b->dy + (size_t)i * DRL_OUT) / n;
    float_vec_zero(d->gradient);
    drl_net_backward(d->net, d->w.at, d->gradient.at, ROWS, b->x, b->dy, b->cache);
    float_vec_clip(d->gradient, 1);
    d->steps.at[0] += 1;
    adam_step(&adam, (uint64_t)d->steps.at[0], d->w, d->gradient, d->m, d->v);
    return loss;
}

static Page **shuffle(const Lesson *x, uint32_t n, Arena *a, uint32_t *total) {
    Rng rng = rng_fork((Rng){x->l->seed ^ 0x5f1e}, x->l->generation);
    *total = 0;
    for (uint32_t i = 0; i < n; i++) *total += x->diaries[i].n;
    Page   **all = arena_new(a, Page *, *total);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < x->diaries[i].n; k++) all[at++] = &x->diaries[i].pages[k];
    for (uint32_t i = *total; i > 1; i--) {
        uint32_t j = (uint32_t)rng_below(&rng, i);
        Page    *p = all[i - 1];
        all[i - 1] = all[j];
        all[j] = p;
    }
    return all;
}

// Once through all pages, or as often as a lesson asks for when there is a rule to imitate.
static double study(const Lesson *x, uint32_t n, Arena *a) {
    DrlPupil *d = x->of;
    uint32_t  total, batches = 0;
    Page    **all = shuffle(x, n, a, &total);
    Batch     b = {.x = arena_new(a, float, (size_t)ROWS *DRL_IN),
                   .y = arena_new(a, float, (size_t)ROWS *DRL_OUT),
                   .dy = arena_new(a, float, (size_t)ROWS *DRL_OUT),
                   .cache = arena_new(a, float, drl_net_cache(d->net, ROWS))};
    double    loss = 0;
    uint32_t  most = x->imitate ? x->l->updates : (total + ROWS - 1) / ROWS;
    for (uint32_t from = 0; total > 0 && batches < most; from += ROWS, batches++) {
        if (from >= total) from = 0;
        uint32_t some = total - from < ROWS ? total - from : ROWS;
        loss += update(d, all + from, some, x->imitate, &b);
    }
    return batches > 0 ? loss / batches : 0;
}

static Err learn(Pupil *p, const PupilLesson *l, Arena *scratch, bool imitate, double *loss) {
    Lesson   x = {.of = p->self, .l = l, .imitate = imitate};
    uint32_t n = (l->episodes * MORE + ROLLOUTS - 1) / ROLLOUTS * ROLLOUTS;
    x.diaries = arena_new(scratch, Diary, n);
    for (uint32_t i = 0; i < n; i++) x.diaries[i].pages = arena_new(scratch, Page, PAGES);
    TRY(runs_each(l->runs, n, play, &x));
    float *room = arena_new(scratch, float, (size_t)ROLLOUTS *PAGES);
    for (uint32_t i = 0; !imitate && i < n; i += ROLLOUTS) weigh(&x.diaries[i], room);
    *loss = study(&x, n, scratch);
    return ERR_OK;
}

static Err imitate_rule(Pupil *p, const PupilLesson *l, Arena *scratch, double *loss) {
    return learn(p, l, scratch, true, loss);
}

static Err learn_by_gradient(Pupil *p, const PupilLesson *l, Arena *scratch, double *loss) {
    return learn(p, l, scratch, false, loss);
}

static const void *loaded(const Pupil *p, const float *w, Arena *a) {
    const DrlPupil *d = p->self;
    DrlLoaded      *l = arena_new(a, DrlLoaded, 1);
    *l = (DrlLoaded){.net = d->net, .w = w};
    return l;
}

static void moved(Pupil *p) {
    DrlPupil *d = p->self;
    float_vec_zero(d->m);
    float_vec_zero(d->v);
    float_vec_zero(d->steps);
}

Err drl_pupil_open(uint32_t hidden, const void *settings, uint64_t seed, Arena *a, Pupil **out) {
    DrlPupil *d = arena_new(a, DrlPupil, 1);
    d->net = (DrlNet){hidden};
    size_t   n = drl_net_params(d->net), head = drl_net_output_layer(d->net);
    FloatVec state = float_vec_new(a, 3 * n + 1);
    Rng      rng = rng_fork((Rng){seed}, 2);
    d->w = float_vec_part(state, 0, n);
    d->m = float_vec_part(state, n, n);
    d->v = float_vec_part(state, 2 * n, n);
    d->steps = float_vec_part(state, 3 * n, 1);
    d->gradient = float_vec_new(a, n);
    drl_net_init(d->net, d->w.at, &rng);
    d->pupil = (Pupil){.policy = &cluster_policy_drl_single,
                       .settings = settings,
                       .w = d->w,
                       .head = float_vec_part(d->w, head, n - head),
                       .state = state,
                       .facts = drl_weights_facts(d->net, a),
                       .loaded = loaded,
                       .imitate = imitate_rule,
                       .learn = learn_by_gradient,
                       .moved = moved,
                       .self = d};
    *out = &d->pupil;
    return ERR_OK;
}

#include "train/maifs_episode.h"

#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "policy/policies.h"

enum {
    ROOM = 1 << 15,  // recorded decisions
    STEPS = 3,       // decisions of an n-step return
    STEPS_MAX = 12,  // if agents explore in the following ones
};
static const double HORIZON_H = 4, BUSY_WEIGHT = 0.2, MEAN_JOB_S = 600;

typedef struct Epoch {
    MaifsQState state;
    double      at_h, jobs;  // jobs: in the system, per GPU
    bool        explored;
} Epoch;

typedef struct Recording {
    const MaifsEpisodeOptions *o;
    Arena                     *arena;
    Epoch                     *at;
    MaifsQSample              *samples;
    uint32_t                   n, n_samples;
} Recording;

static float *copy(Arena *a, const float *x, size_t n) {
    float *to = arena_new(a, float, n + 1);
    if (n > 0) memcpy(to, x, n * sizeof *x);
    return to;
}

static float *pool_of(const Maifs *m, Arena *a) {
    const MaifsInput *in = &m->input;
    float            *to = arena_new(a, float, MAIFS_Q_POOL), *jobs = to + MAIFS_SERVER;
    float             per_server = 1.0f / (float)in->n_servers;
    float             per_job = 1.0f / (float)(in->n_jobs > 0 ? in->n_jobs : 1);
    for (uint32_t i = 0; i < in->n_servers * (uint32_t)MAIFS_SERVER; i++)
        to[i % MAIFS_SERVER] += in->servers[i] * per_server;
    for (uint32_t i = 0; i < in->n_jobs * (uint32_t)MAIFS_JOB; i++)
        jobs[i % MAIFS_JOB] += in->jobs[i] * per_job;
    float *queue = jobs + MAIFS_JOB, crowd = (float)in->n_jobs / (float)m->setup->gpus;
    memcpy(queue, in->queue, MAIFS_QUEUE * sizeof *queue);
    queue[MAIFS_QUEUE] = crowd;
    queue[MAIFS_QUEUE + 1] = repro_log(1 + crowd);
    return to;
}

static OfferSample offer_of(const OfferSample *from, uint32_t job) {
    OfferSample d = *from;
    float       own = d.own > 1e-12f ? d.own : 1e-12f, gain = d.gain / own;
    d.at.job = job;
    d.own = own * (float)MEAN_JOB_S;
    d.gain = gain > 2 ? 2 : gain < -2 ? -2 : gain;
    return d;
}

// Only the jobs of these offers are kept.
static MaifsQState state_of(const Maifs *m, Arena *a) {
    uint32_t     n = m->n_chosen < MAIFS_Q_TOOK ? m->n_chosen : MAIFS_Q_TOOK;
    float       *jobs = arena_new(a, float, 2 * (size_t)n * MAIFS_JOB + 1);
    float       *u = arena_new(a, float, 2 * (size_t)n + 1);
    OfferSample *offers = arena_new(a, OfferSample, 2 * (size_t)n + 1);
    for (uint32_t i = 0; i < 2 * n; i++) {
        const OfferSample *d = i < n ? &m->chosen[i].took : &m->chosen[i - n].liked;
        memcpy(jobs + (size_t)i * MAIFS_JOB, m->jobs + (size_t)d->at.job * MAIFS_JOB,
               MAIFS_JOB * sizeof *jobs);
        u[i] = m->u[d->at.job];
        offers[i] = offer_of(d, i);
    }
    return (MaifsQState){
        .in = {.servers = copy(a, m->servers, (size_t)m->setup->n_servers * MAIFS_SERVER),
               .jobs = jobs,
               .queue = copy(a, m->queue, MAIFS_QUEUE),
               .n_servers = m->setup->n_servers,
               .n_jobs = 2 * n},
        .u = u,
        .pool = pool_of(m, a),
        .offers = offers,
        .n_took = n};
}

static MaifsQSample sample_of(const Maifs *m, const MaifsSettings *teacher, Arena *a) {
    uint32_t n = m->input.n_jobs;
    Maifs    as = *m;
    float   *u = arena_new(a, float, n + 1);
    as.cfg = teacher;
    as.params.margin = (float)teacher->margin;
    maifs_teacher_values(&as, u);
    return (MaifsQSample){
        .in = {.servers = copy(a, m->servers, (size_t)m->setup->n_servers * MAIFS_SERVER),
               .jobs = copy(a, m->jobs, (size_t)n * MAIFS_JOB),
               .queue = copy(a, m->queue, MAIFS_QUEUE),
               .n_servers = m->setup->n_servers,
               .n_jobs = n},
        .u = u};
}

// Called before a decision: the policy's state is that of the decision before.
static void watch(void *self, const ClusterView *v, const void *state) {
    Recording   *d = self;
    const Maifs *m = state;
    if (d->n > 0 && d->n <= ROOM) {
        Epoch *e = &d->at[d->n - 1];
        if (d->o->teacher == NULL) {
            e->state = state_of(m, d->arena);
            e->explored = m->n_explored > 0;
        } else if (d->n % 8 == 0 && d->n_samples < d->o->keep && m->input.n_jobs > 0 &&
                   m->input.n_jobs <= MAIFS_Q_JOBS) {
            d->samples[d->n_samples++] = sample_of(m, d->o->teacher, d->arena);
        }
    }
    if (d->n < ROOM)
        d->at[d->n] =
            (Epoch){.at_h = (double)v->now / (3600 * (double)CLUSTER_SECOND),
                    .jobs = (double)(v->n_waiting + v->n_running) / (double)v->setup->gpus};
    d->n++;
}

// Minus the time that jobs spend in the system, per GPU, and the time in which there are any.
static double reward(const Recording *d, uint32_t i) {
    const Epoch *e = &d->at[i];
    return -(d->at[i + 1].at_h - e->at_h) * (e->jobs + (e->jobs > 0 ? BUSY_WEIGHT : 0));
}

// Up to a later epoch in which no agent explored. The last epoch has no recorded action.
static bool make_step(const Recording *d, uint32_t i, uint32_t n, MaifsQStep *out) {
    double   sum = 0;
    uint32_t to = i;
    for (; to + 1 < n && (to < i + STEPS || d->at[to].explored); to++) {
        if (to == i + STEPS_MAX) return false;
        sum += exp(-(d->at[to].at_h - d->at[i].at_h) / HORIZON_H) * reward(d, to);
    }
    *out = (MaifsQStep){.now = d->at[i].state, .reward = (float)sum};
    if (to + 1 == n) return true;
    out->next = d->at[to].state;
    out->discount = (float)exp(-(d->at[to].at_h - d->at[i].at_h) / HORIZON_H);
    return true;
}

static void make_steps(const Recording *d, MaifsEpisode *out) {
    uint32_t n = d->n < ROOM ? d->n : ROOM, every = n / d->o->keep + 1;
    out->steps = arena_new(d->arena, MaifsQStep, d->o->keep);
    for (uint32_t i = 0; i + 1 < n && out->n_steps < d->o->keep; i += every)
        out->n_steps += make_step(d, i, n, &out->steps[out->n_steps]);
}

Err maifs_episode_run(const ClusterTrainRun *x, const MaifsEpisodeOptions *o, Arena *a,
                      MaifsEpisode *out) {
    Recording          d = {.o = o, .arena = a};
    MaifsLoaded        loaded = {.w = o->w, .epsilon = o->epsilon, .record = o->teacher == NULL};
    ClusterRun         run = {.policy = &cluster_policy_maifs, .settings = o->settings};
    ClusterResult      result;
    ClusterTrainResult end;
    d.at = arena_new(a, Epoch, ROOM);
    d.samples = arena_new(a, MaifsQSample, o->keep);
    run.loaded = &loaded;
    run.watch = watch;
    run.watcher = &d;
    TRY(cluster_curriculum_run(x, &run, a, &result, &end));
    *out = (MaifsEpisode){.samples = d.samples, .n_samples = d.n_samples};
    if (o->teacher == NULL) make_steps(&d, out);
    return ERR_OK;
}

static const size_t OFFER_PAIR = 2 * sizeof(OfferSample) / sizeof(float);  // floats of two offers

// A state: numbers of servers, jobs and offers, then their values.
static size_t state_size(const MaifsQState *x) {
    return 3 + (size_t)x->in.n_servers * MAIFS_SERVER + (size_t)x->in.n_jobs * (MAIFS_JOB + 1) +
           MAIFS_QUEUE + MAIFS_Q_POOL + x->n_took * OFFER_PAIR;
}

static float *put(float *to, const void *from, size_t n) {
    if (n > 0) memcpy(to, from, n * sizeof *to);
    return to + n;
}

static float *state_write(const MaifsQState *x, float *to) {
    const uint32_t n[3] = {x->in.n_servers, x->in.n_jobs, x->n_took};
    to = put(to, n, 3);
    to = put(to, x->offers, n[2] * OFFER_PAIR);
    to = put(to, x->in.servers, (size_t)n[0] * MAIFS_SERVER);
    to = put(to, x->in.jobs, (size_t)n[1] * MAIFS_JOB);
    to = put(to, x->u, n[1]);
    to = put(to, x->in.queue, MAIFS_QUEUE);
    return put(to, x->pool, MAIFS_Q_POOL);
}

static const float *state_read(const float *from, MaifsQState *x) {
    uint32_t n[3];
    memcpy(n, from, sizeof n);
    from += 3;
    x->in.n_servers = n[0];
    x->in.n_jobs = n[1];
    x->n_took = n[2];
    x->offers = (const OfferSample *)(const void *)from;
    from += n[2] * OFFER_PAIR;
    x->in.servers = from;
    x->in.jobs = x->in.servers + (size_t)n[0] * MAIFS_SERVER;
    x->u = x->in.jobs + (size_t)n[1] * MAIFS_JOB;
    x->in.queue = x->u + n[1];
    x->pool = x->in.queue + MAIFS_QUEUE;
    return x->pool + MAIFS_Q_POOL;
}

static MaifsQState empty(const MaifsQStep *s) {  // after the end of an episode
    MaifsQState x = s->now;
    x.in.n_servers = x.in.n_jobs = x.n_took = 0;
    return x;
}

size_t maifs_step_size(const MaifsQStep *s) {
    MaifsQState end = empty(s);
    return 2 + state_size(&s->now) + state_size(s->discount > 0 ? &s->next : &end);
}

void maifs_step_write(const MaifsQStep *s, float *to) {
    MaifsQState end = empty(s);
    to[0] = s->reward;
    to[1] = s->discount;
    to = state_write(&s->now, to + 2);
    state_write(s->discount > 0 ? &s->next : &end, to);
}

MaifsQStep maifs_step_read(const float *from) {
    MaifsQStep s = {.reward = from[0], .discount = from[1]};
    from = state_read(from + 2, &s.now);
    state_read(from, &s.next);
    return s;
}

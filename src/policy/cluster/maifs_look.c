#include "policy/cluster/maifs_look.h"

#include <math.h>

#include "base/check.h"
#include "learn/act.h"

typedef struct Row {  // filled from the left
    float   *at;
    uint32_t n, most;
} Row;

static void put(Row *r, double x) {
    CHECK(r->n < r->most);
    r->at[r->n++] = (float)x;
}

static void pad(Row *r) {
    while (r->n < r->most) r->at[r->n++] = 0;
}

static double log1(double x) { return act_log((float)(1 + x)); }
static double hours(double seconds) { return log1(seconds / 60) / 8; }  // 1 is two days
static double part(double x, double of) { return of > 0 ? x / of : 0; }

typedef struct Crowd {  // of guests
    double   work, longest, soonest, rate, thirst, cores, memory;
    uint32_t shared, wide, n;
} Crowd;

static Crowd crowd_of(const Inn *inn, const Want *wants) {
    Crowd c = {.soonest = 1e9};
    for (uint32_t i = 0; i < inn->n; i++) {
        const Guest *g = &inn->at[i];
        const Want  *w = &wants[g->task];
        double       left = w->left_s;
        c.work += left * g->gpus;
        c.longest = fmax(c.longest, left);
        c.soonest = fmin(c.soonest, left);
        c.rate += inn_rate(g, w);
        c.thirst += w->rungs[w->n_rungs - 1].rate - w->rungs[g->rung].rate;
        c.cores += g->cores_milli;
        c.memory += g->memory_mib;
        c.shared += g->share < 1;
        c.wide += g->sliced;
        c.n++;
    }
    return c;
}

void maifs_look_server(const ClusterSetup *s, const Inn *inn, const Want *wants, float *out) {
    Row      r = {.at = out, .most = MAIFS_SERVER};
    Crowd    c = crowd_of(inn, wants);
    uint32_t used = (uint32_t)__builtin_popcountll(inn->used);
    put(&r, 1);
    put(&r, part(inn->gpus - used, inn->gpus));
    put(&r, 1 - part(c.cores, inn->cores_milli));
    put(&r, 1 - part(c.memory, inn->memory_mib));
    put(&r, hours(part(c.work, inn->gpus)));
    put(&r, hours(c.longest));
    put(&r, c.n > 0 ? hours(c.soonest) : 0);
    put(&r, part(c.rate, c.n));
    put(&r, part(c.thirst, c.n));
    put(&r, part(c.shared, c.n));
    put(&r, part(c.wide, c.n));
    put(&r, part(c.n, 16));
    put(&r, part(inn->gpus, s->most_gpus));
    pad(&r);
}

void maifs_look_job(const ClusterView *v, const Want *w, const ClusterTask *t, float *out) {
    Row             r = {.at = out, .most = MAIFS_JOB};
    const WantRung *low = &w->rungs[0], *top = &w->rungs[w->n_rungs - 1];
    bool            runs = t->state == CLUSTER_RUNNING;
    double          left = w->left_s, gpus = w->gpus * w->milli / 1000.0;
    put(&r, 1);
    put(&r, hours(left));
    put(&r, hours(left / fmax(top->rate, 0.1)));
    put(&r, hours(left * gpus));
    put(&r, log1(gpus) / 3);
    put(&r, w->wide);
    put(&r, w->gpus == 0);
    put(&r, runs);
    put(&r, hours((double)(v->now - t->job.submit) / 1e9));
    put(&r, hours((double)cluster_held(v, t) / 1e9));
    put(&r, hours(w->restart_s * 60) / 2);
    put(&r, fmin(t->preemptions, 8) / 8);
    put(&r, top->rate - 1);
    put(&r, low->rate);
    put(&r, low->cores_milli / 1e4);
    put(&r, top->cores_milli / 1e4);
    put(&r, low->memory_mib / 1e5);
    put(&r, top->memory_mib / 2e5);
    if (w->class != CLUSTER_NONE) {
        const ClusterProfile *p = &v->setup->profiles->at[w->class];
        put(&r, p->gpu_util);
        put(&r, p->gpu_memory_util);
        put(&r, p->gpu_gb / 16);
    }
    pad(&r);
}

void maifs_look_queue(const ClusterView *v, const Want *wants, float *out) {
    Row    r = {.at = out, .most = MAIFS_QUEUE};
    double work = 0, longest = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const Want *w = &wants[v->waiting[i]];
        work += (double)w->left_s * w->gpus * w->milli / 1000.0;
        longest = fmax(longest, w->left_s);
    }
    put(&r, 1);
    put(&r, hours(work / (double)v->setup->gpus));
    put(&r, log1(v->n_waiting) / 8);
    put(&r, hours(longest));
}

void maifs_look_offer(const Inn *inn, const Want *w, const Offer *o, float *out) {
    Row    r = {.at = out, .most = MAIFS_OFFER};
    double own = fmax(o->own, 1e-30), left = inn->gpus;
    double rate = w->rungs[w->n_rungs - 1].rate;
    left -= __builtin_popcountll(inn->used | (o->mates > 0 ? 0 : o->mask));
    put(&r, 1);
    put(&r, fmax(-2, fmin(2, o->gain / own)));
    put(&r, fmin(2, o->lost / own));
    put(&r, o->victims / 4.0);
    put(&r, o->mates);
    put(&r, o->victims > 0);
    put(&r, o->rung / (double)WANT_RUNGS);
    put(&r, o->rate);
    put(&r, part(o->rate, rate));
    put(&r, part(left, inn->gpus));
    put(&r, left <= 0);
    put(&r, part(o->give, w->gpus));
    put(&r,
        w->rungs[o->rung].cores_milli * (double)want_units(w, o->give) / (inn->cores_milli + 1.0));
    put(&r,
        w->rungs[o->rung].memory_mib * (double)want_units(w, o->give) / (inn->memory_mib + 1.0));
    pad(&r);
}

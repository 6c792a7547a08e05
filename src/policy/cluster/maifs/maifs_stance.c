// What each agent sees for its stance, the stance it takes, and GPUs that are held for a gang.
#include <math.h>

#include "learn/activation.h"
#include "policy/cluster/maifs/maifs.h"

typedef struct Uncertainty {  // sums over tasks
    double   certainty, rate_sd, stops, gangs;
    uint32_t n, largest;
} Uncertainty;

static void add(Uncertainty *u, const Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    u->certainty += (double)m->utilities[task].certainty;
    u->rate_sd += t->spread.rate_sd;
    u->stops += t->preemptions;
    u->gangs += t->job.gpus > 1;
    if (t->job.gpus > u->largest) u->largest = t->job.gpus;
    u->n++;
}

static double log1(double x) { return repro_log((float)(1 + x)); }
static double per(double sum, uint32_t n) { return n > 0 ? sum / n : 0; }

// Of the whole cluster, after the features of a server and of the queue.
static void put_cluster(const Maifs *m, float *to) {
    const ClusterView *v = m->view;
    Uncertainty        waits = {0}, runs = {0};
    double             gpus = (double)m->setup->gpus;
    for (uint32_t i = 0; i < v->n_waiting; i++) add(&waits, m, v->waiting[i]);
    for (uint32_t i = 0; i < v->n_running; i++) add(&runs, m, v->running[i]);
    to[0] = (float)log1(v->n_waiting / gpus);
    to[1] = (float)log1(v->n_running / gpus);
    to[2] = (float)per(waits.certainty, waits.n);
    to[3] = (float)per(runs.certainty, runs.n);
    to[4] = (float)per(runs.rate_sd, runs.n);
    to[5] = (float)per(waits.gangs, waits.n);
    to[6] = (float)(fmin(waits.largest, 64) / m->setup->most_gpus / 4);
    to[7] = (float)per(runs.stops, runs.n) / 4;
    to[8] = (float)log1(m->drain_s / 60) / 8;
}

static void put_server(const Maifs *m, const ServerPlan *plan, float *to) {
    Uncertainty here = {0};
    for (uint32_t i = 0; i < plan->n; i++) add(&here, m, plan->at[i].task);
    to[0] = (float)per(here.certainty, here.n);
    to[1] = (float)per(here.rate_sd, here.n);
    to[2] = (float)per(here.stops, here.n) / 4;
}

static void observe_scene(Maifs *m) {
    enum { QUEUE = MAIFS_SERVER, CLUSTER = QUEUE + MAIFS_QUEUE, HERE = CLUSTER + 9 };
    float queue[MAIFS_QUEUE], cluster[HERE - CLUSTER];
    maifs_features_queue(m->view, m->utilities, queue);
    put_cluster(m, cluster);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        float *to = m->scene + (size_t)i * STANCE_FEATURES;
        maifs_features_server(m->setup, &m->plans[i], m->utilities, to);
        for (uint32_t k = 0; k < MAIFS_QUEUE; k++) to[QUEUE + k] = queue[k];
        for (uint32_t k = 0; k < HERE - CLUSTER; k++) to[CLUSTER + k] = cluster[k];
        put_server(m, &m->plans[i], to + HERE);
    }
}

static bool is_forced(const Maifs *m) {
    const StanceForced *f = &m->loaded->forced;
    return m->view->now >= f->from && m->view->now < f->until;
}

void maifs_take_stances(Maifs *m) {
    uint32_t n = m->setup->n_servers;
    bool     learned = m->loaded->stance != NULL;
    if (learned || m->loaded->record) observe_scene(m);
    if (learned) stance_logits(m->loaded->stance, n, m->scene, m->stance_hidden, m->stance_logits);
    for (uint32_t i = 0; i < n; i++) {
        m->stances[i] =
            learned ? stance_mean(m->stance_logits + (size_t)i * STANCES) : stance_usual();
        if (is_forced(m)) m->stances[i] = stance_row(m->loaded->forced.row);
        m->plans[i].tilt = m->stances[i].levels - 1;
    }
}

static uint32_t free_gpus(const ServerPlan *plan) {
    return plan->gpus - (uint32_t)__builtin_popcountll(plan->used);
}

// The waiting gang with the highest value per GPU that the server has, but not free.
static uint32_t gang_of(const Maifs *m, const ServerPlan *plan) {
    uint32_t best = CLUSTER_NONE, free = free_gpus(plan);
    for (uint32_t i = 0; i < m->n_window; i++) {
        uint32_t t = m->window[i], gpus = m->utilities[t].gpus;
        if (maifs_taken(m, t) || gpus < 2 || gpus <= free || gpus > plan->gpus) continue;
        if (best == CLUSTER_NONE || m->density[t] > m->density[best]) best = t;
    }
    return best;
}

void maifs_hold(Maifs *m, uint32_t server) {
    size_t   first = server * m->each;
    float    hold = m->stances[server].hold;
    uint32_t gang = CLUSTER_NONE;
    if (!(hold > 0) || m->ignore_net || m->migrating) return;
    gang = gang_of(m, &m->plans[server]);
    for (uint32_t i = 0; gang != CLUSTER_NONE && i < m->n_offers[server]; i++) {
        const Offer *o = &m->offers[first + i];
        bool         takes = o->victims == 0 && o->corunners == 0;
        if (!takes || m->utilities[o->task].gpus >= m->utilities[gang].gpus) continue;
        m->payoffs[first + i] -= hold * o->own;
    }
}

// What agents see at the beginning of an epoch, and what tasks are worth after they told each
// other.
#include <math.h>

#include "learn/act.h"
#include "policy/cluster/maifs.h"

typedef struct Work {  // seconds of all GPUs, cores and memory
    double gpus, cores, memory;
} Work;

static void add_work(Work *w, const ClusterView *v, const uint32_t *tasks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &v->tasks[tasks[i]];
        TimeNs             left = cluster_left(v, t);
        double             s = left > 0 ? (double)left / 1e9 : 0;
        w->gpus += s * (double)cluster_gpu_milli(&t->job);
        w->cores += s * t->job.cores_milli;
        w->memory += s * t->job.memory_mib;
    }
}

// By what is scarcest, with what jobs ask for.
static double drain_of(const ClusterView *v) {
    const ClusterSetup *s = v->setup;
    Work                w = {0};
    add_work(&w, v, v->waiting, v->n_waiting);
    add_work(&w, v, v->running, v->n_running);
    double gpus = w.gpus / ((double)s->gpus * CLUSTER_WHOLE);
    double cores = w.cores / (double)(s->cores_milli + 1);
    double memory = w.memory / (double)(s->memory_mib + 1);
    return fmax(gpus, fmax(cores, memory));
}

static void look_at(Maifs *m, const uint32_t *tasks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &m->view->tasks[tasks[i]];
        Want              *w = &m->wants[tasks[i]];
        if (w->job != t->job.id + 1) want_open(w, m->setup, &t->job, &m->rules);
        want_look(w, m->view, t, m->drain_s, &m->rules);
        m->fate[tasks[i]] = MAIFS_STAYS;
    }
}

static void show(Maifs *m, uint32_t task) {
    uint32_t k = m->input.n_jobs++;
    maifs_look_job(m->view, &m->wants[task], &m->view->tasks[task],
                   m->jobs + (size_t)k * MAIFS_JOB);
    m->row[task] = k;
    m->seen[k] = task;
}

enum { BUCKETS = 4096 };

static uint32_t bucket_of(float x) { return (uint32_t)act_int(x) >> 19; }  // in the order of x

// The densest and, for they may be critical, the longest; all of a short queue.
static void show_queue(Maifs *m) {
    const ClusterView *v = m->view;
    uint32_t           counts[BUCKETS] = {0}, low = 0, high = BUCKETS - 1, n = v->n_waiting;
    for (uint32_t i = 0; i < n; i++) counts[bucket_of(m->dense[v->waiting[i]])]++;
    for (uint32_t sum = counts[high]; sum < MAIFS_SEEN * 3 / 4 && high > 0; sum += counts[high])
        high--;
    for (uint32_t sum = counts[0]; sum < MAIFS_SEEN / 4 && low < high; sum += counts[low]) low++;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t t = v->waiting[i], b = bucket_of(m->dense[t]);
        m->row[t] = CLUSTER_NONE;
        if ((b >= high || b < low) || n <= MAIFS_SEEN) show(m, t);
    }
}

static void value_anew(Maifs *m) {
    maifs_net_see(&m->net, m->loaded->w, &m->input, m->cache, m->u);
    for (uint32_t k = 0; k < m->input.n_jobs; k++)
        m->wants[m->seen[k]].value *= act_exp(MAIFS_REACH * m->u[k]);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) inn_count(&m->inns[i], m->wants);
}

static void see_all(Maifs *m) {
    const ClusterView *v = m->view;
    m->input = (MaifsInput){.servers = m->servers,
                            .jobs = m->jobs,
                            .queue = m->queue,
                            .n_servers = m->setup->n_servers};
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        maifs_look_server(m->setup, &m->inns[i], m->wants, m->servers + (size_t)i * MAIFS_SERVER);
    for (uint32_t i = 0; i < v->n_running; i++) show(m, v->running[i]);
    show_queue(m);
    maifs_look_queue(v, m->wants, m->queue);
    value_anew(m);
}

static void weigh(Maifs *m, uint32_t task) {
    const Want *w = &m->wants[task];
    float       gpus = w->gpus > 0 ? (float)w->gpus * (float)w->milli / CLUSTER_WHOLE : 0.1f;
    m->dense[task] = w->value * w->rungs[w->n_rungs - 1].rate / gpus;
}

// What a slice would do alone, and what company leaves of that.
static float alone_of(const Maifs *m, const Inn *h, const Guest *g) {
    const Want *w = &m->wants[g->task];
    return inn_pace(m->setup, w, h->server) * w->rungs[g->rung].rate;
}

static float company_of(const Maifs *m, const Inn *h, const Guest *g) {
    return g->share / (g->spread * inn_pace(m->setup, &m->wants[g->task], h->server));
}

static void find_slowest(Maifs *m, const Inn *h) {
    for (uint32_t g = 0; g < h->n; g++) {
        const Guest *x = &h->at[g];
        float       *slowest = &m->slowest[2 * (size_t)x->task];
        if (!x->sliced) continue;
        slowest[0] = fminf(slowest[0], alone_of(m, h, x));
        slowest[1] = fminf(slowest[1], company_of(m, h, x));
    }
}

static void slow_down(Maifs *m, Inn *h) {
    bool any = false;
    for (uint32_t g = 0; g < h->n; g++) {
        Guest       *x = &h->at[g];
        const float *slowest = &m->slowest[2 * (size_t)x->task];
        if (!x->sliced) continue;
        float by = slowest[0] * slowest[1] / (alone_of(m, h, x) * company_of(m, h, x));
        if (!(by < 1)) continue;
        x->spread *= by;
        x->share *= by;
        any = true;
    }
    if (any) inn_count(h, m->wants);
}

// A gang is as fast as the slowest of its slices, and as its worst company, wherever they are.
static void match_slices(Maifs *m) {
    for (uint32_t i = 0; i < m->view->n_running; i++)
        for (uint32_t k = 0; k < 2; k++) m->slowest[2 * (size_t)m->view->running[i] + k] = INFINITY;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) find_slowest(m, &m->inns[i]);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) slow_down(m, &m->inns[i]);
}

void maifs_see(Maifs *m, const ClusterView *v) {
    m->view = v;
    m->n_evicted = m->n_starts = m->n_chosen = m->n_strayed = 0;
    m->drain_s = drain_of(v);
    look_at(m, v->running, v->n_running);
    look_at(m, v->waiting, v->n_waiting);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) inn_open(&m->inns[i], v, i, m->wants);
    match_slices(m);
    for (uint32_t i = 0; i < v->n_waiting; i++) weigh(m, v->waiting[i]);
    if (m->loaded->w == NULL) return;
    see_all(m);
    for (uint32_t i = 0; i < v->n_waiting; i++) weigh(m, v->waiting[i]);
}

void maifs_teach(const Maifs *m, float *u) {
    WantRules rules = m->rules;
    rules.urge = (float)m->with->urge;
    for (uint32_t k = 0; k < m->input.n_jobs; k++) {
        const Want *w = &m->wants[m->seen[k]];
        float       x = act_log(w->left_s / want_urged(w, m->drain_s, &rules)) / MAIFS_REACH;
        u[k] = x > 1 ? 1 : x;
    }
}

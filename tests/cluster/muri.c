#include "tests/cluster/muri.h"

#include <string.h>

// 1. An event is a submission, an end or, with dlas-gpu, a running job that reaches the limit of
// its
//    queue. At each: jobs that are complete leave, arrivals join at the end of the list.
// 2. Every job that runs has done what time passed since the last event, less its overhead.
// 3. All jobs are placed anew in their order; who runs is complete after what it has left, unless
//    another event comes first.
enum { QUEUES = 3, MOST_NODES = 64 };
static const int64_t second = 1000000000, limit_s[QUEUES - 1] = {3250, 7200};

typedef struct Work {
    MuriJob *job;
    int64_t  left, executed;
    uint32_t queue;
    bool     runs;
} Work;

typedef struct Muri {
    MuriPolicy policy;
    Work      *works;  // [n] as submitted
    uint32_t  *order;  // [n_order] alive, in the order of the last event
    uint32_t  *other;
    uint32_t   n_order, n, submitted, nodes, per_node;
    int64_t    now;
} Muri;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t jump_at(const Muri *m, const Work *w) {
    if (m->policy != MURI_DLAS_GPU || w->queue == QUEUES - 1) return INT64_MAX;
    int64_t whole = limit_s[w->queue] / w->job->gpus;
    if (whole * w->job->gpus < limit_s[w->queue]) whole++;
    return m->now + whole * second - w->executed;
}

static int64_t next_event(const Muri *m) {
    int64_t at = m->submitted < m->n ? m->works[m->submitted].job->submit : INT64_MAX;
    for (uint32_t i = 0; i < m->n_order; i++) {
        const Work *w = &m->works[m->order[i]];
        if (w->runs) at = least(at, least(m->now + w->left, jump_at(m, w)));
    }
    return at;
}

static void leave_and_join(Muri *m, int64_t at) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_order; i++) {
        Work *w = &m->works[m->order[i]];
        if (w->runs && m->now + w->left == at) {
            w->job->end = at;
            continue;
        }
        m->order[n++] = m->order[i];
    }
    m->n_order = n;
    while (m->submitted < m->n && m->works[m->submitted].job->submit == at)
        m->order[m->n_order++] = m->submitted++;
}

static void progress(Muri *m, int64_t at) {
    for (uint32_t i = 0; i < m->n_order; i++) {
        Work   *w = &m->works[m->order[i]];
        int64_t passed = at - m->now;
        if (!w->runs) continue;
        w->executed += passed;
        if (passed > w->job->overhead) w->left -= passed - w->job->overhead;
    }
    m->now = at;
}

static int64_t key(const Muri *m, uint32_t i) {
    const Work *w = &m->works[i];
    return m->policy == MURI_SHORTEST_GPU ? w->left * w->job->gpus : w->left;
}

static void sort(Muri *m) {
    for (uint32_t i = 1; i < m->n_order; i++) {
        uint32_t one = m->order[i], k = i;
        for (; k > 0 && key(m, m->order[k - 1]) > key(m, one); k--) m->order[k] = m->order[k - 1];
        m->order[k] = one;
    }
}

// Whole nodes for more GPUs than a node has; else one node. All sizes are powers of two.
static bool place(const Muri *m, uint32_t *free, uint32_t gpus) {
    uint32_t each = gpus > m->per_node ? m->per_node : gpus, nodes = gpus / each, fit = 0;
    for (uint32_t i = 0; i < m->nodes; i++) fit += free[i] >= each;
    if (fit < nodes) return false;
    for (uint32_t i = 0; i < m->nodes && nodes > 0; i++) {
        if (free[i] < each) continue;
        free[i] -= each;
        nodes--;
    }
    return true;
}

static void set_runs(Muri *m, Work *w, bool runs) {
    if (runs && w->job->start < 0) w->job->start = m->now;
    if (w->runs && !runs) w->job->preemptions++;
    w->runs = runs;
}

static void run_shortest(Muri *m) {
    uint32_t free[MOST_NODES];
    sort(m);
    for (uint32_t i = 0; i < m->nodes; i++) free[i] = m->per_node;
    for (uint32_t i = 0; i < m->n_order; i++) {
        Work *w = &m->works[m->order[i]];
        set_runs(m, w, place(m, free, w->job->gpus));
    }
}

// The list holds the queues one after the other. Jobs that reached a limit go to the end of the
// next queue, in the order of submission; then GPUs are counted along the list.
static void demote(Muri *m) {
    uint32_t n = 0;
    for (uint32_t q = 0; q < QUEUES; q++) {
        for (uint32_t i = 0; i < m->n_order; i++) {
            const Work *w = &m->works[m->order[i]];
            bool        down =
                w->runs && q < QUEUES - 1 && w->executed * w->job->gpus >= limit_s[q] * second;
            if (w->queue == q && !down) m->other[n++] = m->order[i];
        }
        for (uint32_t i = 0; q > 0 && i < m->n; i++) {
            const Work *w = &m->works[i];
            bool        alive = i < m->submitted && w->job->end < 0;
            if (alive && w->runs && w->queue == q - 1 &&
                w->executed * w->job->gpus >= limit_s[q - 1] * second)
                m->other[n++] = i;
        }
    }
    for (uint32_t i = 0; i < m->n_order; i++) {
        Work *w = &m->works[m->order[i]];
        if (w->runs && w->queue < QUEUES - 1 &&
            w->executed * w->job->gpus >= limit_s[w->queue] * second)
            w->queue++;
    }
    memcpy(m->order, m->other, n * sizeof *m->order);
}

static void run_queues(Muri *m) {
    uint32_t free = m->nodes * m->per_node, n = 0;
    demote(m);
    for (uint32_t i = 0; i < m->n_order; i++) {
        Work *w = &m->works[m->order[i]];
        bool  runs = w->job->gpus <= free;
        if (runs) free -= w->job->gpus;
        set_runs(m, w, runs);
    }
    for (uint32_t q = 0; q < QUEUES; q++)
        for (int waits = 0; waits < 2; waits++)
            for (uint32_t i = 0; i < m->n_order; i++) {
                const Work *w = &m->works[m->order[i]];
                if (w->queue == q && w->runs == (waits == 0)) m->other[n++] = m->order[i];
            }
    memcpy(m->order, m->other, n * sizeof *m->order);
}

bool muri_run(MuriPolicy policy, uint32_t nodes, uint32_t gpus_per_node, MuriJob *jobs, uint32_t n,
              Arena *a) {
    size_t mark = a->used;
    Muri   m = {.policy = policy,
                .works = arena_new(a, Work, n + 1),
                .order = arena_new(a, uint32_t, n + 1),
                .other = arena_new(a, uint32_t, n + 1),
                .n = n,
                .nodes = nodes,
                .per_node = gpus_per_node};
    for (uint32_t i = 0; i < n; i++) {
        jobs[i].start = jobs[i].end = -1;
        jobs[i].preemptions = 0;
        m.works[i] = (Work){.job = &jobs[i], .left = jobs[i].work};
    }
    bool all = true;
    while (m.submitted < n || m.n_order > 0) {
        int64_t at = next_event(&m);
        all = at < INT64_MAX;
        if (!all) break;
        leave_and_join(&m, at);
        progress(&m, at);
        if (policy == MURI_DLAS_GPU)
            run_queues(&m);
        else
            run_shortest(&m);
    }
    arena_rewind(a, mark);
    return all;
}

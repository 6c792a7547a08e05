#include "tests/cluster/lucid.h"

#include "base/err.h"

// 1. Every second, in this order: complete jobs end, newly submitted ones join the queue, the
// policy
//    decides, chosen jobs are placed. Nothing happens between seconds.
// 2. Two families. fifo, sjf and qssf never preempt: they start jobs from the head of a sorted
//    queue until one does not fit, and that one blocks all behind it. srtf and tiresias grant a
//    quota of GPUs along a sorted list of all jobs; a job without a grant is stopped or waits.
// 3. All sorts are stable. What a stable sort leaves in place is order of entry (`entered`): into
//    the queue for those that wait, into the set of running jobs for those that run.
enum { TICK_S = 60, QUEUE_LIMIT = 18000, RESTART_S = 40, RESTART_WIDE_S = 60 };

typedef struct Work {
    LucidJob *job;
    uint32_t *held;  // [nodes] GPUs held; NULL before the first start
    int64_t   left;  // seconds still to run
    int64_t   attained;
    int64_t   waits_since;
    uint64_t  entered;
    bool      runs;
} Work;

typedef struct Lucid {
    Arena      *arena;
    LucidPolicy policy;
    Work       *works;  // [n] as submitted
    uint32_t   *free;   // [nodes]
    uint32_t   *list;   // those that wait and, to preempt, those that run; as last sorted
    uint32_t   *running;
    uint32_t   *chosen;
    int64_t     now;
    uint64_t    entries;
    uint32_t    nodes, per_node, n, n_list, n_running, submitted;
    bool        by_size;  // qssf: the queue holds only this second's arrivals
} Lucid;

static bool preempts(const Lucid *l) {
    return l->policy == LUCID_SRTF || l->policy == LUCID_TIRESIAS;
}

// The first key of the order.
static int64_t rank(const Lucid *l, const Work *w) {
    const LucidJob *j = w->job;
    switch (l->policy) {
    case LUCID_FIFO: return j->submit;
    case LUCID_SJF: return j->duration;
    case LUCID_QSSF: return l->by_size ? j->gpus : j->duration * j->gpus;
    case LUCID_SRTF: return w->left;
    case LUCID_TIRESIAS: return w->attained > QUEUE_LIMIT;
    default: CHECK(false); return 0;
    }
}

// The second key. qssf sorts by size first and by service after it, so size breaks its ties.
static int64_t second_rank(const Lucid *l, const Work *w) {
    if (l->policy == LUCID_QSSF) return w->job->gpus;
    return l->policy == LUCID_TIRESIAS ? w->job->submit : 0;
}

// On equal keys srtf, which sorts queue + running, has those that wait first; tiresias, which sorts
// running + queue, those that run.
static bool before(const Lucid *l, const Work *a, const Work *b) {
    if (rank(l, a) != rank(l, b)) return rank(l, a) < rank(l, b);
    if (second_rank(l, a) != second_rank(l, b)) return second_rank(l, a) < second_rank(l, b);
    if (preempts(l) && a->runs != b->runs) return l->policy == LUCID_SRTF ? b->runs : a->runs;
    return a->entered < b->entered;
}

static void sort_list(Lucid *l) {
    for (uint32_t i = 1; i < l->n_list; i++) {
        uint32_t x = l->list[i], at = i;
        for (; at > 0 && before(l, &l->works[x], &l->works[l->list[at - 1]]); at--)
            l->list[at] = l->list[at - 1];
        l->list[at] = x;
    }
}

// The node with the fewest free GPUs that suffice; the lowest of several.
static uint32_t tightest(const Lucid *l, uint32_t gpus) {
    uint32_t best = l->nodes;
    for (uint32_t i = 0; i < l->nodes; i++)
        if (l->free[i] >= gpus && (best == l->nodes || l->free[i] < l->free[best])) best = i;
    return best;
}

// The node with the most free GPUs of which the job holds none yet; the lowest of several.
static uint32_t widest(const Lucid *l, const Work *w) {
    uint32_t best = l->nodes;
    for (uint32_t i = 0; i < l->nodes; i++)
        if (!w->held[i] && (best == l->nodes || l->free[i] > l->free[best])) best = i;
    return best;
}

static bool hold(Lucid *l, Work *w, uint32_t node, uint32_t gpus) {
    if (node == l->nodes || l->free[node] < gpus) return false;
    l->free[node] -= gpus;
    w->held[node] = gpus;
    return true;
}

static void let_go(Lucid *l, Work *w) {
    for (uint32_t i = 0; i < l->nodes; i++) {
        l->free[i] += w->held[i];
        w->held[i] = 0;
    }
}

// A job that fits one node gets one. A larger one gets whole nodes, lowest first, and for what is
// left over not the tightest node but the widest: originally a walk from the emptiest node down.
static bool place(Lucid *l, Work *w) {
    if (!w->held) w->held = arena_new(l->arena, uint32_t, l->nodes);
    uint32_t gpus = w->job->gpus;
    if (gpus <= l->per_node) return hold(l, w, tightest(l, gpus), gpus);
    bool placed = true;
    for (; placed && gpus >= l->per_node; gpus -= l->per_node)
        placed = hold(l, w, widest(l, w), l->per_node);
    if (placed && gpus) placed = hold(l, w, widest(l, w), gpus);
    if (!placed) let_go(l, w);
    return placed;
}

static void remove_from(uint32_t *list, uint32_t *n, uint32_t x) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (list[i] != x) list[kept++] = list[i];
    *n = kept;
}

static bool start(Lucid *l, uint32_t x) {
    Work *w = &l->works[x];
    if (!place(l, w)) return false;
    l->running[l->n_running++] = x;
    if (!preempts(l)) remove_from(l->list, &l->n_list, x);
    if (!w->job->preemptions) w->job->start = l->now;
    w->job->queue += l->now - w->waits_since;
    w->runs = true;
    w->entered = l->entries++;
    return true;
}

// What a stop costs is added to what is left: it is paid in run time, after the next start.
static void preempt(Lucid *l, uint32_t x) {
    Work *w = &l->works[x];
    let_go(l, w);
    remove_from(l->running, &l->n_running, x);
    w->job->preemptions++;
    w->left += w->job->gpus <= l->per_node ? RESTART_S : RESTART_WIDE_S;
    w->waits_since = l->now;
    w->runs = false;
    w->entered = l->entries++;
}

// fifo, sjf and qssf end a job when start + duration comes. The preemptive two count `left` down
// once a second and end the job in the second that finds 0, so a run lasts duration + 1 seconds.
static bool is_over(const Lucid *l, Work *w) {
    if (!preempts(l)) return l->now == w->job->start + w->job->duration;
    if (!w->left) return true;
    w->left--;
    w->attained += w->job->gpus;
    return false;
}

static void release(Lucid *l) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->n_running; i++) {
        uint32_t x = l->running[i];
        if (is_over(l, &l->works[x])) {
            let_go(l, &l->works[x]);
            l->works[x].job->end = l->now;
            if (preempts(l)) remove_from(l->list, &l->n_list, x);
        } else {
            l->running[kept++] = x;
        }
    }
    l->n_running = kept;
}

static uint32_t admit(Lucid *l) {
    uint32_t came = 0;
    for (; l->submitted < l->n && l->works[l->submitted].job->submit == l->now; came++) {
        l->works[l->submitted].entered = l->entries++;
        l->list[l->n_list++] = l->submitted++;
    }
    return came;
}

// In qssf the queue is sorted by service only if a job in it is older than this second; new
// arrivals alone are sorted by size. Those that blocked are tried again, by service, a second
// later, to no avail unless something was released: all that are left are as large as the one that
// blocked.
static void sort_queue(Lucid *l, uint32_t came) {
    bool by_size = l->n_list == came;
    bool in_order = !came && by_size == l->by_size;  // those that left do not matter
    l->by_size = by_size;
    if (!in_order) sort_list(l);
}

static void start_from_head(Lucid *l) {
    while (l->n_list && start(l, l->list[0])) continue;
}

// The quota is the whole cluster's GPUs. No job blocks: one too large for the rest of the quota is
// passed over. One that does not fit on the nodes has spent its quota all the same:
// it waits on, and others were stopped, or not started, for nothing. Those stopped now are not
// started again in the same second, though they may fit.
static void share_quota(Lucid *l) {
    uint32_t  quota = l->nodes * l->per_node, n_chosen = 0, n_stopped = 0;
    uint32_t *stopped = l->chosen + l->n_list;
    for (uint32_t i = 0; i < l->n_list; i++) {
        Work *w = &l->works[l->list[i]];
        bool  granted = w->job->gpus <= quota;
        if (granted) quota -= w->job->gpus;
        if (granted && !w->runs) l->chosen[n_chosen++] = l->list[i];
        if (!granted && w->runs) stopped[n_stopped++] = l->list[i];
    }
    for (uint32_t i = 0; i < n_stopped; i++) preempt(l, stopped[i]);
    for (uint32_t i = 0; i < n_chosen; i++) start(l, l->chosen[i]);
}

static void decide(Lucid *l, uint32_t came) {
    if (!preempts(l)) {
        sort_queue(l, came);
        start_from_head(l);
    } else if (l->policy == LUCID_SRTF || l->now % TICK_S == 0) {
        sort_list(l);
        share_quota(l);
    }
}

static bool can_run(uint32_t nodes, uint32_t per_node, const LucidJob *jobs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (jobs[i].duration < 1 || !jobs[i].gpus) return false;
        if (jobs[i].gpus > (uint64_t)nodes * per_node) return false;
        if (jobs[i].submit < (i ? jobs[i - 1].submit : 0)) return false;
    }
    return true;
}

bool lucid_run(LucidPolicy policy, uint32_t nodes, uint32_t gpus_per_node, LucidJob *jobs,
               uint32_t n, Arena *a) {
    if (!can_run(nodes, gpus_per_node, jobs, n)) return false;
    Lucid l = {.arena = a, .policy = policy, .nodes = nodes, .per_node = gpus_per_node, .n = n};
    l.works = arena_new(a, Work, n);
    l.list = arena_new(a, uint32_t, n);
    l.running = arena_new(a, uint32_t, n);
    l.chosen = arena_new(a, uint32_t, 2 * (size_t)n);
    l.free = arena_new(a, uint32_t, nodes);
    for (uint32_t i = 0; i < nodes; i++) l.free[i] = gpus_per_node;
    for (uint32_t i = 0; i < n; i++) {
        jobs[i].queue = jobs[i].preemptions = 0;
        l.works[i] =
            (Work){.job = &jobs[i], .left = jobs[i].duration, .waits_since = jobs[i].submit};
    }
    for (; l.submitted < n || l.n_list || l.n_running; l.now++) {
        if (!l.n_list && !l.n_running)
            l.now = jobs[l.submitted].submit;  // an empty cluster only waits
        release(&l);
        decide(&l, admit(&l));
    }
    return true;
}

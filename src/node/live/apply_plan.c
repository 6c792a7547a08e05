// Applies a policy's plan as far as it is legal. Illegal actions are skipped and
// recorded, so that a faulty policy cannot corrupt the engine.
#include <math.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/sync.h"
#include "node/live/live_int.h"

enum { RELIEF_BLOCK_NS = 2000000, RELIEF_LOOK_NS = 10000000 };

static const char *const reasons[] = {
#define X(id, text) text,
#include "contract/node_reason.def"
#undef X
};

const char *live_reason(NodeReason r) { return reasons[r]; }

static void refuse(NodeLive *l, TimeNs t, const char *why) {
    l->counts.refused++;
    live_record(l, (Record){.at = t, .kind = RECORD_REFUSE, .why = why});
}

static const char *start_fault(const NodeLive *l, const NodeAction *a, const NodeRequest *r) {
    const LiveModel *m = &l->models[r->tenant];
    Cores            open = live_free(l);
    if (r->state != NODE_WAITING) return "starts a running request";
    if (a->n_layers == 0 || a->n_layers > m->n_layers - r->next)
        return "starts layers beyond the model";
    if (a->versions == NULL) return "starts without versions";
    if (!cores_is_subset(&a->cores, &open)) return "starts on cores that are not free";
    if (cores_next(&a->cores, 0) == CORES_MAX) return "starts on zero cores";
    for (uint32_t k = r->next; k < r->next + a->n_layers; k++)
        if (a->versions[k] >= m->n_versions[k]) return "starts a version that does not exist";
    return NULL;
}

// Averages over the block: footprint, traffic, and slow-down per interference level.
static void weigh(LiveWeight *w, const NodeModel *m, const uint8_t *versions) {
    uint32_t k = node_count_index(m, w->cores);
    double   time = 0, worst = 0, l3 = 0, moved = 0;
    for (uint32_t i = w->first; i < w->first + w->n_layers; i++) {
        const NodeVersion *v = &m->layers[i].versions[versions[i]];
        double             t = (double)node_time(m, i, versions[i], k, 0);
        time += t;
        worst += (double)node_time(m, i, versions[i], k, NODE_LEVELS - 1);
        l3 += (double)v->l3_bytes * t;
        moved += (double)v->dram_bytes[k];
    }
    bool sane = time > 0 && worst > 0;
    w->load = sane ? (InterferenceLoad){l3 / time, moved / time} : (InterferenceLoad){0};
    w->slope = sane ? log(worst / time) / (NODE_LEVELS - 1) : 0;
}

static const LiveWeight *find_weight(NodeLive *l, const NodeRequest *r, const NodeAction *a) {
    LiveWeight want = {.versions = hash_fnv(HASH_FNV_START, a->versions + r->next, a->n_layers),
                       .rule = l->rule->number,
                       .tenant = r->tenant,
                       .first = r->next,
                       .n_layers = a->n_layers,
                       .cores = cores_count(&a->cores)};
    uint64_t   mix = want.versions ^ (uint64_t)want.tenant << 40 ^ (uint64_t)want.first << 20 ^
                   (uint64_t)want.n_layers << 10 ^ want.cores;
    LiveWeight *w = &l->weights[mix * UINT64_C(0x9e3779b97f4a7c15) >> 54];
    if (w->versions == want.versions && w->tenant == want.tenant && w->first == want.first &&
        w->n_layers == want.n_layers && w->cores == want.cores)
        return w;
    *w = want;
    weigh(w, l->rule->setup.tenants[r->tenant].model, a->versions);
    return w;
}

static bool settle(NodeLive *l, uint32_t i) {
    LiveRequest *x = &l->beside[i];
    LiveModel   *m = &l->models[l->queue.requests[i].tenant];
    if (x->ctx != NULL) return true;
    if (m->free == NULL) return false;
    ExecContext *p = x->ctx = m->free;
    m->free = p->next;
    m->queued--;
    m->begun++;
    if (m->free == NULL) l->n_full++;
    p->ask = x->ask;
    p->timing = (LiveTiming){.behind = x->behind,
                             .waiting = x->waiting,
                             .paused_by = UINT32_MAX,
                             .degraded = x->degraded};
    p->point = (BlockPoint){0};
    p->alone_ns = p->core_ns = p->stolen_ns = 0;
    atomic_store_explicit(&p->guard, ANSWER_OPEN, memory_order_relaxed);
    p->mem.budget = x->ask.budget;
    p->program = x->ask.program != NULL ? x->ask.program : m->program;
    program_begin(p->program, &p->mem, x->ask.inputs != NULL ? x->ask.inputs : m->inputs);
    return true;
}

// The interpreted tail is a part of the model's last layer.
static uint32_t first_layer(const NodeRequest *r, const ExecContext *p) {
    return p->point.layer > r->next ? p->point.layer : r->next;
}

// Limits a block to what its cores can compute together: see BlockBounds. Sets the end of its
// layers in the program.
static bool fit(NodeLive *l, const NodeRequest *r, ExecContext *p, NodeAction *a, uint32_t *end) {
    const LiveModel *m = &l->models[r->tenant];
    uint32_t         cores = cores_count(&a->cores), last = r->next + a->n_layers;
    BlockExtent      x =
        block_bounds_fit(&m->bounds, first_layer(r, p), last == m->n_layers ? m->bounds.n : last,
                         cores > a->wanted ? cores : a->wanted);
    *end = x.end;
    if (x.end < last) a->n_layers = x.end - r->next;
    if (!x.solo) return false;
    uint32_t core = cores_next(&a->cores, 0);
    a->cores = (Cores){0};
    cores_add(&a->cores, core);
    a->wanted = 1;
    if (cores > 1 && l->queue.n_waiting > 1) l->short_of = true;  // others may use these cores
    return true;
}

static void fill_block(NodeLive *l, Block *b, const NodeRequest *r, const NodeAction *a,
                       ExecContext *p) {
    const LiveModel *m = &l->models[r->tenant];
    b->program = p->program;
    b->model = l->rule->setup.tenants[r->tenant].model;
    b->mem = &p->mem;
    b->outputs = p->outputs;
    b->versions = a->versions;
    b->first = p->point;
    b->first.layer = first_layer(r, p);
    p->finishes = b->end == m->bounds.n;
    b->wanted = a->wanted;
    b->ctx = p;
    atomic_store_explicit(&p->mem.stop, WORK_GO, memory_order_relaxed);
    atomic_store_explicit(&p->stopped_as, LIVE_DONE, memory_order_relaxed);
}

static void note_start(NodeLive *l, NodeRequest *r, const NodeAction *a, TimeNs t) {
    bool       conflict = a->wanted > cores_count(&a->cores);
    LiveModel *m = &l->models[r->tenant];
    m->conflicts += conflict;
    m->blocks++;
    m->cores += cores_count(&a->cores);
    m->waiting--;
    m->running++;
    r->conflicts += conflict;
    l->counts.conflicts += conflict;
    l->counts.blocks++;
    l->idle = cores_difference(l->idle, &a->cores);
    r->cores = a->cores;
    r->first = r->layer = r->next;
    r->next += a->n_layers;
    r->wanted = a->wanted;
    r->since = t;
    r->versions = a->versions;
}

// Call before note_start: r->since is the arrival or the end of its last block.
static void note_wait(LiveTiming *t, const NodeRequest *r, const NodeAction *a, const NodeView *v,
                      TimeNs began) {
    if (t->blocks == 0)
        t->queue_ns = began - r->since;
    else
        t->paused_ns += began - r->since;
    t->conflicts += a->wanted > cores_count(&a->cores);
    if (v->level > t->level) t->level = v->level;
}

static void hold_rule(NodeLive *l, LiveRequest *x) {
    if (x->rule == l->rule) return;
    policy_instance_release(l, x->rule);
    x->rule = l->rule;
    x->rule->held++;
}

static void begin(NodeLive *l, uint32_t i, NodeAction *a, const NodeView *v) {
    NodeRequest *r = &l->queue.requests[i];
    LiveRequest *x = &l->beside[i];
    uint32_t     slot = l->slots[--l->n_free_slots];
    Block       *b = &l->blocks[slot];
    TimeNs       t = clock_now(clock_monotonic());
    b->solo = fit(l, r, x->ctx, a, &b->end);
    const LiveWeight *w = find_weight(l, r, a);
    fill_block(l, b, r, a, x->ctx);
    b->load = w->load;
    b->slope = w->slope;
    live_record(l, (Record){.at = v->now,
                            .kind = RECORD_START,
                            .request = r->id,
                            .tenant = r->tenant,
                            .first = r->next,
                            .n_layers = a->n_layers,
                            .wanted = a->wanted,
                            .cores = a->cores,
                            .level = v->level,
                            .versions = w->versions});
    note_wait(&x->ctx->timing, r, a, v, t);
    if (x->ctx->timing.blocks == 0) live_blame_wait(l, i, &x->ctx->timing, t);
    note_start(l, r, a, t);
    hold_rule(l, x);
    x->slot = slot;
    x->ticks = 0;
    x->relieved = x->pressed = x->demoted = x->on_turn = x->lowered = false;
    x->unheeded_ns = 0;
    l->n_halted -= x->halted;
    x->halted = false;
    l->of_block[slot] = i;
    request_table_run(&l->queue, i);
    interference_begin(&l->watch, b->load);
    block_start(b, t, &a->cores, &l->asleep);
}

// The tenant's oldest waiting request that has a context.
static uint32_t oldest_begun(const NodeLive *l, uint32_t tenant) {
    for (uint32_t k = 0; k < l->queue.n_waiting; k++) {
        uint32_t i = l->queue.waiting[k];
        if (l->queue.requests[i].tenant == tenant && l->beside[i].ctx != NULL && !l->beside[i].gone)
            return i;
    }
    return UINT32_MAX;
}

// A policy that starts more requests of a tenant than there are contexts, while those with one
// wait, would deadlock: an older request gets the cores instead.
static void start_older(NodeLive *l, const NodeAction *a, const NodeView *v) {
    uint32_t   tenant = l->queue.requests[a->request].tenant, i = oldest_begun(l, tenant);
    NodeAction instead = *a;
    l->short_of = true;
    refuse(l, v->now, "starts more requests of a tenant than it has contexts");
    if (i == UINT32_MAX) return;
    uint32_t left = l->models[tenant].n_layers - l->queue.requests[i].next;
    instead.request = i;
    if (instead.n_layers > left) instead.n_layers = left;
    if (start_fault(l, &instead, &l->queue.requests[i]) == NULL) begin(l, i, &instead, v);
}

static double rank(const LiveRequest *x) {
    return x->ask.priority > 0 ? x->ask.priority : LIVE_USUAL_RANK;
}

// Among a tenant's requests that are not started, the highest rank goes first, whether
// or not the policy knows ranks.
static uint32_t prefer(const NodeLive *l, uint32_t i) {
    const NodeRequest *all = l->queue.requests;
    uint32_t           best = i;
    if (l->n_ranked == 0 || l->beside[i].ctx != NULL) return i;
    for (uint32_t k = 0; k < l->queue.n_waiting; k++) {
        uint32_t j = l->queue.waiting[k];
        if (all[j].tenant != all[i].tenant || l->beside[j].ctx != NULL || l->beside[j].gone)
            continue;
        if (l->beside[j].degraded && !l->beside[i].degraded) continue;
        if (rank(&l->beside[j]) < rank(&l->beside[best])) best = j;
    }
    return best;
}

// Limits the cores to the tenant's allowance. False: it is 0.
static bool trim(NodeLive *l, NodeAction *a) {
    if (!l->limited) return true;
    const LiveModel *m = &l->models[l->queue.requests[a->request].tenant];
    uint32_t         tenant = l->queue.requests[a->request].tenant, n = 0;
    uint32_t         most = live_allowance(l, tenant, live_kept(l));
    Cores            kept = {0};
    if (m->max_cores > 0 && a->wanted > m->max_cores) a->wanted = m->max_cores;
    for (uint32_t c = cores_next(&a->cores, 0); c < CORES_MAX; c = cores_next(&a->cores, c + 1)) {
        if (n < most) cores_add(&kept, c);
        n++;
    }
    if (n > most) l->short_of = true;
    a->cores = kept;
    return most > 0;
}

double live_block_ns(const NodeModel *m, uint32_t first, uint32_t end, uint32_t cores) {
    uint32_t k = node_count_index(m, cores);
    return (double)node_rest(m, m->rest_best, first, k, 0) -
           (double)node_rest(m, m->rest_best, end, k, 0);
}

// Leaves the first core to a block that is not slower on one: see BlockWidth.
static void narrow(NodeLive *l, NodeAction *a, const NodeView *v) {
    const NodeRequest *r = &l->queue.requests[a->request];
    const NodeModel   *m = l->rule->setup.tenants[r->tenant].model;
    uint32_t           n = cores_count(&a->cores), end = r->next + a->n_layers;
    if (n <= 1 || !block_width_one(&l->width, live_block_ns(m, r->next, end, 1),
                                   live_block_ns(m, r->next, end, n), v->now))
        return;
    uint32_t first = cores_next(&a->cores, 0);
    a->cores = (Cores){0};
    cores_add(&a->cores, first);
    a->wanted = 1;
    l->short_of = true;
}

// A request that is measured runs as a whole, on as many cores as it names and are free.
static void take_named(NodeLive *l, NodeAction *a) {
    const NodeRequest *r = &l->queue.requests[a->request];
    const NodeModel   *m = l->rule->setup.tenants[r->tenant].model;
    uint32_t           wanted = l->beside[a->request].ask.cores, n = 0;
    Cores              open = live_free(l), some = {0};
    for (uint32_t c = cores_next(&open, 0); c < CORES_MAX && n < wanted;
         c = cores_next(&open, c + 1), n++)
        cores_add(&some, c);
    if (n == 0) return;
    a->cores = some;
    a->wanted = n;
    a->n_layers = m->n_layers - r->next;
    a->versions = node_best_versions(m, node_count_index(m, n), 0);
    l->short_of = true;
}

static void start(NodeLive *l, const NodeAction *named, const NodeView *v) {
    NodeAction  a = *named;
    const char *fault = NULL;
    a.request = prefer(l, named->request);
    bool measured = l->beside[a.request].ask.cores > 0;
    if (measured) take_named(l, &a);
    fault = start_fault(l, &a, &l->queue.requests[a.request]);
    if (fault != NULL)
        refuse(l, v->now, fault);
    else if (!trim(l, &a))
        return;
    else if (!settle(l, a.request))
        start_older(l, &a, v);
    else {
        if (!measured) narrow(l, &a, v);
        begin(l, a.request, &a, v);
    }
}

// Number of layers of a block of RELIEF_BLOCK_NS.
static uint32_t some_layers(const NodeModel *m, uint32_t from) {
    double   ns = 0;
    uint32_t n = 0;
    while (from + n < m->n_layers && (n == 0 || ns < RELIEF_BLOCK_NS))
        ns += (double)node_time(m, from + n++, 0, 0, 0);
    return n;
}

static uint32_t find_starved(const NodeLive *l, TimeNs t) {
    for (uint32_t k = 0; k < l->queue.n_waiting; k++) {
        uint32_t         i = l->queue.waiting[k];
        const LiveModel *m = &l->models[l->queue.requests[i].tenant];
        if (l->beside[i].ask.on_miss == ON_MISS_REJECT ||
            t - l->queue.requests[i].since < l->o.starve_ns)
            continue;
        if (l->beside[i].ctx != NULL || m->free != NULL) return i;
    }
    return UINT32_MAX;
}

// A policy may never return to requests past their deadline: one of them is started here. The next
// check comes LIVE_RELIEF times the block's duration after its end.
bool apply_starved(NodeLive *l, const NodeView *v) {
    uint32_t i = find_starved(l, v->now), core = cores_next(&v->free, 0);
    l->relief = v->now + RELIEF_LOOK_NS;
    if (i == UINT32_MAX || core == CORES_MAX) return false;
    const NodeRequest *r = &l->queue.requests[i];
    NodeAction         a = {.verb = NODE_START, .request = i, .wanted = 1};
    a.n_layers = some_layers(l->rule->setup.tenants[r->tenant].model, r->next);
    a.versions = l->models[r->tenant].solo;
    cores_add(&a.cores, core);
    if (start_fault(l, &a, r) != NULL || !trim(l, &a) || !settle(l, i)) return false;
    begin(l, i, &a, v);
    l->beside[i].relieved = true;
    l->relief = INT64_MAX;
    return true;
}

static void grow(NodeLive *l, const NodeAction *a, const NodeView *v) {
    NodeRequest *r = &l->queue.requests[a->request];
    Cores        open = live_free(l);
    const char  *fault = NULL;
    if (l->beside[a->request].ask.cores > 0) return;  // is measured on the cores it has
    if (r->state != NODE_RUNNING)
        fault = "grows a waiting request";
    else if (!cores_is_subset(&a->cores, &open))
        fault = "grows onto cores that are not free";
    else if (cores_next(&a->cores, 0) == CORES_MAX)
        fault = "grows by zero cores";
    else if (l->limited && cores_count(&a->cores) > live_allowance(l, r->tenant, live_kept(l)))
        fault = "grows beyond its tenant's cores";
    if (fault != NULL) {
        refuse(l, v->now, fault);
        return;
    }
    if (!block_offer(&l->blocks[l->beside[a->request].slot], &a->cores)) return;
    l->idle = cores_difference(l->idle, &a->cores);
    r->cores = cores_union(r->cores, &a->cores);
    l->models[r->tenant].cores += cores_count(&a->cores);
}

void live_call_timer(NodeLive *l) {
    atomic_fetch_add(&l->timer_word, 1);
    futex_wake(&l->timer_word, 1);
}

void live_wake(NodeLive *l, TimeNs at) {
    if (at >= atomic_load(&l->alarm)) return;
    atomic_store(&l->alarm, at);
    if (at < atomic_load(&l->armed)) live_call_timer(l);
}

// A late request is computed behind all that can still meet their deadline, or behind all others.
static void put_off(NodeLive *l, uint32_t i, TimeNs t) {
    l->short_of = true;
    if (l->beside[i].ask.on_miss == ON_MISS_DEGRADE) {
        live_degrade(l, i, t);
        return;
    }
    live_promise_over(l, i, true, &(LiveTiming){.queue_ns = t - l->queue.requests[i].arrival});
    l->queue.requests[i].deadline = t + LIVE_LATE_NS;
    live_put_behind(l, i);
}

static void give_up(NodeLive *l, const NodeAction *a, const NodeView *v) {
    uint32_t i = a->request;
    if (l->queue.requests[i].state != NODE_WAITING || (unsigned)a->reason >= NODE_REASONS) {
        refuse(l, v->now, "rejects a running request, or without a reason");
        return;
    }
    if (l->beside[i].ask.on_miss != ON_MISS_REJECT)
        put_off(l, i, v->now);
    else
        live_end(l, i, v->now, LIVE_REFUSED, reasons[a->reason]);
}

static void act_one(NodeLive *l, const NodeAction *a, const NodeView *v) {
    bool known = a->request < l->queue.n && !l->beside[a->request].gone;
    if (a->verb == NODE_WAKE && a->at > v->now)
        live_wake(l, a->at);
    else if (a->verb == NODE_START && known)
        start(l, a, v);
    else if (a->verb == NODE_GROW && known)
        grow(l, a, v);
    else if (a->verb == NODE_REJECT && known)
        give_up(l, a, v);
    else
        refuse(l, v->now, "unknown action or request");
}

void apply_plan(NodeLive *l, const NodeView *v, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) act_one(l, &l->actions[k], v);
}

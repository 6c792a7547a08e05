// slack: allocates cores by the time left to the deadline
//
// 1. Least slack first: requests start in order of their latest start time, so that long requests
//    with distant deadlines are not delayed until they are infeasible.
// 2. A request runs in the cheapest way that still meets its deadline if its whole rest ran so: a
//    core count and a set of versions, at the current interference level. The cost is its share of
//    the machine in cores and bandwidth; traffic costs more the busier the memory. Under load
//    requests are therefore narrow (few cores are used most efficiently) and move little data, and
//    a request that has waited gets more.
// 3. If no other request waits, spare cores make the block wider, as long as the added cores are
//    efficient enough and a reserve stays free for new arrivals: on an idle machine latency is low.
// 4. Blocks are short enough that an urgent request waits at most a small share of the least QoS,
//    and long enough to be worth a dispatch. The choice is made again at each start. A block has at
//    least min_cores, and more where a single layer would take too long: one slow layer on one core
//    would block urgent requests on a small machine. Where the whole rest on one core is no longer
//    than a block may be, and where more cores do not make it faster, it has fewer.
// 5. Two bandwidth-bound blocks slow each other down, two of different kinds do not. While memory
// is
//    busy, a bandwidth-bound block lets the next one pass if that is of the other kind and almost
//    as urgent.
// 6. Cores are taken in whole slices of the shared cache, preferably those that the request used
//    before, so that fewer tenants share a cache.
// 7. A block that finds too few cores starts if it gets a minimum share of them, and grows when
// more
//    become free; otherwise it waits at the head, and no request overtakes it.
// 8. Layers that one core computes for long are planned on one core.
// 9. A request that cannot meet its deadline even on all cores without interference is rejected at
//    once: its cores help others.
#include "policy/node/common/core_placement.h"
#include "policy/node/common/cost_table.h"
#include "policy/node/common/demand_bound.h"
#include "policy/node/common/list_schedule.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/request_queue.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(safety, double, 0.8, 0.1, 1.0, "share of the time left that core counts are sized for")      \
    X(laxity, double, 0.25, 0.0, 4.0, "0: by deadline; 1: by latest start")                        \
    X(min_dispatches, double, 20.0, 0.0, 1e6, "least duration of a block, in dispatch times")      \
    X(max_qos, double, 0.1, 0.001, 1.0,                                                            \
      "longest duration of a block, as a share of the least QoS")                                  \
    X(min_start, double, 0.4, 0.0, 1.0, "a block starts with at least this share of its cores")    \
    X(min_efficiency, double, 0.5, 0.0, 1.0, "least efficiency of cores beyond need")              \
    X(reserve, double, 0.1, 0.0, 1.0, "share of the cores not given beyond need")                  \
    X(max_load, double, 0.95, 0.1, 10.0, "share of the machine that admission may commit")         \
    X(headroom, double, 0.3, 0.0, 10.0, "capacity beyond its need that a new request must find")   \
    X(min_cores, int, 4, 1, 256, "least cores of a block, if so many are free")                    \
    X(byte_weight, double, 2.0, 0.0, 100.0, "cost of traffic when choosing frugal versions")       \
    X(bandwidth_price, double, 2.0, 0.0, 100.0,                                                    \
      "cost of bandwidth relative to cores when memory is busy")                                   \
    X(bandwidth_bound, double, 0.1, 0.0, 1.0,                                                      \
      "bandwidth share from which a block is bandwidth-bound")                                     \
    X(pairing_window, double, 0.1, 0.0, 1.0,                                                       \
      "share of the least QoS by which a block may pass another")                                  \
    X(hysteresis, double, 0.25, 0.0, 5.0, "pressure beyond the midpoint that changes the level")

typedef struct SlackSettings {
    SETTINGS(SETTING_FIELD)
} SlackSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(SlackSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Slack {
    const NodeSetup *setup;
    SlackSettings    cfg;
    uint32_t         level;
    double           price, block_ns, window_ns;
    CostTable       *costs;  // [tenant]
    uint8_t         *usual;  // [tenant][level] count index that meets the QoS of a new request
    RequestQueue     queue;
    DemandBound      demand;
    CorePlacement    place;
} Slack;

static Slack *carve_all(const NodeSetup *s, Carve *from) {
    Slack     *p = carve(from, Slack, 1);
    CostTable *costs = carve(from, CostTable, s->n_tenants), unused;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        cost_table_carve(p == NULL ? &unused : &costs[i], s->tenants[i].model, s->machine, from);
    uint8_t *usual = carve(from, uint8_t, s->n_tenants * NODE_LEVELS);
    if (p != NULL) {
        p->setup = s;
        p->usual = usual;
        p->costs = costs;
    }
    return p;
}

CARVE_STATE_SIZE(NodeSetup)

static void init(void *state, const NodeSetup *setup, const void *settings) {
    Carve  c = {.base = state};
    Slack *p = carve_all(setup, &c);
    p->cfg = *(const SlackSettings *)settings;
    core_placement_init(&p->place, setup->machine);
    double least = (double)node_setup_least_qos(setup);
    double min_ns = p->cfg.min_dispatches * (double)setup->machine->dispatch_ns;
    double max_ns = p->cfg.max_qos * least;
    p->block_ns = max_ns > min_ns ? max_ns : min_ns;
    p->window_ns = p->cfg.pairing_window * least;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        cost_table_init(&p->costs[i], p->cfg.byte_weight, (uint32_t)p->cfg.min_cores, p->block_ns);
        for (uint32_t level = 0; level < NODE_LEVELS; level++) {
            double     ns = p->cfg.safety * (double)setup->tenants[i].qos_ns;
            CostChoice choice =
                cost_table_choose(&p->costs[i], level, 0, setup->machine->n_cores, ns, 0);
            p->usual[i * NODE_LEVELS + level] = (uint8_t)choice.k;
        }
    }
}

typedef struct Candidate {
    uint32_t   request, n_layers, wanted, given;
    CostChoice choice;
} Candidate;

// Step 3: the widest choice with sufficient efficiency, within the free cores beyond the reserve.
static CostChoice widen(const Slack *p, const CostTable *m, uint32_t l, CostChoice choice,
                        uint32_t n_free) {
    uint32_t kept = (uint32_t)(p->cfg.reserve * p->setup->machine->n_cores);
    if (n_free <= kept) return choice;
    const CostEntry *fast = cost_table_at(m, p->level, l, 0);
    double           area = (double)choice.ns * m->model->counts[choice.k];
    for (uint32_t k = choice.k + 1; k < m->model->n_counts; k++) {
        if (m->model->counts[k] > n_free - kept) break;
        if (fast[k].ns >= choice.ns) continue;
        if (area < p->cfg.min_efficiency * (double)fast[k].ns * m->model->counts[k]) continue;
        choice = (CostChoice){0, k, fast[k].ns, true};
    }
    return choice;
}

// Step 4: the next layer alone takes longer than a block may.
static bool too_long(const Slack *p, const CostTable *m, uint32_t l, CostChoice choice) {
    float after = cost_table_at(m, p->level, l + 1, choice.set)[choice.k].ns;
    return (double)(choice.ns - after) > p->block_ns;
}

// Time of the computed part of the next layer.
static double done_ns(const float *rest, const NodeRequest *r) {
    return (double)r->done * (double)(rest[r->next] - rest[r->next + 1]);
}

static double fastest_rest(const Slack *p, const NodeRequest *r) {
    const float *fastest = p->costs[r->tenant].fastest;
    return (double)fastest[r->next] - done_ns(fastest, r);
}

static bool is_started(const NodeRequest *r) { return r->next > 0 || r->done > 0; }

// Step 8.
static bool solo_candidate(const Slack *p, const NodeRequest *r, double left, Candidate *o) {
    const CostTable *m = &p->costs[r->tenant];
    uint32_t         end = node_solo_end(m->model, r->next);
    if (end == r->next) return false;
    o->choice = cost_table_choose(m, p->level, r->next, 1, left, p->price);
    o->wanted = o->given = 1;
    o->n_layers = cost_table_reach(m, p->level, r->next, o->choice, p->block_ns) - r->next;
    if (o->n_layers > end - r->next) o->n_layers = end - r->next;
    return true;
}

static Candidate candidate(const Slack *p, const NodeView *v, uint32_t request, uint32_t n_free,
                           bool alone) {
    const NodeRequest *r = &v->requests[request];
    const CostTable   *m = &p->costs[r->tenant];
    double             left =
        p->cfg.safety * (double)(r->deadline - v->now) - (double)p->setup->machine->dispatch_ns;
    Candidate o = {.request = request};
    if (solo_candidate(p, r, left, &o)) return o;
    o.choice = cost_table_choose(m, p->level, r->next, n_free, left, p->price);
    o.wanted = m->model->counts[o.choice.k];
    if (!o.choice.fits) {
        uint32_t   all = p->setup->machine->n_cores;
        CostChoice best = cost_table_choose(m, p->level, r->next, all, left, p->price);
        o.wanted = m->model->counts[best.k];
    } else if (alone || too_long(p, m, r->next, o.choice)) {
        o.choice = widen(p, m, r->next, o.choice, n_free);
    }
    o.given = m->model->counts[o.choice.k];
    o.n_layers = cost_table_reach(m, p->level, r->next, o.choice, p->block_ns) - r->next;
    return o;
}

static bool infeasible(const Slack *p, const NodeView *v, const NodeRequest *r) {
    return (double)(r->deadline - v->now) < fastest_rest(p, r);
}

// Step 1: the latest start on the fastest core count.
static TimeNs latest_start(const void *policy, const NodeRequest *r) {
    const Slack *p = policy;
    return r->deadline - (TimeNs)(p->cfg.laxity * fastest_rest(p, r));
}

// Work of a request from a layer on, on its usual core count.
static DemandItem need(const Slack *p, const NodeRequest *r, uint32_t l) {
    const CostTable *m = &p->costs[r->tenant];
    uint32_t         k = p->usual[r->tenant * NODE_LEVELS + p->level];
    CostEntry        rest = cost_table_at(m, p->level, l, 0)[k];
    return (DemandItem){r->deadline, (double)rest.ns * m->model->counts[k], (double)rest.bytes};
}

// Work that is committed to started requests.
static void commit_started(Slack *p, const NodeView *v) {
    const NodeMachine *m = p->setup->machine;
    demand_bound_clear(&p->demand, p->cfg.max_load * m->n_cores,
                       p->cfg.max_load * (double)m->dram_bytes_ns);
    for (uint32_t i = 0; i < v->n_running; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        demand_bound_add(&p->demand, need(p, r, r->layer));
    }
    for (uint32_t i = 0; i < v->n_waiting && i < REQUEST_QUEUE_MAX; i++) {
        const NodeRequest *r = &v->requests[v->waiting[i]];
        if (is_started(r) && !infeasible(p, v, r))
            demand_bound_add(&p->demand, need(p, r, r->next));
    }
}

static bool admit(Slack *p, const NodeView *v, const NodeRequest *r) {
    if (is_started(r) || p->demand.n == 0) return true;
    DemandItem x = need(p, r, 0), more = x;
    more.core_ns *= 1.0 + p->cfg.headroom;
    more.bytes *= 1.0 + p->cfg.headroom;
    return demand_bound_admits(&p->demand, v->now, more);
}

static NodeAction start(const Slack *p, const NodeView *v, const Candidate *o, Cores *free) {
    const NodeRequest *r = &v->requests[o->request];
    Cores              cores = core_placement_slices(&p->place, free, o->given, &r->cores);
    *free = cores_difference(*free, &cores);
    return (NodeAction){.verb = NODE_START,
                        .request = o->request,
                        .n_layers = o->n_layers,
                        .wanted = o->wanted > o->given ? o->wanted : o->given,
                        .cores = cores,
                        .versions = cost_table_versions(&p->costs[r->tenant], p->level, o->choice)};
}

typedef struct Plan {
    const NodeView *view;
    NodeAction     *out;
    uint32_t        n, max, n_free;
    Cores           free;
    bool            blocked;  // the first request in order waits for cores
} Plan;

// The next request to run: infeasible requests are rejected on the choice, requests that do not
// pass admission are skipped for now. False if there is none.
static bool next(Slack *p, Plan *plan, Candidate *o, TimeNs *key) {
    const NodeView *v = plan->view;
    while (!heap_empty(&p->queue.heap) && plan->n < plan->max) {
        HeapItem           item = heap_pop(&p->queue.heap);
        const NodeRequest *r = &v->requests[item.id];
        if (infeasible(p, v, r)) {
            plan->out[plan->n++] =
                (NodeAction){.verb = NODE_REJECT, .request = item.id, .reason = NODE_INFEASIBLE};
        } else if (admit(p, v, r)) {
            *o = candidate(p, v, item.id, plan->n_free, heap_empty(&p->queue.heap));
            *key = item.key;
            return true;
        }
    }
    return false;
}

static void begin(Slack *p, Plan *plan, Candidate *o) {
    const NodeRequest *r = &plan->view->requests[o->request];
    if (o->given > plan->n_free) *o = candidate(p, plan->view, o->request, plan->n_free, false);
    bool others = plan->view->n_running + plan->n > 0;
    plan->blocked = (double)o->given < p->cfg.min_start * o->wanted && others;
    if (plan->blocked) return;
    plan->out[plan->n++] = start(p, plan->view, o, &plan->free);
    plan->n_free -= o->given;
    if (!is_started(r)) demand_bound_add(&p->demand, need(p, r, 0));
}

// Step 5.
static bool is_bandwidth_bound(const Slack *p, const NodeView *v, const Candidate *o) {
    const NodeRequest *r = &v->requests[o->request];
    uint32_t           end = r->next + o->n_layers;
    return cost_table_traffic(&p->costs[r->tenant], p->level, r->next, end, o->choice) >
           p->cfg.bandwidth_bound;
}

static void serve(Slack *p, Plan *plan) {
    Candidate first, second;
    TimeNs    key, other;
    if (!next(p, plan, &first, &key)) return;
    while (!plan->blocked && plan->n_free > 0 && plan->n < plan->max) {
        bool more = next(p, plan, &second, &other);
        if (more && p->level > 0 && (double)(other - key) < p->window_ns &&
            is_bandwidth_bound(p, plan->view, &first) &&
            !is_bandwidth_bound(p, plan->view, &second)) {
            Candidate passed = first;
            first = second;
            second = passed;
            other = key;
        }
        if (plan->n == plan->max) return;
        begin(p, plan, &first);
        if (!more) return;
        first = second;
        key = other;
    }
}

static uint32_t decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    Slack *p = state;
    if (v->n_free == 0) return 0;
    Plan plan = {.view = v, .out = out, .max = max, .free = v->free, .n_free = v->n_free};
    p->level = level_hysteresis(p->level, v->pressure, p->cfg.hysteresis);
    p->price = p->cfg.bandwidth_price * (double)v->pressure / (NODE_LEVELS - 1);
    if (v->n_waiting > 0) {
        request_queue_fill(&p->queue, v, latest_start, p);
        commit_started(p, v);
        serve(p, &plan);
    }
    if (!plan.blocked)  // step 7
        plan.n +=
            list_schedule_grow(v, &p->place, &plan.free, plan.n_free, out + plan.n, max - plan.n);
    return plan.n;
}

const NodePolicy policy_slack = {
    .name = "slack",
    .about = "cores by the time left, most urgent first, aware of shared cache and bandwidth",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(SlackSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};

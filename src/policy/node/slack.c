// slack: cores by the time that is left
//
// 1. The least slack first: requests start in order of the latest moment at which they could
//    begin and still be in time, so that long ones with far deadlines are not put off until it is
//    too late.
// 2. A request goes on in the cheapest way that still answers in time, if all of its rest went
//    that way: so many cores, these versions, at the present level of interference. The price is
//    its part of the machine, cores and bandwidth; the busier the memory, the more its bytes
//    count. So on a crowded machine requests are narrow (few cores are used best) and move
//    little, whether that serves themselves or their neighbours; who has waited gets what it
//    takes.
// 3. When nobody else waits, spare cores make the block wider, as long as the cores added are
//    used well enough and a reserve stays free for who comes next: on a quiet machine answers
//    come early.
// 4. Blocks are short enough that an urgent request waits no longer than a small share of the
//    least QoS, and long enough to be worth their dispatch. At each start the choice is made
//    anew. A block has a slice's worth of cores at least, and more where a single layer would
//    take too long: one slow layer on one core keeps a small machine from who is in a hurry.
// 5. Two blocks that both live on memory bandwidth slow each other down, two of unlike kind do
//    not. While memory is busy, a bandwidth-bound block lets the next one pass when that is of
//    the other kind and hardly less urgent.
// 6. Cores are taken in whole slices of shared cache, if possible in those the request ran on
//    before, so that fewer tenants meet in a cache.
// 7. A block that finds too few cores starts if it finds a fair part of them, and grows when more
//    become free; otherwise it waits in front, and nobody overtakes.
// 8. Who cannot be answered in time any more, not even on a quiet machine with all cores, is
//    refused at once: its cores help others.
#include "policy/node/common/demand_bound.h"
#include "policy/node/common/cost_table.h"
#include "policy/node/common/core_placement.h"
#include "policy/node/common/request_queue.h"
#include "policy/node/common/node_setup.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(safety, double, 0.8, 0.1, 1.0, "share of the time left that cores are sized for")            \
    X(laxity, double, 0.25, 0.0, 4.0, "0: in order of deadlines; 1: of latest starts")             \
    X(min_dispatches, double, 20.0, 0.0, 1e6, "a block takes at least that many dispatch times")   \
    X(max_qos, double, 0.1, 0.001, 1.0, "a block takes at most this share of the least QoS")       \
    X(start, double, 0.4, 0.0, 1.0, "least share of the cores wanted that a block starts with")    \
    X(worth, double, 0.5, 0.0, 1.0, "least efficiency of cores that are given beyond need")        \
    X(reserve, double, 0.1, 0.0, 1.0, "share of the cores that is not given beyond need")          \
    X(book, double, 0.95, 0.1, 10.0, "share of the machine that may be promised")                  \
    X(headroom, double, 0.3, 0.0, 10.0, "room beyond its own need that a newcomer must find")      \
    X(narrow, int, 4, 1, 256, "least cores of a block, where there are as many")                   \
    X(lean, double, 2.0, 0.0, 100.0, "worth of bytes in versions that spare them")                 \
    X(price, double, 2.0, 0.0, 100.0, "of bandwidth against cores when the memory is busy")        \
    X(pair, double, 0.1, 0.0, 1.0, "share of the bandwidth that makes a block bandwidth-bound")    \
    X(window, double, 0.1, 0.0, 1.0, "share of the least QoS by which pairing may go ahead")       \
    X(hold, double, 0.25, 0.0, 5.0, "pressure beyond the middle between levels that changes them")

typedef struct SlackSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
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
    uint8_t         *usual;  // [tenant][level] count that answers a newcomer in time
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

static size_t size(const NodeSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

static void init(void *state, const NodeSetup *setup, const void *settings) {
    Carve  c = {.base = state};
    Slack *p = carve_all(setup, &c);
    p->cfg = *(const SlackSettings *)settings;
    core_placement_init(&p->place, setup->machine);
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        cost_table_init(&p->costs[i], p->cfg.lean, (uint32_t)p->cfg.narrow);
        for (uint32_t level = 0; level < NODE_LEVELS; level++) {
            double     ns = p->cfg.safety * (double)setup->tenants[i].qos_ns;
            CostChoice way =
                cost_table_choose(&p->costs[i], level, 0, setup->machine->n_cores, ns, 0);
            p->usual[i * NODE_LEVELS + level] = (uint8_t)way.k;
        }
    }
    double least = (double)node_setup_least_qos(setup);
    double min_ns = p->cfg.min_dispatches * (double)setup->machine->dispatch_ns;
    double max_ns = p->cfg.max_qos * least;
    p->block_ns = max_ns > min_ns ? max_ns : min_ns;
    p->window_ns = p->cfg.window * least;
}

typedef struct Offer {
    uint32_t   request, n_layers, wanted, given;
    CostChoice way;
} Offer;

// Step 3: the widest way whose cores are used well enough, of those that are free beyond the
// reserve.
static CostChoice widen(const Slack *p, const CostTable *m, uint32_t l, CostChoice way,
                        uint32_t n_free) {
    uint32_t kept = (uint32_t)(p->cfg.reserve * p->setup->machine->n_cores);
    if (n_free <= kept) return way;
    const CostEntry *fast = cost_table_at(m, p->level, l, 0);
    double           area = (double)way.ns * m->model->counts[way.k];
    for (uint32_t k = way.k + 1; k < m->model->n_counts; k++) {
        if (m->model->counts[k] > n_free - kept) break;
        if (fast[k].ns >= way.ns) continue;
        if (area < p->cfg.worth * (double)fast[k].ns * m->model->counts[k]) continue;
        way = (CostChoice){0, k, fast[k].ns, true};
    }
    return way;
}

// Step 4: a layer that alone takes longer than a block should.
static bool too_long(const Slack *p, const CostTable *m, uint32_t l, CostChoice way) {
    float after = cost_table_at(m, p->level, l + 1, way.set)[way.k].ns;
    return (double)(way.ns - after) > p->block_ns;
}

static Offer offer(const Slack *p, const NodeView *v, uint32_t request, uint32_t n_free,
                   bool alone) {
    const NodeRequest *r = &v->requests[request];
    const CostTable   *m = &p->costs[r->tenant];
    double             left =
        p->cfg.safety * (double)(r->deadline - v->now) - (double)p->setup->machine->dispatch_ns;
    Offer o = {.request = request};
    o.way = cost_table_choose(m, p->level, r->next, n_free, left, p->price);
    o.wanted = m->model->counts[o.way.k];
    if (!o.way.fits) {
        uint32_t   all = p->setup->machine->n_cores;
        CostChoice best = cost_table_choose(m, p->level, r->next, all, left, p->price);
        o.wanted = m->model->counts[best.k];
    } else if (alone || too_long(p, m, r->next, o.way)) {
        o.way = widen(p, m, r->next, o.way, n_free);
    }
    o.given = m->model->counts[o.way.k];
    o.n_layers = cost_table_reach(m, p->level, r->next, o.way, p->block_ns) - r->next;
    return o;
}

static bool hopeless(const Slack *p, const NodeView *v, const NodeRequest *r) {
    return (double)(r->deadline - v->now) < (double)p->costs[r->tenant].fastest[r->next];
}

// Step 1: the latest start on all cores that are of use.
static TimeNs latest_start(const void *policy, const NodeRequest *r) {
    const Slack *p = policy;
    double       rest = (double)p->costs[r->tenant].fastest[r->next];
    return r->deadline - (TimeNs)(p->cfg.laxity * rest);
}

// What is left to be spent on a request from a layer on, on the usual cores.
static DemandItem need(const Slack *p, const NodeRequest *r, uint32_t l) {
    const CostTable *m = &p->costs[r->tenant];
    uint32_t         k = p->usual[r->tenant * NODE_LEVELS + p->level];
    CostEntry        rest = cost_table_at(m, p->level, l, 0)[k];
    return (DemandItem){r->deadline, (double)rest.ns * m->model->counts[k], (double)rest.bytes};
}

// What has been promised to requests that were started.
static void promised(Slack *p, const NodeView *v) {
    const NodeMachine *m = p->setup->machine;
    demand_bound_clear(&p->demand, p->cfg.book * m->n_cores,
                       p->cfg.book * (double)m->dram_bytes_ns);
    for (uint32_t i = 0; i < v->n_running; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        demand_bound_add(&p->demand, need(p, r, r->layer));
    }
    for (uint32_t i = 0; i < v->n_waiting && i < REQUEST_QUEUE_MAX; i++) {
        const NodeRequest *r = &v->requests[v->waiting[i]];
        if (r->next > 0 && !hopeless(p, v, r)) demand_bound_add(&p->demand, need(p, r, r->next));
    }
}

static bool admit(Slack *p, const NodeView *v, const NodeRequest *r) {
    if (r->next > 0 || p->demand.n == 0) return true;
    DemandItem x = need(p, r, 0), more = x;
    more.core_ns *= 1.0 + p->cfg.headroom;
    more.bytes *= 1.0 + p->cfg.headroom;
    return demand_bound_admits(&p->demand, v->now, more);
}

static NodeAction start(const Slack *p, const NodeView *v, const Offer *o, Cores *free) {
    const NodeRequest *r = &v->requests[o->request];
    Cores              cores = core_placement_slices(&p->place, free, o->given, &r->cores);
    *free = cores_difference(*free, &cores);
    return (NodeAction){.verb = NODE_START,
                        .request = o->request,
                        .n_layers = o->n_layers,
                        .wanted = o->wanted > o->given ? o->wanted : o->given,
                        .cores = cores,
                        .versions = cost_table_versions(&p->costs[r->tenant], p->level, o->way)};
}

typedef struct Plan {
    const NodeView *view;
    NodeAction     *out;
    uint32_t        n, max, n_free;
    Cores           free;
    bool            held;  // somebody in front waits for cores
} Plan;

// The next in line that may go on; those that are hopeless are refused on the way, those that there
// is no room for are passed over until there is. False: there is nobody.
static bool next(Slack *p, Plan *plan, Offer *o, TimeNs *key) {
    const NodeView *v = plan->view;
    while (!heap_empty(&p->queue.heap) && plan->n < plan->max) {
        HeapItem           item = heap_pop(&p->queue.heap);
        const NodeRequest *r = &v->requests[item.id];
        if (hopeless(p, v, r)) {
            plan->out[plan->n++] =
                (NodeAction){.verb = NODE_REJECT, .request = item.id, .reason = NODE_INFEASIBLE};
        } else if (admit(p, v, r)) {
            *o = offer(p, v, item.id, plan->n_free, heap_empty(&p->queue.heap));
            *key = item.key;
            return true;
        }
    }
    return false;
}

static void begin(Slack *p, Plan *plan, Offer *o) {
    const NodeRequest *r = &plan->view->requests[o->request];
    if (o->given > plan->n_free) *o = offer(p, plan->view, o->request, plan->n_free, false);
    bool others = plan->view->n_running + plan->n > 0;
    plan->held = (double)o->given < p->cfg.start * o->wanted && others;
    if (plan->held) return;
    plan->out[plan->n++] = start(p, plan->view, o, &plan->free);
    plan->n_free -= o->given;
    if (r->next == 0) demand_bound_add(&p->demand, need(p, r, 0));
}

// Step 5: of two that are about as urgent, the one that leaves the memory alone.
static bool lives_on_memory(const Slack *p, const NodeView *v, const Offer *o) {
    const NodeRequest *r = &v->requests[o->request];
    uint32_t           end = r->next + o->n_layers;
    return cost_table_traffic(&p->costs[r->tenant], p->level, r->next, end, o->way) > p->cfg.pair;
}

static void serve(Slack *p, Plan *plan) {
    Offer  first, second;
    TimeNs key, other;
    if (!next(p, plan, &first, &key)) return;
    while (!plan->held && plan->n_free > 0 && plan->n < plan->max) {
        bool more = next(p, plan, &second, &other);
        if (more && p->level > 0 && (double)(other - key) < p->window_ns &&
            lives_on_memory(p, plan->view, &first) && !lives_on_memory(p, plan->view, &second)) {
            Offer passed = first;
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

// Step 7.
static void grow(const Slack *p, Plan *plan) {
    const NodeView *v = plan->view;
    for (uint32_t i = 0; i < v->n_running && plan->n < plan->max && plan->n_free > 0; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        uint32_t           has = cores_count(&r->cores);
        if (has >= r->wanted || r->layer + 1 >= r->next) continue;
        uint32_t more = r->wanted - has < plan->n_free ? r->wanted - has : plan->n_free;
        Cores    added = core_placement_slices(&p->place, &plan->free, more, &r->cores);
        plan->free = cores_difference(plan->free, &added);
        plan->n_free -= more;
        plan->out[plan->n++] =
            (NodeAction){.verb = NODE_GROW, .request = v->running[i], .cores = added};
    }
}

static uint32_t decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    Slack *p = state;
    if (v->n_free == 0) return 0;
    Plan plan = {.view = v, .out = out, .max = max, .free = v->free, .n_free = v->n_free};
    p->level = level_hysteresis(p->level, v->pressure, p->cfg.hold);
    p->price = p->cfg.price * (double)v->pressure / (NODE_LEVELS - 1);
    if (v->n_waiting > 0) {
        request_queue_fill(&p->queue, v, latest_start, p);
        promised(p, v);
        serve(p, &plan);
    }
    if (!plan.held) grow(p, &plan);
    return plan.n;
}

const NodePolicy policy_slack = {
    .name = "slack",
    .about = "cores by the time that is left, the most urgent first, with regard for neighbours",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(SlackSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};

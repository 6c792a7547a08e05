// slack: cores by the time that is left
//
// 1. The most urgent first: requests start in order of their deadlines.
// 2. A block gets the least cores that would still answer in time if the whole rest of the request
//    had that many, at the present level of interference. Fewer cores are used more efficiently, so
//    a crowded machine answers more requests; who waited gets more.
// 3. When nobody else waits, spare cores make the block wider, as long as each added core is worth
//    its while and a reserve stays free for who comes next: on a quiet machine answers come early.
// 4. Blocks are short enough that an urgent request waits no longer than a small share of the least
//    QoS, and long enough to be worth their dispatch.
// 5. Versions count the harm they do: a version is charged for what it moves through memory, at the
//    price of what that costs the others at this level.
// 6. Two blocks that both live on memory bandwidth slow each other down, two of unlike kind do not.
//    When memory is busy, a bandwidth-bound block lets the next one of similar urgency pass.
// 7. Cores are taken in whole slices of shared cache, if possible in those the request ran on
// before,
//    so that fewer tenants meet in a cache.
// 8. Who cannot be answered in time any more, not even on a quiet machine with all cores, is
// refused
//    at once: its cores help others.
#include "policy/node/ahead.h"
#include "policy/node/place.h"
#include "policy/node/queue.h"
#include "policy/node/steady.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(safety, double, 0.85, 0.1, 1.0, "share of the time left that cores are sized for")           \
    X(min_dispatches, double, 20.0, 0.0, 1e6, "a block takes at least that many dispatch times")   \
    X(max_qos, double, 0.15, 0.001, 1.0, "a block takes at most this share of the least QoS")      \
    X(start, double, 0.5, 0.0, 1.0, "least share of the cores wanted that a block starts with")    \
    X(worth, double, 0.5, 0.0, 1.0, "least efficiency of cores that are given beyond need")        \
    X(reserve, double, 0.1, 0.0, 1.0, "share of the cores that is not given beyond need")          \
    X(lambda, double, 1.0, 0.0, 100.0, "weight of the harm that a version does to others")         \
    X(pair, double, 0.5, 0.0, 1.0, "share of the bandwidth that makes a block bandwidth-bound")    \
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

typedef struct SlackTenant {
    Ahead    ahead;
    float   *hopeless;  // [layer] the least that the rest can take
    uint8_t *picks;     // as node_pick's
} SlackTenant;

typedef struct Slack {
    const NodeSetup *setup;
    SlackSettings    with;
    uint32_t         level;
    double           min_ns, max_ns;
    SlackTenant     *tenants;
    Queue            queue;
    Place            place;
} Slack;

static Slack *carve_all(const NodeSetup *s, Carve *from) {
    Slack       *p = carve(from, Slack, 1);
    SlackTenant *tenants = carve(from, SlackTenant, s->n_tenants), unused;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const NodeModel *m = s->tenants[i].model;
        SlackTenant     *t = p == NULL ? &unused : &tenants[i];
        ahead_carve(&t->ahead, m, NODE_LEVELS, from);
        t->hopeless = carve(from, float, m->n_layers + 1);
        t->picks = carve(from, uint8_t, (size_t)NODE_LEVELS * m->n_counts * m->n_layers);
    }
    if (p != NULL) {
        p->setup = s;
        p->tenants = tenants;
    }
    return p;
}

static size_t size(const NodeSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

// Step 5. Memory time of a version is what it moves over the whole bandwidth; the busier the
// machine, the more of it is taken from somebody.
static uint8_t pick(const Slack *p, const NodeModel *m, uint32_t l, uint32_t k, uint32_t level) {
    uint8_t best = 0;
    double  least = 0;
    for (uint8_t v = 0; v < m->layers[l].n_versions; v++) {
        double harm = (double)m->layers[l].versions[v].dram_bytes[k] /
                      (double)p->setup->machine->dram_bytes_ns * level / (NODE_LEVELS - 1);
        double cost = (double)node_time(m, l, v, k, level) + p->with.lambda * harm;
        if (v > 0 && cost >= least) continue;
        best = v;
        least = cost;
    }
    return best;
}

static void prepare(const Slack *p, SlackTenant *t) {
    const NodeModel *m = t->ahead.model;
    uint8_t         *at = t->picks;
    for (uint32_t level = 0; level < NODE_LEVELS; level++)
        for (uint32_t k = 0; k < m->n_counts; k++)
            for (uint32_t l = 0; l < m->n_layers; l++) *at++ = pick(p, m, l, k, level);
    ahead_init(&t->ahead, t->picks);
    for (uint32_t l = m->n_layers; l-- > 0;) {
        float least = node_time(m, l, 0, 0, 0);
        for (uint32_t v = 0; v < m->layers[l].n_versions; v++)
            for (uint32_t k = 0; k < m->n_counts; k++) {
                float ns = node_time(m, l, v, k, 0);
                if (ns < least) least = ns;
            }
        t->hopeless[l] = t->hopeless[l + 1] + least;
    }
}

static void init(void *state, const NodeSetup *setup, const void *settings) {
    Carve  c = {.base = state};
    Slack *p = carve_all(setup, &c);
    p->with = *(const SlackSettings *)settings;
    place_init(&p->place, setup->machine);
    TimeNs least = setup->tenants[0].qos_ns;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        prepare(p, &p->tenants[i]);
        if (setup->tenants[i].qos_ns < least) least = setup->tenants[i].qos_ns;
    }
    p->min_ns = p->with.min_dispatches * (double)setup->machine->dispatch_ns;
    p->max_ns = p->with.max_qos * (double)least;
}

typedef struct Offer {
    uint32_t k, n_layers, wanted;
} Offer;

// Step 3: on from k while the time saved pays for the cores added.
static uint32_t widen(const Slack *p, const SlackTenant *t, uint32_t l, uint32_t k,
                      uint32_t n_free) {
    const NodeModel *m = t->ahead.model;
    const float     *rest = ahead_at(&t->ahead, p->level, l);
    double           base = (double)rest[k] * m->counts[k];
    uint32_t         best = k;
    for (uint32_t j = k + 1; j < m->n_counts && m->counts[j] <= n_free; j++)
        if (rest[j] < rest[best] && base >= p->with.worth * (double)rest[j] * m->counts[j])
            best = j;
    return best;
}

static Offer offer(const Slack *p, const NodeView *v, const NodeRequest *r, uint32_t n_free,
                   bool alone) {
    const SlackTenant *t = &p->tenants[r->tenant];
    const NodeModel   *m = t->ahead.model;
    double             left =
        p->with.safety * (double)(r->deadline - v->now) - (double)p->setup->machine->dispatch_ns;
    uint32_t k = ahead_least(&t->ahead, p->level, r->next, m->n_layers, left);
    if (k == m->n_counts) k = ahead_fastest(&t->ahead, p->level, r->next, m->n_layers);
    Offer    o = {.k = k, .wanted = m->counts[k]};
    uint32_t kept = (uint32_t)(p->with.reserve * p->setup->machine->n_cores);
    if (alone && n_free > kept) o.k = widen(p, t, r->next, k, n_free - kept);
    if (m->counts[o.k] > n_free) o.k = node_count(m, n_free);
    double ns = p->max_ns > p->min_ns ? p->max_ns : p->min_ns;
    o.n_layers = ahead_reach(&t->ahead, p->level, r->next, o.k, ns) - r->next;
    return o;
}

static bool hopeless(const Slack *p, const NodeView *v, const NodeRequest *r) {
    return (double)(r->deadline - v->now) < (double)p->tenants[r->tenant].hopeless[r->next];
}

static uint32_t decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    Slack *p = state;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    p->level = steady_level(p->level, v->pressure, p->with.hold);
    queue_by_deadline(&p->queue, v);
    Cores    free = v->free;
    uint32_t n = 0, n_free = v->n_free;
    while (p->queue.n > 0 && n_free > 0 && n < max) {
        uint32_t           request = queue_pop(&p->queue).request;
        const NodeRequest *r = &v->requests[request];
        if (hopeless(p, v, r)) {
            out[n++] =
                (NodeAction){.verb = NODE_REJECT, .request = request, .reason = NODE_HOPELESS};
            continue;
        }
        Offer            o = offer(p, v, r, n_free, p->queue.n == 0);
        const NodeModel *m = p->tenants[r->tenant].ahead.model;
        uint32_t         given = m->counts[o.k];
        if ((double)given < p->with.start * o.wanted && v->n_running > 0) break;
        Cores cores = place_slices(&p->place, &free, given, &r->cores);
        free = cores_without(free, &cores);
        n_free -= given;
        const uint8_t *picks = p->tenants[r->tenant].picks;
        out[n++] =
            (NodeAction){.verb = NODE_START,
                         .request = request,
                         .n_layers = o.n_layers,
                         .wanted = o.wanted,
                         .cores = cores,
                         .versions = picks + (size_t)(p->level * m->n_counts + o.k) * m->n_layers};
    }
    return n;
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

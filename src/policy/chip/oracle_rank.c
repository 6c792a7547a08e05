#include "policy/chip/oracle_rank.h"

#include <math.h>

#include "policy/chip/hope.h"
#include "policy/chip/relmas_price.h"
#include "policy/chip/serve.h"

static const float least_asked = 1e-6F;  // of a layer that runs; 0 is that of a free unit
static const float least_speed = 0.01F;  // that a throttle leaves

typedef struct Rank {
    OraclePlan  plan;
    RelmasPrice price;
    Order       order;
    Fleet       fleet;
    double      keys[CHIP_UNITS];  // of what runs on each unit
    float       asks[CHIP_UNITS];  // bytes a nanosecond; 0: free
} Rank;

static Rank *carve_all(const ChipSetup *s, Carve *from) {
    Order order;
    Rank *r = carve(from, Rank, 1);
    order_carve(&order, s->n_slots, from);
    if (r != NULL) r->order = order;
    return r;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve c = {.base = state};
    Rank *r = carve_all(setup, &c);
    r->plan = *(const OraclePlan *)settings;
    r->price = relmas_price_find(setup);
}

static double key_of(const Rank *r, const ChipView *v, const ChipTask *t) {
    const double last = 1e18;
    double       key = (double)t->request.deadline + r->plan.size * hope_rest(v, t);
    return r->plan.fates[t->request.id] == ORACLE_KEEP ? key : key + last;
}

static uint32_t line_up(Rank *r, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    order_clear(&r->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            lost = r->plan.fates[t->request.id] == ORACLE_LOSE;
        if (n < max && (lost || hope_slack(v, t, r->plan.ease) < 0))
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            order_add(&r->order, key_of(r, v, t), v->waiting[i]);
    }
    return n;
}

static void look(Rank *r, const ChipView *v) {
    fleet_open(&r->fleet, v);
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        const ChipUnit *unit = &v->units[u];
        bool            busy = unit->task != CHIP_NONE;
        r->asks[u] = busy ? fmaxf(unit->bytes_ns, least_asked) : 0.0F;
        r->keys[u] = busy ? key_of(r, v, &v->tasks[unit->task]) : INFINITY;
    }
}

// Of the bandwidth, by all units whose layers go before a key.
static float left_for(const Rank *r, double key, uint32_t unit) {
    float left = r->fleet.view->setup->bytes_ns;
    for (uint32_t u = 0; u < r->fleet.view->setup->n_units; u++)
        if (r->asks[u] > 0 && (r->keys[u] < key || (u < unit && r->keys[u] == key)))
            left -= r->asks[u];
    return left;
}

typedef struct Bid {
    FleetPick pick;
    float     cost;
    bool      starved;  // free, but the memory has too little left for the layer
} Bid;

static Bid bid_of(const Rank *r, const ChipTask *t, uint32_t kind, float left) {
    const ChipSetup *s = r->fleet.view->setup;
    const ChipCost  *c = chip_cost(fleet_model(&r->fleet, t), t->layer, kind);
    Bid              b = {.pick = fleet_of_kind(&r->fleet, t, kind), .cost = INFINITY};
    const float      slowest = 0.05F;
    if (b.pick.unit == CHIP_NONE) return b;
    float speed = left < c->bytes_ns ? fmaxf(left / c->bytes_ns, 0.0F) : 1.0F;
    b.starved = b.pick.wait == 0 && speed < (float)r->plan.speed && left < s->bytes_ns;
    b.pick.ns = c->ns / fmaxf(speed, slowest);
    b.cost = b.pick.wait + b.pick.ns;
    if (b.pick.wait > 0 || b.starved) b.cost /= (float)r->plan.patience;
    b.cost += (float)(r->plan.price * s->n_units) * relmas_price_work(&r->price, c, kind);
    return b;
}

static Bid best_bid(const Rank *r, const ChipTask *t, double key) {
    float left = left_for(r, key, CHIP_UNITS);
    Bid   best = {.pick = {.unit = CHIP_NONE}, .cost = INFINITY};
    for (uint32_t k = 0; k < r->fleet.view->setup->n_kinds; k++) {
        Bid b = bid_of(r, t, k, left);
        if (b.cost < best.cost) best = b;
    }
    return best;
}

static uint32_t start(Rank *r, ChipAction *out, uint32_t max) {
    const ChipView *v = r->fleet.view;
    uint32_t        n = 0;
    while (r->order.n > 0 && r->fleet.n_free > 0 && n < max) {
        OrderItem       top = order_pop(&r->order);
        const ChipTask *t = &v->tasks[top.task];
        Bid             b = best_bid(r, t, top.key);
        uint32_t        unit = b.pick.unit;
        if (unit == CHIP_NONE || b.starved) continue;
        if (b.pick.wait == 0) {
            const ChipModel *m = fleet_model(&r->fleet, t);
            float            asks = chip_cost(m, t->layer, v->setup->kind_of[unit])->bytes_ns;
            r->asks[unit] = fmaxf(asks, least_asked);
            r->keys[unit] = top.key;
            out[n++] = (ChipAction){.verb = CHIP_START, .task = top.task, .unit = unit};
        }
        fleet_claim(&r->fleet, t, b.pick);
    }
    return n;
}

static bool same(float a, float b) {
    const float near = 0.01F;
    if (isinf(a) || isinf(b)) return isinf(a) && isinf(b);
    return fabsf(a - b) <= near * b;
}

static uint32_t throttle(const Rank *r, ChipAction *out, uint32_t max) {
    const ChipView *v = r->fleet.view;
    uint32_t        n = 0;
    for (uint32_t u = 0; u < v->setup->n_units && n < max; u++) {
        float asks = r->asks[u], cap = INFINITY;
        if (!(asks > 0)) continue;
        float left = left_for(r, r->keys[u], u);
        if (left < asks) cap = fmaxf(left, least_speed * asks);
        float has = v->units[u].task == CHIP_NONE ? INFINITY : v->units[u].cap;
        if (!same(cap, has)) out[n++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = u, .cap = cap};
    }
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Rank    *r = state;
    uint32_t n = line_up(r, v, out, max);
    look(r, v);
    n += start(r, out + n, max - n);
    return n + throttle(r, out + n, max - n);
}

const ChipPolicy oracle_rank = {
    .name = "rank",
    .about = "by deadline, as far as a request is told to be kept",
    .settings_size = sizeof(OraclePlan),
    .state_size = size,
    .init = init,
    .decide = decide,
};

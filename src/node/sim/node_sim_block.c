#include <math.h>

#include "base/err.h"
#include "compile/tune/pressure.h"
#include "node/sim/contention.h"
#include "node/sim/node_sim_int.h"

static void enter_slices(NodeSim *s, SimBlock *b, bool in) {
    for (uint32_t i = 0; i < b->n_slices; i++) {
        uint32_t x = b->slices[i];
        s->slice_hot[x] += in ? b->hot_bytes : 0 - b->hot_bytes;
        s->slice_blocks[x] = (uint16_t)(s->slice_blocks[x] + (in ? 1 : -1));
    }
}

static uint32_t list_slices(const NodeSim *s, const Cores *cores, uint8_t *out) {
    const uint8_t *slice_of = s->run->setup.machine->slice_of;
    uint32_t       n = 0;
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1)) {
        bool known = false;
        for (uint32_t i = n; i-- > 0 && !known;) known = out[i] == slice_of[c];
        if (!known) out[n++] = slice_of[c];
    }
    return n;
}

// Share of a layer's inputs that lies in slices new to the block.
static double strange_part(const NodeSim *s, const Cores *before, const SimBlock *b) {
    const uint8_t *slice_of = s->run->setup.machine->slice_of;
    uint32_t       known = 0;
    bool           any = false, had[256] = {false};
    for (uint32_t c = cores_next(before, 0); c < CORES_MAX; c = cores_next(before, c + 1))
        any = had[slice_of[c]] = true;
    if (!any) return 0;
    for (uint32_t i = 0; i < b->n_slices; i++) known += had[b->slices[i]];
    return 1 - (double)known / b->n_slices;
}

static void set_cores(NodeSim *s, SimBlock *b, Cores cores) {
    b->cores = cores;
    b->n_cores = cores_count(&cores);
    b->count = node_count_index(b->model, b->n_cores);
    b->n_slices = list_slices(s, &cores, b->slices);
}

static double jitter_of(const NodeSim *s, const SimBlock *b) {
    double j = s->spec->jitter;
    if (j <= 0) return 1;
    Rng    r = rng_fork(rng_fork((Rng){s->run->seed}, b->id), b->layer);
    double x = 1 + j * rng_normal(&r);
    return fmin(fmax(x, 1 - 2 * j), 1 + 4 * j);
}

static double layer_ns(const NodeSim *s, const SimBlock *b, double granted) {
    uint32_t cores = b->model->counts[b->count];
    double   ns = machine_layer_ns(s->spec, cores, b->core_ns, b->moving, granted);
    return (ns + b->barrier_ns) * b->jitter;
}

// Bandwidth demand of the layer with its current cache share.
static void set_demand(const NodeSim *s, SimBlock *b) {
    double share = 0;
    for (uint32_t i = 0; i < b->n_slices; i++) {
        uint32_t x = b->slices[i];
        share += s->slice_blocks[x] > 1
                     ? contention_slice(b->hot_bytes, s->slice_hot[x],
                                        (double)s->run->setup.machine->slice_bytes)
                     : 1;
    }
    b->moving = demand_at(b->bytes, share / b->n_slices);
    double ns =
        machine_layer_ns(s->spec, b->model->counts[b->count], b->core_ns, b->moving, INFINITY);
    b->demand = ns > 0 ? b->moving / ns : 0;
}

static void settle(const NodeSim *s, SimBlock *b) {
    if (s->now == b->since) return;
    b->left = fmax(b->left - (double)(s->now - b->since) / b->full_ns, 0);
    b->since = s->now;
}

static void set_pace(const NodeSim *s, SimBlock *b, double full_ns) {
    if (full_ns == b->full_ns) return;
    settle(s, b);
    b->full_ns = full_ns;
    b->finish = s->now + (TimeNs)ceil(b->left * full_ns);
}

static void begin(const NodeSim *s, SimBlock *b) {
    b->left = 1;
    b->full_ns = 0;
    b->since = b->began = b->finish = s->now;
}

void sim_next_layer(NodeSim *s, SimBlock *b) {
    const NodeDemand *d = b->model->demand;
    Cores             before = b->cores;
    double            strange = 0;
    enter_slices(s, b, false);
    if (cores_count(&b->joining) > 0) {
        set_cores(s, b, cores_union(b->cores, &b->joining));
        b->joining = (Cores){0};
        strange = strange_part(s, &before, b);
    }
    uint32_t v = b->versions[b->layer];
    double   cores = b->model->counts[b->count];
    begin(s, b);
    b->barrier_ns = machine_barrier_ns(s->spec, b->model->counts[b->count]);
    b->core_ns = (double)demand_core_ns(d, b->layer, v, b->count);
    b->core_ns += strange * (double)d->read_bytes[b->layer] / (s->spec->move_gbs * cores);
    b->bytes = demand_bytes(d, b->layer, v, demand_slices(d, b->n_slices));
    b->hot_bytes = (uint64_t)(d->hot_bytes[b->layer * NODE_VERSIONS + v] / (float)b->n_slices);
    b->jitter = jitter_of(s, b);
    b->moving = (double)b->bytes[DEMAND_SHARES - 1];
    b->quiet_ns = layer_ns(s, b, INFINITY);
    enter_slices(s, b, true);
    set_demand(s, b);
}

void sim_start(NodeSim *s, uint32_t request, const NodeAction *x) {
    static const float nothing[DEMAND_SHARES] = {0};
    NodeRequest       *r = &s->requests[request];
    SimExtra          *e = &s->extras[request];
    CHECK(s->n_idle > 0);
    e->block = s->idle[--s->n_idle];
    SimBlock *b = &s->blocks[e->block];
    uint8_t  *slices = b->slices;
    *b = (SimBlock){.id = r->id,
                    .tenant = r->tenant,
                    .model = s->run->setup.tenants[r->tenant].model,
                    .versions = x->versions,
                    .slices = slices,
                    .first = r->next,
                    .layer = r->next,
                    .end = r->next + x->n_layers,
                    .starting = true,
                    .bytes = nothing,
                    .jitter = 1};
    set_cores(s, b, x->cores);
    double read = (double)b->model->demand->read_bytes[b->layer];
    b->core_ns = machine_dispatch_ns(s->spec, b->n_cores) +
                 strange_part(s, &r->cores, b) * read / (s->spec->move_gbs * b->n_cores);
    b->quiet_ns = b->core_ns;
    begin(s, b);
    enter_slices(s, b, true);
    s->free = cores_difference(s->free, &x->cores);
    s->n_free -= b->n_cores;
    s->order[s->n_running] = e->block;
    sim_to_running(s, request);
}

void sim_grow(NodeSim *s, uint32_t request, const NodeAction *x) {
    SimBlock *b = &s->blocks[s->extras[request].block];
    b->joining = cores_union(b->joining, &x->cores);
    s->free = cores_difference(s->free, &x->cores);
    s->n_free -= cores_count(&x->cores);
}

void sim_leave(NodeSim *s, SimBlock *b) {
    uint32_t i = 0;
    enter_slices(s, b, false);
    Cores all = cores_union(b->cores, &b->joining);
    s->free = cores_union(s->free, &all);
    s->n_free += cores_count(&all);
    while (&s->blocks[s->order[i]] != b) i++;
    s->idle[s->n_idle++] = s->order[i];
    for (; i + 1 < s->n_running; i++) s->order[i] = s->order[i + 1];
}

void sim_flow(NodeSim *s) {
    double asked = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        SimBlock *b = &s->blocks[s->order[i]];
        set_demand(s, b);
        s->demands[i] = b->demand;
        asked += b->demand;
    }
    bool short_of = asked > s->spec->dram_all_gbs;
    if (short_of) contention_share(s->demands, s->n_running, s->spec->dram_all_gbs, s->rates);
    for (uint32_t i = 0; i < s->n_running; i++) {
        SimBlock *b = &s->blocks[s->order[i]];
        set_pace(s, b, layer_ns(s, b, short_of ? s->rates[i] : INFINITY));
    }
}

// Interference level that a new block on the free cores would meet, from bandwidth and cache.
static double pressure_now(NodeSim *s) {
    const NodeMachine *m = s->run->setup.machine;
    double             all = s->spec->dram_all_gbs, cache = 0;
    for (uint32_t i = 0; i < s->n_running; i++) s->demands[i] = s->blocks[s->order[i]].demand;
    double memory = contention_newcomer(s->demands, s->n_running, all) / all;
    for (uint32_t c = cores_next(&s->free, 0); c < CORES_MAX; c = cores_next(&s->free, c + 1)) {
        uint64_t own = (uint64_t)m->slice_bytes, hot = s->slice_hot[m->slice_of[c]];
        cache += 1 - contention_slice(own, own + hot, (double)m->slice_bytes);
    }
    if (s->n_free > 0) cache /= s->n_free;
    double by_memory = -2 * log2(fmin(memory, 1)), by_cache = cache * (NODE_LEVELS - 1);
    // Cache pressure counts half: what misses there still comes from memory.
    return fmin(fmax(by_memory, (by_memory + by_cache) / 2), NODE_LEVELS - 1);
}

void sim_watch(NodeSim *s) {
    double now = pressure_now(s), dt = (double)(s->now - s->watched),
           tau = s->spec->interference_us * 1e3;
    double part = tau > 0 ? 1 - exp(-dt / tau) : 1;
    s->pressure += (now - s->pressure) * part;
    s->watched = s->now;
    if (fabs(s->pressure - s->level) <= 0.5 + s->spec->hysteresis) return;
    s->level = (uint32_t)lround(s->pressure);
    record_put(s->run->records, &(Record){.at = s->now, .kind = RECORD_LEVEL, .level = s->level});
}

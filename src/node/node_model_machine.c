// Layer times from a machine description (roofline): the maximum of arithmetic, L3 traffic
// and memory traffic, plus the
// barrier.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "node/node_model_int.h"

enum { SAMPLES = 6, LEVELS = 4, OCCASIONS = SAMPLES * LEVELS };

typedef struct Physics {
    const NodeMachineSpec *spec;
    CacheSizes             caches;
    double                 ghz, share_bytes;  // of a core; bytes that cache shares refer to
    ModelTables            t;
    Arena                 *arena;
    const Program         *program;
    Version               *all;    // [PROFILE_CANDIDATES]
    float                 *times;  // [PROFILE_CANDIDATES][OCCASIONS]
    float                 *moved;  // [PROFILE_CANDIDATES]
} Physics;

// Values that the previous layer left in cache do not come from memory, as far as they fit beside
// the rest of the footprint.
static double kept_flow(const Physics *p, const Step *s, uint32_t slices, double share) {
    double room = p->share_bytes * share * slices / 2, flow = (double)s->io_bytes;
    return flow <= room ? flow : room;
}

// Cache sizes for the traffic model: a share of a slice acts as the L2 of its cores. Scratch that
// exceeds L2 lies there too. Without a share only the private L2s remain.
static CacheSizes slice_caches(const Physics *p, const Step *s, const Version *v, double share) {
    CacheSizes c = p->caches;
    size_t     cores = (size_t)p->spec->slice_cores, own = c.l2 * cores;
    size_t     scratch = s->kind->scratch != NULL ? s->kind->scratch(s, v) : 0;
    size_t     spilled = scratch > c.l2 ? (scratch - c.l2) * cores : 0;
    c.l2 = (size_t)(p->share_bytes * share);
    c.l2 = c.l2 > spilled + own ? c.l2 - spilled : own;
    return c;
}

static double beyond(const Step *s, const Version *v, CacheSizes c, uint32_t parts) {
    return (double)s->kind->traffic(s, v, &c, parts).beyond_l2_bytes;
}

// Bytes that slices fetch. Data that a slice cannot keep is fetched again, once for all
// of its cores, which traverse it together.
static double fetched(const Physics *p, const Step *s, const Version *v, uint32_t slices,
                      double share) {
    CacheSizes roomy = {.l1 = p->caches.l1, .l2 = SIZE_MAX / 4, .l3 = p->caches.l3};
    double     least = beyond(s, v, roomy, slices);
    double     most = beyond(s, v, slice_caches(p, s, v, share), slices);
    return least + fmax(most - least, 0) / p->spec->slice_cores;
}

// Bytes read by several slices: weights come from memory each time, but activations were
// just written and come from the slice that holds them, as far as they fit.
static double passed_on(const Physics *p, const Step *s, const Version *v, uint32_t slices,
                        double share) {
    bool values = v->split == SPLIT_COLUMNS || s->weight == UINT32_MAX;
    if (slices < 2 || !values || s->io_bytes == 0) return 0;
    double again = fetched(p, s, v, slices, share) - fetched(p, s, v, 1, share);
    return fmax(again, 0) * kept_flow(p, s, slices, share) / (double)s->io_bytes;
}

static double memory_bytes(const Physics *p, const Step *s, const Version *v, uint32_t slices,
                           double share) {
    double kept = kept_flow(p, s, slices, share);
    if (s->kind->traffic == NULL) return (double)(s->io_bytes + s->const_bytes) - kept;
    double moved = fetched(p, s, v, slices, share) - passed_on(p, s, v, slices, share);
    return fmax(moved - kept, 0);
}

static double arithmetic_ns(const Physics *p, const Step *s, const Version *v, uint32_t cores,
                            uint32_t busy) {
    double rate = p->spec->efficiency * (s->kind->cycles != NULL ? p->ghz : p->spec->gflops * busy);
    return (s->kind->cycles != NULL ? s->kind->cycles(s, v, cores) : 2 * s->macs) / rate;
}

static double core_ns(const Physics *p, const Step *s, const Version *v, uint32_t cores) {
    uint32_t tasks = s->kind->tasks(s, v), busy = cores < tasks ? cores : tasks;
    double   near = (double)(s->io_bytes + s->const_bytes), passed = 0;
    if (busy == 0) busy = 1;
    if (s->kind->traffic != NULL) {
        near = (double)s->kind->traffic(s, v, &p->caches, cores).beyond_l2_bytes;
        passed = passed_on(p, s, v, machine_slices(p->spec, cores), 1);
    }
    double reading = near / (p->spec->l3_gbs * busy) + passed / (p->spec->move_gbs * busy);
    return fmax(arithmetic_ns(p, s, v, cores, busy), reading);
}

static double layer_ns(const NodeMachineSpec *s, double core, double bytes, uint32_t cores,
                       double share) {
    return machine_layer_ns(s, cores, core, bytes, s->dram_all_gbs * share) +
           machine_barrier_ns(s, cores);
}

// Times on a few core counts and levels, for selecting versions.
static void sample(const Physics *p, const Step *s, const Version *v, const uint32_t *counts,
                   float *times, float *moved) {
    *moved = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double   core = core_ns(p, s, v, counts[i]);
        uint32_t slices = machine_slices(p->spec, counts[i]);
        for (uint32_t j = 0; j < LEVELS; j++) {
            PressureShare ours = pressure_share(j * 3);
            double        bytes = memory_bytes(p, s, v, slices, ours.l3);
            times[i * LEVELS + j] = (float)layer_ns(p->spec, core, bytes, counts[i], ours.dram);
            if (j == 0) *moved += (float)bytes;
        }
    }
}

// Sampled core counts: few cores, a slice, several slices, all.
static void sample_counts(const NodeMachineSpec *s, uint32_t *counts) {
    uint32_t cores = machine_cores(s);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t c = i == 0 ? 1 : 2U << i;  // 1, 4, 8, 16, 32, 64
        counts[i] = c < cores ? c : cores;
    }
}

static uint32_t choose(Physics *p, const Step *s, Version *out) {
    uint32_t    n = 1, counts[SAMPLES], kept[NODE_VERSIONS];
    float       best[OCCASIONS];
    bool        alone[OCCASIONS];
    ModelChoice c = {.times = p->times, .moved = p->moved, .occasions = OCCASIONS, .alone = alone};
    p->all[0] = s->versions[0];
    if (s->kind->versions != NULL) n = s->kind->versions(s, &p->caches, p->all, PROFILE_CANDIDATES);
    sample_counts(p->spec, counts);
    for (uint32_t i = 0; i < OCCASIONS; i++) alone[i] = i % LEVELS == 0;
    for (uint32_t i = 0; i < n; i++)
        sample(p, s, &p->all[i], counts, p->times + (size_t)i * OCCASIONS, &p->moved[i]);
    c.n = n;
    n = model_choose(&c, best, kept);
    for (uint32_t i = 0; i < n; i++) out[i] = p->all[kept[i]];
    return n;
}

static void fill_version(Physics *p, uint32_t l, uint32_t v, const Version *version) {
    const Step       *s = &p->program->steps[l];
    const NodeModel  *m = p->t.model;
    const NodeDemand *d = p->t.demand;
    NodeVersion      *out = &p->t.layers[l].versions[v];
    out->tasks = s->kind->tasks(s, version);
    out->l3_bytes = (float)(memory_bytes(p, s, version, 1, 1) + kept_flow(p, s, 1, 1));
    p->t.hot_bytes[l * NODE_VERSIONS + v] = out->l3_bytes;
    for (uint32_t i = 0; i < d->n_slices; i++)
        for (uint32_t j = 0; j < DEMAND_SHARES; j++)
            model_bytes(&p->t, l, v, i)[j] =
                (float)memory_bytes(p, s, version, d->slices[i], (double)j / (DEMAND_SHARES - 1));
    for (uint32_t k = 0; k < m->n_counts; k++) {
        double       core = core_ns(p, s, version, m->counts[k]);
        uint32_t     i = demand_slices(d, machine_slices(p->spec, m->counts[k]));
        const float *bytes = model_bytes(&p->t, l, v, i);
        out->dram_bytes[k] = bytes[DEMAND_SHARES - 1];
        p->t.core_ns[(l * NODE_VERSIONS + v) * (size_t)m->n_counts + k] = (float)core;
        for (uint32_t level = 0; level < NODE_LEVELS; level++) {
            PressureShare ours = pressure_share(level);
            model_times(&p->t, l, v, k)[level] =
                (float)layer_ns(p->spec, core, demand_at(bytes, ours.l3), m->counts[k], ours.dram);
        }
    }
}

// Layers of equal shape and traffic are computed once.
static uint32_t twin_of(const Program *p, uint32_t l) {
    const Step *s = &p->steps[l];
    for (uint32_t i = 0; i < l && s->key != NULL; i++) {
        const Step *o = &p->steps[i];
        if (o->key != NULL && strcmp(o->key, s->key) == 0 && o->io_bytes == s->io_bytes) return i;
    }
    return l;
}

static void fill_layer(Physics *p, uint32_t l) {
    const Step *s = &p->program->steps[l];
    uint32_t    twin = twin_of(p->program, l);
    Version     versions[NODE_VERSIONS];
    p->t.layers[l].name = s->name != NULL ? arena_str(p->arena, s->name) : "";
    p->t.read_bytes[l] = (float)s->read_bytes;
    if (twin != l) {
        model_copy_layer(&p->t, twin, l);
        return;
    }
    uint32_t n = choose(p, s, versions);
    p->t.layers[l].n_versions = n;
    for (uint32_t v = 0; v < n; v++) fill_version(p, l, v, &versions[v]);
}

static void slice_counts(const NodeMachineSpec *s, NodeDemand *d) {
    static const uint8_t all[DEMAND_SLICE_COUNTS] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64};
    uint32_t             most = machine_slices(s, machine_cores(s));
    for (uint32_t i = 0; i < DEMAND_SLICE_COUNTS && all[i] < most; i++)
        d->slices[d->n_slices++] = all[i];
    if (d->n_slices == DEMAND_SLICE_COUNTS) d->n_slices--;
    d->slices[d->n_slices++] = (uint16_t)most;
}

static Err fill(Physics *p, Arena *a, Arena *scratch) {
    p->all = arena_try_new(scratch, Version, PROFILE_CANDIDATES);
    p->times = arena_try_new(scratch, float, PROFILE_CANDIDATES *OCCASIONS);
    p->moved = arena_try_new(scratch, float, PROFILE_CANDIDATES);
    if (p->all == NULL || p->times == NULL || p->moved == NULL)
        return err_set(ERR_LIMIT, "no memory for versions");
    for (uint32_t l = 0; l < p->program->n_steps; l++) fill_layer(p, l);
    return model_end(&p->t, a);
}

Err model_of_machine(const Program *p, const char *name, const NodeMachineSpec *s, Arena *a,
                     NodeModel *out) {
    NodeModel  m = {.name = arena_str(a, name), .n_layers = p->n_steps};
    NodeDemand d = {0};
    Arena      scratch;
    Physics    w = {.spec = s, .caches = machine_caches(s), .program = p, .arena = a};
    w.ghz = s->gflops / (4.0 * p->isa->lanes);
    w.share_bytes = (double)w.caches.l3;
    if (p->n_steps == 0 || p->done != NULL)
        return err_set(ERR_UNSUPPORTED, "%s is not compiled as a whole; it cannot be simulated",
                       name);
    m.n_counts = machine_counts(s, m.counts);
    slice_counts(s, &d);
    TRY(model_begin(&w.t, &m, &d, a));
    TRY(arena_init(&scratch, (size_t)1 << 24));
    Err e = fill(&w, a, &scratch);
    arena_finish(&scratch);
    if (e == ERR_OK) *out = m;
    return e;
}

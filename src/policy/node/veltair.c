// veltair: block length follows the load, versions follow the interference
//
// 1. Layer by layer, a request changes its core count constantly and pays a dispatch each time; as
// a
//    whole, it holds the cores of its most demanding layer. Blocks are in between.
//    block_partition.c computes them before the run, for eight thresholds and every interference
//    level.
// 2. The threshold follows the load: cores wanted by running and waiting requests over all cores.
// An
//    idle machine gets fine blocks (cores are released soon), a loaded one coarse blocks (few
//    conflicts).
// 3. A block requests the fewest cores that keep it within its share of the QoS, or of a smaller
// part
//    of the QoS while the machine is idle. A request that is behind its plan, because it waited or
//    ran on fewer cores, divides the time that is left instead.
// 4. Blocks start in order of deadlines. A conflict is a block that finds fewer free cores than it
//    requests: it starts if it gets a minimum share of them, and grows at a later layer when cores
//    become free. Otherwise it waits at the head, and requests behind it may be backfilled.
// 5. Versions are the fastest at the current level on the given cores. The level changes with
//    hysteresis.
//
// The ablations run the same code. veltair_as, adaptive scheduling alone: every layer has one
// version, the fastest without interference; its distance to veltair is the gain of versions.
// veltair_ac, adaptive compilation alone: blocks have a fixed number of layers and their planned
// cores, without recovery and growth; its distance to veltair is the gain of adaptive scheduling.
//
// There is no admission control, no priority and no knowledge of shared caches: see slack.c.
#include "base/carve.h"
#include "contract/node.h"
#include "policy/node/common/block_partition.h"
#include "policy/node/common/list_schedule.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/suffix_times.h"
#include "policy/policies.h"

// length, follow, eager: the defaults in which the ablations differ.
#define VELTAIR_SETTINGS(X, length, follow, eager)                                                 \
    X(safety, double, 0.85, 0.01, 1.0,                                                             \
      "share of the QoS that core counts are sized for under load")                                \
    X(safety_idle, double, eager, 0.01, 1.0, "the same on an idle machine")                        \
    X(theta_idle, double, 0.1, 0.0, 100.0, "block formation threshold on an idle machine")         \
    X(theta_loaded, double, 2.0, 0.0, 100.0, "block formation threshold under load")               \
    X(min_dispatches, double, 20.0, 0.0, 1e6, "least duration of a block, in dispatch times")      \
    X(max_qos, double, 0.1, 0.001, 1.0,                                                            \
      "longest duration of a block, as a share of the least QoS")                                  \
    X(fixed, int, length, 0, 100000, "layers per block; 0: by threshold")                          \
    X(quantum, int, 4, 1, 256, "cores are allocated in multiples of this")                         \
    X(backfill, bool, true, 0, 1, "requests behind a blocked one may start")                       \
    X(by_deadline, bool, true, 0, 1, "start by deadline; else by arrival")                         \
    X(late_last, bool, true, 0, 1, "requests past their deadline go last")                         \
    X(min_start, double, 0.5, 0.0, 1.0, "a block starts with at least this share of its cores")    \
    X(recover, bool, follow, 0, 1, "requests behind their plan get more cores")                    \
    X(grow, bool, follow, 0, 1,                                                                    \
      "blocks with fewer cores than wanted get more when cores are free")                          \
    X(hysteresis, double, 0.25, 0.0, 5.0, "pressure beyond the midpoint that changes the level")

typedef struct VeltairSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    VELTAIR_SETTINGS(X, 0, true, 0.2)
#undef X
} VeltairSettings;

typedef struct Veltair {
    const NodeSetup *setup;
    VeltairSettings  cfg;
    uint32_t         level, theta;
    bool             best;
    uint16_t        *flat;          // [tenant] cores for the whole model at the current level
    uint8_t         *solo;          // version 0 of every layer
    BlockPartition  *partitions;    // [tenant]
    SuffixTimes     *suffix_times;  // [tenant]
    RequestQueue     queue;
} Veltair;

static PartitionParams params_of(const NodeSetup *s, const VeltairSettings *cfg, bool best) {
    return (PartitionParams){.lo = cfg->safety_idle,
                             .hi = cfg->safety,
                             .th_lo = cfg->theta_idle,
                             .th_hi = cfg->theta_loaded,
                             .min_ns = cfg->min_dispatches * (double)s->machine->dispatch_ns,
                             .max_ns = cfg->max_qos * (double)node_setup_least_qos(s),
                             .fixed = (uint32_t)cfg->fixed,
                             .best = best};
}

static Veltair *carve_all(const NodeSetup *s, const PartitionParams *params, Carve *from) {
    Veltair        *v = carve(from, Veltair, 1);
    BlockPartition *partitions = carve(from, BlockPartition, s->n_tenants), no_partition;
    SuffixTimes    *suffix_times = carve(from, SuffixTimes, s->n_tenants), no_times;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const NodeTenant *t = &s->tenants[i];
        block_partition_carve(v == NULL ? &no_partition : &partitions[i], params, t, from);
        suffix_times_carve(v == NULL ? &no_times : &suffix_times[i], t->model, NODE_LEVELS, from);
    }
    uint16_t *flat = carve(from, uint16_t, s->n_tenants);
    uint8_t  *solo = node_setup_carve_solo(s, from);
    if (v != NULL)
        *v = (Veltair){.setup = s,
                       .flat = flat,
                       .solo = solo,
                       .partitions = partitions,
                       .suffix_times = suffix_times};
    return v;
}

static size_t size(const NodeSetup *setup, const void *settings) {
    PartitionParams params = params_of(setup, settings, true);
    Carve           c = {0};
    carve_all(setup, &params, &c);
    return c.used;
}

static void set_level(Veltair *v, uint32_t level) {
    v->level = level;
    for (uint32_t i = 0; i < v->setup->n_tenants; i++)
        v->flat[i] =
            v->partitions[i]
                .flat[block_partition_list(&v->partitions[i], PARTITION_THETAS - 1, level)];
}

static void prepare(void *state, const NodeSetup *setup, const void *settings, bool best) {
    PartitionParams params = params_of(setup, settings, best);
    Carve           c = {.base = state};
    Veltair        *v = carve_all(setup, &params, &c);
    v->cfg = *(const VeltairSettings *)settings;
    v->best = best;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        block_partition_init(&v->partitions[i], &params, &setup->tenants[i]);
        suffix_times_init(&v->suffix_times[i], best ? setup->tenants[i].model->picks : NULL);
    }
    set_level(v, 0);
}

static void init(void *state, const NodeSetup *setup, const void *settings) {
    prepare(state, setup, settings, true);
}

static void init_one_version(void *state, const NodeSetup *setup, const void *settings) {
    prepare(state, setup, settings, false);
}

// Step 3: more cores than planned if the request is behind its plan.
static uint32_t recover(const Veltair *v, const NodeView *view, const NodeRequest *r,
                        PartitionBlock block) {
    const NodeTenant     *t = &v->setup->tenants[r->tenant];
    const BlockPartition *partition = &v->partitions[r->tenant];
    uint32_t              list = block_partition_list(partition, v->theta, v->level);
    const float          *share = partition->share + (size_t)list * (t->model->n_layers + 1);
    double                left = (double)(r->deadline - view->now), rest = (double)share[r->next];
    if (left >= (double)t->qos_ns * rest) return block.cores;
    double   part = rest - (double)share[r->next + block.n_layers];
    double   ns = v->cfg.safety * left * part / rest;
    uint32_t end = r->next + block.n_layers;
    uint32_t k = suffix_times_least(&v->suffix_times[r->tenant], v->level, r->next, end, ns);
    if (k == t->model->n_counts)
        k = suffix_times_fastest(&v->suffix_times[r->tenant], v->level, r->next, end);
    return t->model->counts[k] > block.cores ? t->model->counts[k] : block.cores;
}

static BlockRequest ask(const void *policy, const NodeView *view, const NodeRequest *r) {
    const Veltair        *v = policy;
    const BlockPartition *partition = &v->partitions[r->tenant];
    PartitionBlock        block =
        block_partition_at(partition, block_partition_list(partition, v->theta, v->level), r->next);
    uint32_t cores = v->cfg.recover ? recover(v, view, r, block) : block.cores;
    return (BlockRequest){block.n_layers,
                          list_schedule_quanta(v->setup->machine, cores, (uint32_t)v->cfg.quantum)};
}

static uint32_t decide(void *state, const NodeView *view, NodeAction *out, uint32_t max) {
    Veltair *v = state;
    if (view->n_free == 0) return 0;
    uint32_t level = level_hysteresis(v->level, view->pressure, v->cfg.hysteresis);
    if (level != v->level) set_level(v, level);
    v->theta = block_partition_theta(list_schedule_load(view, v->flat));
    ListSchedule list = {.view = view,
                         .queue = v->cfg.by_deadline ? &v->queue : NULL,
                         .versions = v->best ? NULL : v->solo,
                         .level = v->level,
                         .min_start = v->cfg.min_start,
                         .grow = v->cfg.grow,
                         .backfill = v->cfg.backfill,
                         .late_last = v->cfg.late_last,
                         .ask = ask,
                         .policy = v};
    return list_schedule_run(&list, out, max);
}

static const Setting rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 0, true, 0.2)
#undef X
};

const NodePolicy policy_veltair = {
    .name = "veltair",
    .about = "block length follows the load, versions follow the interference",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};

static const Setting ac_rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 10, false, 0.85)
#undef X
};

const NodePolicy policy_veltair_ac = {
    .name = "veltair_ac",
    .about = "blocks of fixed length, versions follow the interference",
    .rows = ac_rows,
    .n_rows = sizeof ac_rows / sizeof *ac_rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};

const NodePolicy policy_veltair_as = {
    .name = "veltair_as",
    .about = "block length follows the load, one version",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = size,
    .init = init_one_version,
    .decide = decide,
};

// veltair: blocks of layers whose length follows the load, versions that follow the interference
//
// 1. Layer by layer, a request asks for other cores all the time and pays a dispatch for each; as
//    a whole, it holds the cores that its hungriest layer needs. Blocks lie between. cut.c forms
//    them ahead of time, for eight thresholds and every level of interference.
// 2. The threshold follows the load: cores wanted by what runs and what waits, over all cores. An
//    idle machine gets fine blocks (cores return soon), a crowded one coarse blocks (few
//    conflicts).
// 3. A block asks for the least cores that keep it within its share of the QoS, of a smaller part
//    of the QoS as long as the machine is idle. Requests that fell behind, because they waited or
//    ran on less, share out the time they have left instead.
// 4. Blocks start in the order of their requests' deadlines. A conflict is a block that finds
//    fewer cores free than it wants: it starts when at least a part of them is there, and gets
//    the others at its next layer when they become free. Otherwise it keeps its place at the
//    front, and only who finds enough cores passes it.
// 5. Versions are those that are fastest at the present level on the cores given. A level changes
//    only when the pressure is clearly beyond the middle between two.
//
// There is no admission, no priority and no notion of which cores share a cache: see slack.c.
#include "policy/node/veltair.h"

#include "policy/node/common/block_partition.h"
#include "policy/node/common/list_schedule.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/suffix_times.h"
#include "policy/policies.h"

typedef struct Veltair {
    const NodeSetup *setup;
    VeltairSettings  cfg;
    uint32_t         level, theta;
    bool             best;
    uint16_t        *flat;          // [tenant] at the present level
    uint8_t         *solo;          // version 0 of every layer
    BlockPartition  *partitions;    // [tenant]
    SuffixTimes     *suffix_times;  // [tenant]
    RequestQueue     queue;
} Veltair;

static PartitionParams rule_of(const NodeSetup *s, const VeltairSettings *cfg, bool best) {
    return (PartitionParams){.lo = cfg->idle,
                             .hi = cfg->safety,
                             .th_lo = cfg->th_lo,
                             .th_hi = cfg->th_hi,
                             .min_ns = cfg->min_dispatches * (double)s->machine->dispatch_ns,
                             .max_ns = cfg->max_qos * (double)node_setup_least_qos(s),
                             .fixed = (uint32_t)cfg->fixed,
                             .best = best};
}

static Veltair *carve_all(const NodeSetup *s, const PartitionParams *rule, Carve *from) {
    Veltair        *v = carve(from, Veltair, 1);
    BlockPartition *partitions = carve(from, BlockPartition, s->n_tenants), no_cut;
    SuffixTimes    *suffix_times = carve(from, SuffixTimes, s->n_tenants), no_ahead;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const NodeTenant *t = &s->tenants[i];
        block_partition_carve(v == NULL ? &no_cut : &partitions[i], rule, t, from);
        suffix_times_carve(v == NULL ? &no_ahead : &suffix_times[i], t->model, NODE_LEVELS, from);
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

size_t veltair_size(const NodeSetup *setup, const void *settings) {
    PartitionParams rule = rule_of(setup, settings, true);
    Carve           c = {0};
    carve_all(setup, &rule, &c);
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
    PartitionParams rule = rule_of(setup, settings, best);
    Carve           c = {.base = state};
    Veltair        *v = carve_all(setup, &rule, &c);
    v->cfg = *(const VeltairSettings *)settings;
    v->best = best;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        block_partition_init(&v->partitions[i], &rule, &setup->tenants[i]);
        suffix_times_init(&v->suffix_times[i], best ? setup->tenants[i].model->picks : NULL);
    }
    set_level(v, 0);
}

void veltair_init(void *state, const NodeSetup *setup, const void *settings) {
    prepare(state, setup, settings, true);
}

void veltair_init_as(void *state, const NodeSetup *setup, const void *settings) {
    prepare(state, setup, settings, false);
}

// Step 3: more than the plan says when the time left no longer allows for the plan.
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

uint32_t veltair_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max) {
    Veltair *v = state;
    if (view->n_free == 0) return 0;
    uint32_t level = level_hysteresis(v->level, view->pressure, v->cfg.hold);
    if (level != v->level) set_level(v, level);
    v->theta = block_partition_theta(list_schedule_load(view, v->flat));
    ListSchedule list = {.view = view,
                         .queue = v->cfg.urgent ? &v->queue : NULL,
                         .versions = v->best ? NULL : v->solo,
                         .level = v->level,
                         .start = v->cfg.start,
                         .grow = v->cfg.grow,
                         .overtake = v->cfg.overtake,
                         .yield = v->cfg.yield,
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
    .about = "blocks of layers that follow the load, versions that follow the interference",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = veltair_size,
    .init = veltair_init,
    .decide = veltair_decide,
};

// veltair_ac: adaptive compilation alone
//
// Versions follow the level of interference as in veltair, but blocks have a fixed number of layers
// whatever the load is, with the cores that were planned for them: nothing is caught up and nothing
// grows. What it lacks against veltair is what adaptive scheduling is worth.

static const Setting ac_rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 10, false, 0.85)
#undef X
};

const NodePolicy policy_veltair_ac = {
    .name = "veltair_ac",
    .about = "blocks of a fixed length, versions that follow the interference",
    .rows = ac_rows,
    .n_rows = sizeof ac_rows / sizeof *ac_rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = veltair_size,
    .init = veltair_init,
    .decide = veltair_decide,
};

// veltair_as: adaptive scheduling alone
//
// Blocks, thresholds, core counts and conflicts are veltair's, at the same levels of interference;
// but every layer has one version, the one that is fastest alone. What it lacks against veltair is
// what versions are worth.

static const Setting as_rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 0, true, 0.2)
#undef X
};

const NodePolicy policy_veltair_as = {
    .name = "veltair_as",
    .about = "blocks of layers that follow the load, one version",
    .rows = as_rows,
    .n_rows = sizeof as_rows / sizeof *as_rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = veltair_size,
    .init = veltair_init_as,
    .decide = veltair_decide,
};

#include "policy/node/common/block_partition.h"
#include "policy/node/common/list_schedule.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/fixed_blocks.h"
#include "policy/policies.h"

typedef struct FixedBlocks {
    FixedBlocksParams params;
    uint8_t          *solo;        // version 0 of every layer
    BlockPartition   *partitions;  // [tenant]
} FixedBlocks;

static FixedBlocks *carve_all(const NodeSetup *s, const PartitionParams *params, Carve *from) {
    FixedBlocks    *f = carve(from, FixedBlocks, 1);
    BlockPartition *partitions = carve(from, BlockPartition, s->n_tenants), unused;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        block_partition_carve(partitions == NULL ? &unused : &partitions[i], params, &s->tenants[i],
                              from);
    uint8_t *solo = node_setup_carve_solo(s, from);
    if (f != NULL) *f = (FixedBlocks){.solo = solo, .partitions = partitions};
    return f;
}

size_t fixed_blocks_size(const NodeSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &(PartitionParams){.blind = true}, &c);
    return c.used;
}

void fixed_blocks_init(void *state, const NodeSetup *setup, FixedBlocksParams params) {
    PartitionParams partition = {
        .lo = params.safety, .hi = params.safety, .fixed = params.layers, .blind = true};
    Carve        c = {.base = state};
    FixedBlocks *f = carve_all(setup, &partition, &c);
    f->params = params;
    for (uint32_t i = 0; i < setup->n_tenants; i++)
        block_partition_init(&f->partitions[i], &partition, &setup->tenants[i]);
}

static BlockRequest ask(const void *policy, const NodeView *view, const NodeRequest *r) {
    const FixedBlocks *f = policy;
    PartitionBlock     block = block_partition_at(&f->partitions[r->tenant], 0, r->next);
    return (BlockRequest){
        block.n_layers, list_schedule_quanta(view->setup->machine, block.cores, f->params.quantum)};
}

uint32_t fixed_blocks_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max) {
    const FixedBlocks *f = state;
    ListSchedule       list = {.view = view,
                               .versions = f->solo,
                               .min_start = f->params.min_start,
                               .grow = f->params.grow,
                               .ask = ask,
                               .policy = f};
    return list_schedule_run(&list, out, max);
}

// layers: every layer is a block
//
// A layer runs on the fewest cores that keep its share of the QoS, releases them at its end and
// pays one dispatch. Allocation fits the work closely, but neighbouring layers need different core
// counts, and under load most changes are conflicts: a layer starts on the cores that are free.

#define LAYERS_SETTINGS(X)                                                                         \
    X(quantum, int, 4, 1, 256, "cores are allocated in multiples of this")                         \
    X(safety, double, 0.6, 0.1, 1.0, "share of the QoS that core counts are sized for")            \
    X(min_start, double, 0.0, 0.0, 1.0, "a block starts with at least this share of its cores")

typedef struct LayersSettings {
    LAYERS_SETTINGS(SETTING_FIELD)
} LayersSettings;

static const Setting layers_rows[] = {
#define X(...) SETTING_ROW(LayersSettings, __VA_ARGS__)
    LAYERS_SETTINGS(X)
#undef X
};

static void layers_init(void *state, const NodeSetup *setup, const void *settings) {
    const LayersSettings *cfg = settings;
    FixedBlocksParams     params = {.layers = 1,
                                    .quantum = (uint32_t)cfg->quantum,
                                    .safety = cfg->safety,
                                    .min_start = cfg->min_start};
    fixed_blocks_init(state, setup, params);
}

const NodePolicy policy_layers = {
    .name = "layers",
    .about = "layer by layer, each on the fewest cores that keep its share of the QoS",
    .rows = layers_rows,
    .n_rows = sizeof layers_rows / sizeof *layers_rows,
    .settings_size = sizeof(LayersSettings),
    .state_size = fixed_blocks_size,
    .init = layers_init,
    .decide = fixed_blocks_decide,
};

// blocks: a fixed number of layers per block
//
// Between fcfs and layers: a block runs on the fewest cores that keep its layers together within
// their share of the QoS. It starts on the free cores and gets the others at its next layer when
// they become free. The best length depends on the load, which is why veltair adapts it.

#define BLOCKS_SETTINGS(X)                                                                         \
    X(size, int, 10, 1, 10000, "layers per block")                                                 \
    X(quantum, int, 4, 1, 256, "cores are allocated in multiples of this")                         \
    X(safety, double, 0.75, 0.1, 1.0, "share of the QoS that core counts are sized for")           \
    X(min_start, double, 0.0, 0.0, 1.0, "a block starts with at least this share of its cores")

typedef struct BlocksSettings {
    BLOCKS_SETTINGS(SETTING_FIELD)
} BlocksSettings;

static const Setting blocks_rows[] = {
#define X(...) SETTING_ROW(BlocksSettings, __VA_ARGS__)
    BLOCKS_SETTINGS(X)
#undef X
};

static void blocks_init(void *state, const NodeSetup *setup, const void *settings) {
    const BlocksSettings *cfg = settings;
    FixedBlocksParams     params = {.layers = (uint32_t)cfg->size,
                                    .quantum = (uint32_t)cfg->quantum,
                                    .safety = cfg->safety,
                                    .min_start = cfg->min_start,
                                    .grow = true};
    fixed_blocks_init(state, setup, params);
}

const NodePolicy policy_blocks = {
    .name = "blocks",
    .about = "blocks of a fixed number of layers, on the fewest cores that keep their share",
    .rows = blocks_rows,
    .n_rows = sizeof blocks_rows / sizeof *blocks_rows,
    .settings_size = sizeof(BlocksSettings),
    .state_size = fixed_blocks_size,
    .init = blocks_init,
    .decide = fixed_blocks_decide,
};

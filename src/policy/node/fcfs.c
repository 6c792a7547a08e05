// fcfs: whole models, first come, first served
//
// Each tenant has a static core count: the fewest that meet the safe part of its QoS without
// interference. The oldest request waits until so many cores are free, and no request overtakes it
// (head-of-line blocking). Simple and without conflicts, but cores idle while it waits.
#include "policy/node/fixed_blocks.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(quantum, int, 4, 1, 256, "cores are allocated in multiples of this")                         \
    X(safety, double, 0.75, 0.1, 1.0, "share of the QoS that core counts are sized for")           \
    X(min_start, double, 1.0, 0.0, 1.0, "a block starts with at least this share of its cores")

typedef struct FcfsSettings {
    SETTINGS(SETTING_FIELD)
} FcfsSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(FcfsSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static void init(void *state, const NodeSetup *setup, const void *settings) {
    const FcfsSettings *cfg = settings;
    FixedBlocksParams   params = {.layers = UINT16_MAX,
                                  .quantum = (uint32_t)cfg->quantum,
                                  .safety = cfg->safety,
                                  .min_start = cfg->min_start};
    fixed_blocks_init(state, setup, params);
}

const NodePolicy policy_fcfs = {
    .name = "fcfs",
    .about = "whole models in order of arrival, on the fewest cores that meet the QoS",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(FcfsSettings),
    .state_size = fixed_blocks_size,
    .init = init,
    .decide = fixed_blocks_decide,
};

// fcfs: whole models, first come, first served
//
// Each tenant has a static number of cores: the least that would answer within the safe part of its
// QoS if the machine were its own. The oldest request waits until that many are free, and nobody
// overtakes it. Simple, without conflicts, and a good part of the machine idles while the first in
// line waits for the last core it wants.
#include "policy/node/fixed_blocks.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(quantum, int, 4, 1, 256, "cores are given in multiples of that many")                        \
    X(safety, double, 0.75, 0.1, 1.0, "share of the QoS that cores are sized for")                 \
    X(start, double, 1.0, 0.0, 1.0, "least share of the cores wanted that a block starts with")

typedef struct FcfsSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} FcfsSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(FcfsSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static void init(void *state, const NodeSetup *setup, const void *settings) {
    const FcfsSettings *cfg = settings;
    FixedBlocksParams   rule = {.layers = UINT16_MAX,
                                .quantum = (uint32_t)cfg->quantum,
                                .safety = cfg->safety,
                                .start = cfg->start};
    fixed_blocks_init(state, setup, rule);
}

const NodePolicy policy_fcfs = {
    .name = "fcfs",
    .about = "whole models in order of arrival, on the least cores that meet the QoS",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(FcfsSettings),
    .state_size = fixed_blocks_size,
    .init = init,
    .decide = fixed_blocks_decide,
};

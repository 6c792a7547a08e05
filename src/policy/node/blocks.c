// blocks: a fixed number of layers at a time
//
// Between fcfs and layers: a block asks for the least cores that keep all of its layers together
// within their share of the QoS. It starts on what it finds and gets the others at its next layer
// when they become free. The right length depends on the load, which is why veltair adapts it.
#include "policy/node/fixed.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(size, int, 10, 1, 10000, "layers of a block")                                                \
    X(quantum, int, 4, 1, 256, "cores are given in multiples of that many")                        \
    X(safety, double, 0.75, 0.1, 1.0, "share of the QoS that cores are sized for")                 \
    X(start, double, 0.0, 0.0, 1.0, "least share of the cores wanted that a block starts with")

typedef struct BlocksSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} BlocksSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(BlocksSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static void init(void *state, const NodeSetup *setup, const void *settings) {
    const BlocksSettings *with = settings;
    FixedRule             rule = {.layers = (uint32_t)with->size,
                                  .quantum = (uint32_t)with->quantum,
                                  .safety = with->safety,
                                  .start = with->start,
                                  .grow = true};
    fixed_init(state, setup, rule);
}

const NodePolicy policy_blocks = {
    .name = "blocks",
    .about = "blocks of a fixed number of layers, on the least cores that keep their share",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(BlocksSettings),
    .state_size = fixed_size,
    .init = init,
    .decide = fixed_decide,
};

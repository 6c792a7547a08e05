// layers: every layer on its own
//
// A layer asks for the least cores that let it keep its share of the QoS, gives them back when it
// is done, and pays a dispatch. Cores fit the work closely, but neighbouring layers want different
// numbers all the time, and on a crowded machine most of those changes are conflicts: a layer
// starts on what it finds.
#include "policy/node/fixed.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(quantum, int, 4, 1, 256, "cores are given in multiples of that many")                        \
    X(safety, double, 0.6, 0.1, 1.0, "share of the QoS that cores are sized for")                  \
    X(start, double, 0.0, 0.0, 1.0, "least share of the cores wanted that a block starts with")

typedef struct LayersSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} LayersSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(LayersSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static void init(void *state, const NodeSetup *setup, const void *settings) {
    const LayersSettings *with = settings;
    FixedRule             rule = {.layers = 1,
                                  .quantum = (uint32_t)with->quantum,
                                  .safety = with->safety,
                                  .start = with->start};
    fixed_init(state, setup, rule);
}

const NodePolicy policy_layers = {
    .name = "layers",
    .about = "layer by layer, each on the least cores that keep its share of the QoS",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(LayersSettings),
    .state_size = fixed_size,
    .init = init,
    .decide = fixed_decide,
};

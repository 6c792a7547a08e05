// veltair_as: adaptive scheduling alone
//
// Blocks, thresholds, core counts and conflicts are veltair's, at the same levels of interference;
// but every layer has one version, the one that is fastest alone. What it lacks against veltair is
// what versions are worth.
#include "policy/node/veltair.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 0, true, 0.2)
#undef X
};

const NodePolicy policy_veltair_as = {
    .name = "veltair_as",
    .about = "blocks of layers that follow the load, one version",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = veltair_size,
    .init = veltair_init_as,
    .decide = veltair_decide,
};

// veltair_ac: adaptive compilation alone
//
// Versions follow the level of interference as in veltair, but blocks have a fixed number of layers
// whatever the load is, with the cores that were planned for them: nothing is caught up and nothing
// grows. What it lacks against veltair is what adaptive scheduling is worth.
#include "policy/node/veltair.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 10, false, 0.85)
#undef X
};

const NodePolicy policy_veltair_ac = {
    .name = "veltair_ac",
    .about = "blocks of a fixed length, versions that follow the interference",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = veltair_size,
    .init = veltair_init,
    .decide = veltair_decide,
};

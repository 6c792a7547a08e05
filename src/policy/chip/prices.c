// prices: relmas' rule without its network
//
// Everything that relmas.c says under 1 to 4, and nothing learned: prices of units and memory,
// worth of tasks, fit of units, bandwidth to those worth most. It never thinks and is charged
// nothing. What relmas gains on it is what the network is worth. The rule is our own, not from a
// paper.
#include "policy/chip/relmas/relmas.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(RelmasSettings, __VA_ARGS__)
    RELMAS_SCORE_SETTINGS(X)
#undef X
};

const ChipPolicy chip_policy_prices = {
    .name = "prices",
    .about = "relmas' rule alone: work, slack and bandwidth in prices of the package",
    .of = "relmas",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(RelmasSettings),
    .state_size = relmas_size,
    .init = relmas_init,
    .decide = relmas_decide,
};

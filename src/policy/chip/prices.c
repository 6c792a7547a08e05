// prices: the heuristic of relmas without its network
//
// Steps 1 to 4 of relmas.c, without anything learned: prices of units and memory, scores of tasks
// and units, bandwidth by score. It never plans and is charged nothing. The gain of relmas over it
// is the gain of the network. The heuristic is our own, not from a paper.
#include "policy/chip/relmas/relmas.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(RelmasSettings, __VA_ARGS__)
    RELMAS_SCORE_SETTINGS(X)
#undef X
};

const ChipPolicy chip_policy_prices = {
    .name = "prices",
    .about = "the heuristic of relmas alone: work, slack and bandwidth at the package's prices",
    .of = "relmas",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(RelmasSettings),
    .state_size = relmas_size,
    .init = relmas_init,
    .decide = relmas_decide,
};

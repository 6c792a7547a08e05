// synergy_fair: every job has the share of cores and memory that goes with its GPUs
#include "policy/cluster/synergy/synergy.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(SynergySettings, __VA_ARGS__)
    SYNERGY_SETTINGS(X, "srtf")
#undef X
};

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    synergy_init(state, s, settings, SYNERGY_FAIR);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    (void)max;
    return synergy_decide(state, v, out);
}

const ClusterPolicy cluster_policy_synergy_fair = {
    .name = "synergy_fair",
    .about = "every job has the share of cores and memory that goes with its GPUs",
    .paper = "Synergy (OSDI 2022)",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(SynergySettings),
    .load = synergy_load,
    .state_size = synergy_size,
    .init = init,
    .decide = decide,
};

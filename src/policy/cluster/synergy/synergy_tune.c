// synergy_tune: cores and memory as jobs like best; the rich give back for those who come late
#include "policy/cluster/synergy/synergy.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(SynergySettings, __VA_ARGS__)
    SYNERGY_SETTINGS(X, "srtf")
#undef X
};

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    synergy_init(state, s, settings, SYNERGY_TUNE);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    (void)max;
    return synergy_decide(state, v, out);
}

const ClusterPolicy cluster_policy_synergy_tune = {
    .name = "synergy_tune",
    .about = "cores and memory as jobs like best; the rich give back for those who come late",
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

// edf: earliest deadline first
//
// At every event waiting tasks are taken in the order of their deadlines. Each gets the unit on
// which its next layer would end first by the cost table alone, and waits for a busy unit if that
// ends earlier or, with patience above 1, not much later. Requests that cannot be in time are
// dropped, so that they delay no others: a request counts as lost when its remaining layers would
// need `safety_factor` times their best case, as they do on a loaded package.
//
// Defaults were chosen on traces of seeds 1 to 99 with bench/chip_tune.c: dropping gained 6 points
// of requests in time over all cells, dropping early another 5, waiting for the fast kind 2.
#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(KeyedOrderSettings, __VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_DROP, 3.8, 8.0)
#undef X
};

static double key(const KeyedOrderSettings *cfg, const ChipView *v, const ChipTask *t) {
    (void)cfg;
    (void)v;
    return (double)t->request.deadline;
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return keyed_order_decide(state, key, view, out, max);
}

const ChipPolicy chip_policy_edf = {KEYED_ORDER_POLICY(
    "edf", "the earliest deadline first, on the unit where its layer ends first")};

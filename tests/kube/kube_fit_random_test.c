// Thousands of random clusters: KubeFit against counting anew from all pods, while pods come, move
// and go.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kube/kube_case.h"
#include "tests/kube/slow_fit.h"
#include "tests/runner.h"

enum { CLUSTERS = 4000, CHANGES = 6 };

static unsigned version;

static void put(KubeState *s, KubeKind k, json_t *o) {
    assert_non_null(o);
    kube_state_put(s, k, o);
    json_decref(o);
}

static KubePod *find_pod(KubeState *s, const SlowCluster *c, int i) {
    char space[16], name[16];
    (void)snprintf(space, sizeof space, "n%d", c->pods[i].space);
    (void)snprintf(name, sizeof name, "p%d", i);
    return kube_state_pod(s, space, name);
}

static KubeNode *find_node(KubeState *s, int i) {
    char name[16];
    (void)snprintf(name, sizeof name, "n%d", i);
    return kube_state_node(s, name);
}

static void fill(KubeState *s, const SlowCluster *c) {
    for (int i = 0; i < 2; i++)
        put(s, KUBE_NAMESPACES,
            json_pack("{s{sos{so}}}", "metadata", "name", json_sprintf("n%d", i), "labels", "team",
                      json_sprintf("t%d", c->team[i])));
    for (int i = 0; i < c->n_nodes; i++) put(s, KUBE_NODES, slow_node_json(c, i));
    for (int i = 0; i < c->n_pods; i++) put(s, KUBE_PODS_KIND, slow_pod_json(c, i, ++version));
}

static bool bit_of(KubeState *s, const uint64_t *bits, const KubeNode *n) {
    KubeNode *const *nodes;
    uint32_t         count = kube_state_nodes(s, &nodes);
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i] == n) return bits[i / 64] >> i % 64 & 1;
    return false;
}

static void compare(KubeState *s, const SlowCluster *c, uint64_t *fits, uint64_t *reasons) {
    for (int i = 0; i < c->n_pods; i++) {
        KubePod *p = find_pod(s, c, i);
        uint64_t bits[1];
        assert_non_null(p);
        assert_null(kube_pod_info(p)->unsupported);
        kube_fit_nodes(s, p, bits);
        for (int k = 0; k < c->n_nodes; k++) {
            KubeVerdict   why, ever;
            KubeNode     *n = find_node(s, k);
            KubeFitReason want = slow_fit(c, i, k, true);
            (void)kube_fit(s, p, n, NULL, &why);
            if (why.reason != want)
                fail_msg("version %u, pod %d on node %d: %d, not %d", version, i, k, why.reason,
                         want);
            assert_int_equal(bit_of(s, bits, n), slow_fit(c, i, k, false) == FIT_OK);
            if (want == FIT_OK) assert_true(kube_fit_ever(s, p, n, &ever));
            *fits += want == FIT_OK;
            reasons[want]++;
        }
    }
}

// A pod leaves for another of the same name, or is assumed and forgotten.
static void change(Rng *r, KubeState *s, SlowCluster *c) {
    int i = (int)rng_below(r, (uint64_t)c->n_pods), k = (int)rng_below(r, (uint64_t)c->n_nodes);
    if (rng_below(r, 3) == 0) {
        c->nodes[k].zone = (int)rng_below(r, 4) - 1;
        put(s, KUBE_NODES, slow_node_json(c, k));
    } else if (c->pods[i].on < 0 && rng_below(r, 2) == 0) {
        kube_state_assume(s, find_pod(s, c, i), find_node(s, k));
        c->pods[i].on = k;
    } else if (kube_state_assumed(s, find_pod(s, c, i)) != NULL) {
        kube_state_forget(s, find_pod(s, c, i));
        c->pods[i].on = -1;
    } else {
        int     space = c->pods[i].space;
        json_t *o = slow_pod_json(c, i, ++version);
        (void)json_object_del(json_object_get(o, "metadata"), "uid");
        kube_state_gone(s, KUBE_PODS_KIND, o);
        json_decref(o);
        slow_random_pod(r, c, &c->pods[i]);
        c->pods[i].space = space;
        put(s, KUBE_PODS_KIND, slow_pod_json(c, i, ++version));
    }
}

static void clusters(void **state) {
    (void)state;
    Rng      r = {2026};
    uint64_t fits = 0, reasons[64] = {0};
    for (int i = 0; i < CLUSTERS; i++) {
        KubeState  *s = NULL;
        SlowCluster c;
        slow_random(&r, &c);
        assert_int_equal(kube_state_create(&s, NULL), ERR_OK);
        fill(s, &c);
        compare(s, &c, &fits, reasons);
        for (int k = 0; k < CHANGES; k++) {
            change(&r, s, &c);
            compare(s, &c, &fits, reasons);
        }
        kube_state_destroy(s);
    }
    // Every rule was met often enough to matter.
    const KubeFitReason met[] = {FIT_OK,
                                 FIT_INSUFFICIENT,
                                 FIT_PODS,
                                 FIT_SELECTOR,
                                 FIT_UNSCHEDULABLE,
                                 FIT_TAINT,
                                 FIT_PORTS,
                                 FIT_SPREAD,
                                 FIT_AFFINITY,
                                 FIT_ANTI_AFFINITY,
                                 FIT_EXISTING_ANTI_AFFINITY};
    for (size_t i = 0; i < sizeof met / sizeof *met; i++)
        if (reasons[met[i]] < 1000) fail_msg("reason %d: %" PRIu64, met[i], reasons[met[i]]);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(clusters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

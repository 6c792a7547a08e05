// Machine models: plausible versions, times and bytes, and the scaling of a published profile of a
// 64-core server.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/node/sim_fixture.h"
#include "tests/runner.h"

static double total_ms(const NodeModel *m, const float *table, uint32_t cores, uint32_t level) {
    return (double)node_rest(m, table, 0, node_count_index(m, cores), level) / 1e6;
}

static void test_tables_agree(void **state) {
    (void)state;
    SimFixture s;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "googlenet", 15, 1);
    const NodeModel *m = &s.models[0];
    for (uint32_t k = 0; k < m->n_counts; k++)
        for (uint32_t level = 0; level < NODE_LEVELS; level++) {
            const uint8_t *picks = node_best_versions(m, k, level);
            double         best = 0, solo = 0;
            for (uint32_t l = m->n_layers; l-- > 0;) {
                for (uint32_t v = 0; v < m->layers[l].n_versions; v++) {
                    float t = node_time(m, l, v, k, level);
                    assert_true(t > 0 && isfinite(t));
                    assert_true(t >= node_time(m, l, picks[l], k, level));
                    // Fewer cores or more interference never help.
                    assert_true(level == 0 || t >= node_time(m, l, v, k, level - 1) * 0.9999F);
                }
                best += (double)node_time(m, l, picks[l], k, level);
                solo += (double)node_time(m, l, 0, k, level);
                assert_true(fabs(node_rest(m, m->rest_best, l, k, level) / best - 1) < 1e-5);
                assert_true(fabs(node_rest(m, m->rest_solo, l, k, level) / solo - 1) < 1e-5);
            }
            assert_true(node_rest(m, m->rest_best, m->n_layers, k, level) == 0);
        }
    sim_fixture_close(&s);
}

// Published times of other kernels on such a machine: a/c + b + d c on 8 to 56 cores. Ours are
// about twice as fast; the shape is the machine's.
static void test_shape_of_published_profile(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double      a, b, d;  // microseconds
    } fits[] = {{"resnet50", 169795, 900, 8.16}, {"googlenet", 53234, 685, 4.84}};
    static const uint32_t cores[] = {8, 16, 24, 32, 40, 48, 56};
    SimFixture            s;
    sim_fixture_open(&s, "server64");
    for (uint32_t i = 0; i < 2; i++) {
        sim_fixture_add(&s, fits[i].name, 15, 1);
        const NodeModel *m = &s.models[i];
        double           first = 0;
        for (size_t c = 0; c < sizeof cores / sizeof *cores; c++) {
            double theirs = (fits[i].a / cores[c] + fits[i].b + fits[i].d * cores[c]) / 1e3;
            double ratio = theirs / total_ms(m, m->rest_solo, cores[c], 0);
            if (c == 0) first = ratio;
            print_message("%s on %u cores: published %.2f ms, simulated %.2f\n", fits[i].name,
                          cores[c], theirs, theirs / ratio);
            assert_true(ratio > 0.8 && ratio < 3.2);
            assert_true(ratio / first > 0.4 && ratio / first < 1.6);
        }
    }
    sim_fixture_close(&s);
}

static void test_versions_differ_where_it_matters(void **state) {
    (void)state;
    SimFixture s;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "resnet50", 15, 1);
    const NodeModel *m = &s.models[0];
    uint32_t         k = node_count_index(m, 8), changed = 0, heavy = 0;
    for (uint32_t l = 0; l < m->n_layers; l++) {
        changed += node_best_versions(m, k, 0)[l] != node_best_versions(m, k, NODE_LEVELS - 1)[l];
        heavy += m->layers[l].n_versions > 1;
    }
    assert_true(heavy > m->n_layers / 2);
    assert_true(changed > m->n_layers / 4);
    // The version for an idle machine is much slower under interference.
    assert_true(total_ms(m, m->rest_solo, 8, 6) > 1.15 * total_ms(m, m->rest_best, 8, 6));
    assert_true(total_ms(m, m->rest_solo, 8, 0) < 1.1 * total_ms(m, m->rest_best, 8, 0));
    // The weights alone are 94 MB and have to come from memory.
    double moved = 0;
    for (uint32_t l = 0; l < m->n_layers; l++)
        moved += (double)m->layers[l].versions[node_best_versions(m, k, 9)[l]].dram_bytes[k];
    assert_true(moved > 90e6 && moved < 250e6);
    sim_fixture_close(&s);
}

static void test_less_cache_means_more_memory(void **state) {
    (void)state;
    SimFixture s;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "mobilenet_v2", 10, 1);
    const NodeModel  *m = &s.models[0];
    const NodeDemand *d = m->demand;
    for (uint32_t l = 0; l < m->n_layers; l++)
        for (uint32_t v = 0; v < m->layers[l].n_versions; v++)
            for (uint32_t i = 0; i < d->n_slices; i++) {
                const float *bytes = demand_bytes(d, l, v, i);
                for (uint32_t j = 1; j < DEMAND_SHARES; j++) assert_true(bytes[j] <= bytes[j - 1]);
                assert_true(demand_at(bytes, 0) == (double)bytes[0]);
                assert_true(demand_at(bytes, 1) == (double)bytes[DEMAND_SHARES - 1]);
                double half = demand_at(bytes, 0.5);
                assert_true(half <= (double)bytes[2] && half >= (double)bytes[3]);
            }
    sim_fixture_close(&s);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_agree),
        cmocka_unit_test(test_shape_of_published_profile),
        cmocka_unit_test(test_versions_differ_where_it_matters),
        cmocka_unit_test(test_less_cache_means_more_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

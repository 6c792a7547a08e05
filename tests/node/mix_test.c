#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "model/zoo/zoo.h"
#include "node/mix.h"
#include "tests/runner.h"

static void test_mixes_are_the_papers(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t    n;
    } want[] = {{"light", 3}, {"medium", 2}, {"heavy", 2}, {"mix", 7}};
    uint32_t n = 0;
    for (; mix_name(n) != NULL; n++) {
        Mix m;
        assert_string_equal(mix_name(n), want[n].name);
        assert_int_equal(mix_find(mix_name(n), MIX_SERVER, &m), ERR_OK);
        assert_int_equal(m.n, want[n].n);
        for (uint32_t i = 0; i < m.n; i++) assert_true(m.tenants[i].qos_ns >= 10000000);
    }
    assert_int_equal(n, 4);
}

static void test_every_network_is_in_the_zoo(void **state) {
    (void)state;
    for (MixPlace place = MIX_SERVER; place <= MIX_HERE; place++) {
        Mix m;
        assert_int_equal(mix_find("mix", place, &m), ERR_OK);
        for (uint32_t i = 0; i < m.n; i++) {
            const ZooEntry *z = zoo_find(m.tenants[i].network);
            assert_non_null(z);
            assert_true(m.tenants[i].sequence == 0 || z->sequence > 0);
            assert_true(m.tenants[i].share > 0);
        }
    }
}

static void test_targets(void **state) {
    (void)state;
    Mix m;
    assert_int_equal(mix_find("heavy", MIX_SERVER, &m), ERR_OK);
    assert_string_equal(m.tenants[0].network, "bert_large");
    assert_true(m.tenants[0].sequence == 384 && m.tenants[0].qos_ns == 130000000);
    assert_true(m.tenants[1].qos_ns == 100000000);
    assert_int_equal(mix_find("heavy", MIX_HERE, &m), ERR_OK);
    assert_string_equal(m.tenants[0].network, "bert_base");
    assert_true(m.tenants[0].qos_ns == 0);
    assert_true(mix_qos(4000000, MIX_SLACK) == 20000000 && mix_qos(1, 5) == 1000);
    assert_true(mix_qos(1234567, 1) == 1235000);
}

static void test_unknown_mix(void **state) {
    (void)state;
    Mix m;
    assert_int_equal(mix_find("huge", MIX_SERVER, &m), ERR_ARG);
    assert_non_null(strstr(err_why(), "'huge'"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixes_are_the_papers),
        cmocka_unit_test(test_every_network_is_in_the_zoo),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_unknown_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

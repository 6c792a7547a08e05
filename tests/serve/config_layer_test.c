// Precedence of values: flag, environment, file, built-in; and their reported origin.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/serve/config_fixture.h"
#include "tests/runner.h"

static ConfigFixture x;

static int setup(void **state) {
    (void)state;
    config_fixture_begin(&x);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    config_fixture_end(&x);
    return 0;
}

static void ends(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    if (n < m || strcmp(text + n - m, end) != 0) fail_msg("'%s' does not end in '%s'", text, end);
}

static void test_nothing(void **state) {
    (void)state;
    assert_int_equal(config_fixture_load(&x, NULL), ERR_OK);
    assert_int_equal(x.c.n_models, 3);
    assert_string_equal(x.c.models[0].name, "keyword");
    assert_string_equal(x.c.models[0].path, "zoo:lstm_kws");
    assert_string_equal(x.c.models[2].name, "squeezenet");
    assert_string_equal(x.c.serve.http, "127.0.0.1:8000");
    assert_string_equal(config_fixture_origin(&x, NULL, "http"), "built-in");
    assert_string_equal(config_fixture_origin(&x, "keyword", "queue"), "built-in");
    assert_int_equal(x.c.n_warnings, 0);
}

static void test_order(void **state) {
    (void)state;
    static const char yaml[] = "http: 127.0.0.1:1\ngrpc: 127.0.0.1:2\nmetrics: 127.0.0.1:3\n";
    config_fixture_variable(&x, "COTENANT_GRPC=127.0.0.1:12");
    config_fixture_variable(&x, "COTENANT_METRICS=127.0.0.1:13");
    config_fixture_variable(&x, "HOME=/");
    config_fixture_flag(&x, "metrics=127.0.0.1:23");
    config_fixture_flag(&x, "header_kb=8");
    assert_int_equal(config_fixture_load(&x, yaml), ERR_OK);
    assert_string_equal(x.c.serve.http, "127.0.0.1:1");
    assert_string_equal(x.c.serve.grpc, "127.0.0.1:12");
    assert_string_equal(x.c.serve.metrics, "127.0.0.1:23");
    assert_int_equal(x.c.serve.header_kb, 8);
    ends(config_fixture_origin(&x, NULL, "http"), "/cotenant.yaml:1");
    assert_string_equal(config_fixture_origin(&x, NULL, "grpc"), "COTENANT_GRPC");
    assert_string_equal(config_fixture_origin(&x, NULL, "metrics"), "flag --metrics");
    assert_string_equal(config_fixture_origin(&x, NULL, "header_kb"), "flag --header-kb");
    assert_string_equal(config_fixture_origin(&x, NULL, "admin"), "built-in");
}

// Each layer sets one key more than the next, so that each key shows one layer.
static void test_order_of_a_model(void **state) {
    (void)state;
    config_fixture_write(&x, "repo/digits/1/model.onnx", "");
    config_fixture_write(&x, "repo/digits/config.pbtxt",
                         "max_batch_size: 2\n"
                         "parameters { key: \"qos.queue\" value { string_value: \"2\" } }\n"
                         "parameters { key: \"qos.warmup\" value { string_value: \"2\" } }\n"
                         "parameters { key: \"qos.min_cores\" value { string_value: \"2\" } }\n"
                         "parameters { key: \"qos.memory_mb\" value { string_value: \"2\" } }\n");
    config_fixture_variable(&x, "COTENANT_WARMUP=4");
    config_fixture_variable(&x, "COTENANT_MIN_CORES=4");
    config_fixture_variable(&x, "COTENANT_MEMORY_MB=4");
    config_fixture_flag(&x, "digits.memory_mb=6");
    config_fixture_flag(&x, "min_cores=5");
    config_fixture_flag(&x, "memory_mb=5");
    assert_int_equal(config_fixture_load(&x, "sources: repo\n"
                                             "defaults: {percentile: 90, max_batch: 1, queue: 1}\n"
                                             "models:\n"
                                             "  - name: digits\n"
                                             "    queue: 3\n"
                                             "    warmup: 3\n"
                                             "    min_cores: 3\n"),
                     ERR_OK);
    const ConfigModel *m = config_fixture_model(&x, "digits", "1");
    assert_true(m->set.percentile == 90 && m->set.timeout_ms == 0);
    assert_int_equal(m->set.max_batch, 2);
    assert_int_equal(m->set.queue, 3);
    assert_int_equal(m->set.warmup, 4);
    assert_int_equal(m->set.min_cores, 5);
    assert_int_equal(m->set.memory_mb, 6);
    ends(config_fixture_origin(&x, "digits", "percentile"), "/cotenant.yaml:2");
    assert_string_equal(config_fixture_origin(&x, "digits", "max_batch"),
                        "config.pbtxt:1 of model digits");
    ends(config_fixture_origin(&x, "digits", "queue"), "/cotenant.yaml:5");
    assert_string_equal(config_fixture_origin(&x, "digits", "warmup"), "COTENANT_WARMUP");
    assert_string_equal(config_fixture_origin(&x, "digits", "min_cores"), "flag --set min_cores");
    assert_string_equal(config_fixture_origin(&x, "digits", "memory_mb"),
                        "flag --set digits.memory_mb");
}

static void test_file_by_environment(void **state) {
    (void)state;
    char variable[256];
    config_fixture_write(&x, "other.yaml", "queue_is_not_here: 1\n");
    (void)snprintf(variable, sizeof variable, "COTENANT_CONFIG=%s",
                   config_fixture_path(&x, "other.yaml"));
    config_fixture_variable(&x, variable);
    assert_int_equal(config_fixture_load(&x, NULL), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "other.yaml:1: there is no setting queue_is_not_here"));
    assert_int_equal(config_fixture_load(&x, "cores: 1\n"), ERR_OK);  // the argument wins
    assert_int_equal(x.c.serve.cores, 1);
}

static void test_forms_of_models(void **state) {
    (void)state;
    assert_int_equal(config_fixture_load(&x, "models:\n"
                                             "- zoo:resnet18\n"
                                             "- {name: b, path: zoo:alexnet, version: 7}\n"
                                             "- path: zoo:vgg16\n"
                                             "  class: throughput\n"),
                     ERR_OK);
    assert_int_equal(x.c.n_models, 3);
    assert_string_equal(config_fixture_model(&x, "b", "7")->path, "zoo:alexnet");
    assert_string_equal(config_fixture_model(&x, "vgg16", "1")->set.class, "throughput");
    assert_int_equal(config_fixture_load(&x, "models:\n"
                                             "  a: zoo:resnet18\n"
                                             "  b:\n"
                                             "    path: zoo:alexnet\n"
                                             "    target_ms: 1.5\n"),
                     ERR_OK);
    assert_int_equal(x.c.n_models, 2);
    assert_string_equal(config_fixture_model(&x, "a", "1")->path, "zoo:resnet18");
    assert_true(config_fixture_model(&x, "b", "1")->set.target_ms == 1.5);
}

static void test_units(void **state) {
    (void)state;
    config_fixture_flag(&x, "drain_ms=2s");
    config_fixture_flag(&x, "keyword.timeout_ms=1500us");
    assert_int_equal(
        config_fixture_load(&x, "buffered_mb: 1GiB\nheader_kb: 64 KiB\ntune_s: 500ms\n"), ERR_OK);
    assert_int_equal(x.c.serve.drain_ms, 2000);
    assert_int_equal(x.c.serve.buffered_mb, 1024);
    assert_int_equal(x.c.serve.header_kb, 64);
    assert_true(x.c.serve.tune_s == 0.5);
    assert_true(config_fixture_model(&x, "keyword", NULL)->set.timeout_ms == 1.5);
}

static void test_again(void **state) {
    (void)state;
    Config again = {0};
    config_fixture_variable(&x, "COTENANT_CORES=1");
    config_fixture_flag(&x, "queue=9");
    config_fixture_source(&x, "zoo:resnet18");
    assert_int_equal(config_fixture_load(&x, "concurrency: 2\n"), ERR_OK);
    config_fixture_write(&x, "cotenant.yaml", "concurrency: 3\n");
    x.s = (ConfigSources){0};
    assert_int_equal(config_reload(&again, &x.c), ERR_OK);
    assert_int_equal(again.serve.concurrency, 3);
    assert_int_equal(again.serve.cores, 1);
    assert_int_equal(again.n_models, 1);
    assert_int_equal(again.models[0].set.queue, 9);
    config_fixture_write(&x, "cotenant.yaml", "concurrency: many\n");
    Config broken = {0};
    assert_int_equal(config_reload(&broken, &again), ERR_CONFIG);
    assert_null(broken.arena.base);
    config_finish(&again);
}

static void test_names(void **state) {
    (void)state;
    char long_name[130];
    memset(long_name, 'a', sizeof long_name);
    assert_true(config_valid_name("a", 1) && config_valid_name("9-b_c.d", 7));
    assert_true(config_valid_name(long_name, 128) && !config_valid_name(long_name, 129));
    static const char *const bad[] = {"",    ".",    "..", ".a", "-a",      "_a",    "a/b",
                                      "a b", "a;id", "a%", "é",  "../../x", "$(id)", "a\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(config_valid_name(bad[i], strlen(bad[i])));
    assert_false(config_valid_name("a\0b", 3));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_of_a_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_by_environment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forms_of_models, setup, teardown),
        cmocka_unit_test_setup_teardown(test_units, setup, teardown),
        cmocka_unit_test_setup_teardown(test_again, setup, teardown),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

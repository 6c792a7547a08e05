// Configuration errors name place and remedy, and all of them are reported at once.
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

typedef struct Wrong {
    const char *yaml, *says;  // after the name of the file where it begins with ':'
} Wrong;

static const Wrong wrongs[] = {
    // form
    {"- a\n", ":1: write \"key: value\" lines here"},
    {"word\n", ":1: write \"key: value\" lines here"},
    {"http: [a]\n", ":1: http takes one value, not a list or a mapping"},
    {"http: {a: b}\n", ":1: http takes one value, not a list or a mapping"},
    {"cores: 1\n---\ncores: 2\n", ":2: a second document starts here"},
    {"cores: 1\ncores: 2\n", ":2: cores is already set in line 1"},
    {"a: &x 1\nb: *x\n", ":2: aliases (*name) are not allowed"},
    {"cores: 'x\n", "check indentation and quotes here"},
    {"? [a]\n: b\n", ":1: a key must be a plain word"},
    {"models: 3\n", ":1: models takes a list of models, not one value"},
    {"models: []\nmodels: []\n", ":2: models is already set in line 1"},
    {"defaults: [1]\n", ":1: defaults takes \"key: value\" lines, not a list"},
    {"sources: {a: b}\n", ":1: sources takes a list of folders and files, not a mapping"},
    {"models: [[a]]\n", ":1: an entry here takes one value, not a list or a mapping"},
    {"models:\n- queue: [1]\n", ":2: queue takes one value"},
    {"models:\n  a:\n    b:\n      c: d\n", "b takes one value"},
    {"cores: \"1\\0\"\n", ":1: NUL byte in the text"},
    // keys
    {"coresx: 1\n", ":1: there is no setting coresx; did you mean cores?"},
    {"\nmodel:\n", ":2: there is no setting model; did you mean models?"},
    {"modles:\n- zoo:alexnet\n", ":1: there is no section modles; did you mean models?"},
    {"modles:\n  a: zoo:alexnet\n", ":1: there is no section modles; did you mean models?"},
    {"cores: 1\nsorces: [models]\n", ":2: there is no section sorces; did you mean sources?"},
    {"defalts: {queue: 1}\n", ":1: there is no section defalts; did you mean defaults?"},
    {"strange_thing: [a]\n", ":1: there is no section strange_thing; lists and mappings stand"},
    {"queue: 1\n", ":1: queue is a setting of models; put it under defaults: or models:"},
    {"wholly_strange_thing: 1\n", "there is no setting wholly_strange_thing; see"},
    {"defaults:\n  quee: 1\n", ":2: there is no setting quee; did you mean queue?"},
    {"defaults:\n  path: x\n", ":2: there is no setting path"},
    {"models:\n- zoo:alexnet\n- path: zoo:vgg16\n  targt_ms: 3\n",
     ":4: there is no setting targt_ms; did you mean target_ms?"},
    {"models:\n- nam: a\n  path: zoo:alexnet\n", ":2: there is no setting nam; did you mean name?"},
    // values
    {"cores: many\n", ":1: cores: 'many' is not a whole number; write one from 0 to 256"},
    {"cores: 257\n", ":1: cores: '257' is out of range; allowed is 0 to 256"},
    {"cores:\n", ":1: cores: '' is not a whole number"},
    {"drain_ms: 2 days\n", ":1: drain_ms: '2 days' is not a whole number; write one from 0 to "
                           "600000, or with a unit: 20ms"},
    {"drain_ms: 1.5us\n", "is not a whole number"},
    {"expose: maybe\n", ":1: expose: 'maybe' is neither true nor false"},
    {"log_level: inf\n",
     ":1: log_level: 'inf' is not one of debug, info, warn, error; did you mean"},
    {"log_format: xml\n", ":1: log_format: 'xml' is not one of logfmt, json"},
    {"metrics_compat: all\n", "is not one of none, triton"},
    {"defaults:\n  class: fast\n",
     ":2: class: 'fast' is not one of latency, throughput, best_effort"},
    {"models:\n- path: zoo:alexnet\n  on_miss: drop\n",
     ":3: on_miss: 'drop' is not one of reject, serve_late, degrade"},
    {"models:\n- path: zoo:alexnet\n  weights: in8\n",
     ":3: weights: 'in8' is not one of fp32, fp16, int8; did you mean int8?"},
    {"defaults:\n  weights: 8\n", ":2: weights: '8' is not one of fp32, fp16, int8"},
    {"models:\n- path: zoo:alexnet\n  weigths: int8\n",
     ":3: there is no setting weigths; did you mean weights?"},
    // models
    {"models:\n- {queue: 3}\n", ":2: a model needs a name or a path"},
    {"models:\n- name: ../x\n  path: zoo:alexnet\n", ":2: '../x' is not a valid model name"},
    {"models:\n- name: a\n  name: b\n", ":3: name is already set in line 2"},
    {"models:\n- path: zoo:alexnet\n  version: 0\n", "version '0' is not a whole number from 1 on"},
    {"models:\n- path: zoo:alexnet\n  version: 01\n", "version '01' is not a whole number"},
    {"models:\n- path: zoo:alexnt\n", ":2: no network alexnt in the zoo; did you mean zoo:alexnet"},
    {"models:\n- path: nowhere.onnx\n", "does not exist"},
    {"models:\n- zoo:alexnet\n- zoo:alexnet\n", ":3: model alexnet is defined twice"},
    {"models:\n- zoo:alexnet\n- name: alxnet\n  queue: 3\n",
     ":3: no source has a model alxnet; did you mean alexnet"},
    {"models:\n- name: alone\n  queue: 3\n", ":2: no source has a model alone; give its path"},
    {"sources: [nowhere]\n", "does not exist"},
    // sense
    {"http: 0.0.0.0:8000\n", ":1: http: other machines can reach 0.0.0.0:8000; use 127.0.0.1, or "
                             "allow it with --expose"},
    {"admin: 10.0.0.1:80\n", ":1: admin: other machines can reach"},
    {"grpc: nowhere\n", ":1: grpc: "},
    {"http: 127.0.0.1:99999\n", ":1: http: "},
    {"http: 127.0.0.1:8002\n", "http and metrics are both 127.0.0.1:8002"},
    {"buffered_mb: 1\n", ":1: buffered_mb: 1 MiB for all bodies is less than body_mb = 64"},
    {"models:\n- path: zoo:alexnet\n  min_cores: 3\n  max_cores: 2\n",
     ":3: model alexnet: min_cores 3 is more than max_cores 2"},
    {"cores: 2\nmodels:\n- path: zoo:alexnet\n  min_cores: 3\n",
     ":4: model alexnet: min_cores 3 is more than all 2 cores"},
};

static void test_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        ConfigFixture x;
        config_fixture_begin(&x);
        Err e = config_fixture_load(&x, wrongs[i].yaml);
        if (e != ERR_CONFIG) fail_msg("accepted, or %d: %s", e, wrongs[i].yaml);
        if (strstr(err_why(), "cotenant.yaml:") == NULL && strstr(wrongs[i].says, "both") == NULL)
            fail_msg("no place: %s", err_why());
        if (strstr(err_why(), wrongs[i].says) == NULL)
            fail_msg("%s\nsays: %s\nlacks: %s", wrongs[i].yaml, err_why(), wrongs[i].says);
        assert_null(x.c.arena.base);
        config_fixture_end(&x);
    }
}

// Against the cores that the process may use, where they are known.
static void test_cores(void **state) {
    (void)state;
    static const Wrong cases[] = {
        {"cores: 5\n", ":1: cores is 5, but CPU affinity and quota allow 4; lower it"},
        {"models:\n- path: zoo:alexnet\n  min_cores: 3\n- path: zoo:vgg16\n  min_cores: 2\n",
         "models reserve 5 cores (min_cores), but there are 4"},
        {"cores: 2\nmodels:\n- path: zoo:alexnet\n  min_cores: 1\n- path: zoo:vgg16\n  min_cores: "
         "2\n",
         "models reserve 3 cores (min_cores), but there are 2"},
    };
    for (uint32_t cores = 0; cores <= 8; cores += 4)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            ConfigFixture x;
            config_fixture_begin(&x);
            x.s.cores = cores;
            bool wrong = cores == 4 || i == 2;  // i == 2: the file says how many there are
            assert_int_equal(config_fixture_load(&x, cases[i].yaml), wrong ? ERR_CONFIG : ERR_OK);
            if (wrong) assert_non_null(strstr(err_why(), cases[i].says));
            config_fixture_end(&x);
        }
}

static void expect(ConfigFixture *x, const char *says) {
    assert_int_equal(config_fixture_load(x, NULL), ERR_CONFIG);
    if (strstr(err_why(), says) == NULL) fail_msg("%s\nlacks: %s", err_why(), says);
    config_fixture_end(x);
    config_fixture_begin(x);
}

static void test_flags_and_environment(void **state) {
    (void)state;
    ConfigFixture x;
    config_fixture_begin(&x);
    config_fixture_flag(&x, "cores=x");
    expect(&x, "flag --cores: cores: 'x' is not a whole number");
    config_fixture_flag(&x, "keywrd.queue=3");
    expect(&x, "command line: no source has a model keywrd; did you mean keyword");
    config_fixture_flag(&x, "keyword.quee=3");
    expect(&x, "flag --set keyword.quee: there is no setting quee; did you mean queue?");
    config_fixture_flag(&x, "quee=3");
    expect(&x, "flag --set quee: there is no setting quee; did you mean queue?");
    config_fixture_flag(&x, "queue");
    expect(&x, "'queue' is not a setting; write KEY=VALUE or MODEL.KEY=VALUE");
    config_fixture_flag(&x, "http=192.168.1.1:80");
    expect(&x, "flag --http: http: other machines can reach 192.168.1.1:80");
    config_fixture_variable(&x, "COTENANT_EXPOSE=perhaps");
    expect(&x, "COTENANT_EXPOSE: expose: 'perhaps' is neither true nor false");
    config_fixture_variable(&x, "COTENANT_QUEUE=0");
    expect(&x, "COTENANT_QUEUE: queue: '0' is out of range");
    config_fixture_source(&x, "zoo:resnet19");
    expect(&x, "command line: no network resnet19 in the zoo; did you mean zoo:resnet18");
    config_fixture_source(&x, "/dev/null");
    expect(&x, "/dev/null is neither a folder nor a regular file");
    x.s.file = "/nonexistent/cotenant.yaml";
    expect(&x, "cannot open /nonexistent/cotenant.yaml");
    config_fixture_end(&x);
}

static void test_allowed(void **state) {
    (void)state;
    ConfigFixture x;
    config_fixture_begin(&x);
    config_fixture_flag(&x, "expose=true");
    config_fixture_variable(&x, "COTENANT_HTPP=1");
    assert_int_equal(config_fixture_load(&x, "http: 0.0.0.0:8000\ngrpc: '[::]:0'\nmetrics: off\n"
                                             "admin: unix:/tmp/x.sock\n"),
                     ERR_OK);
    assert_int_equal(x.c.n_warnings, 1);
    assert_int_equal(config_fixture_load(&x, "admin: http\n"), ERR_OK);
    assert_non_null(strstr(x.c.warnings[0], "environment variable COTENANT_HTPP is not a setting"));
    config_fixture_end(&x);
}

static void test_all_at_once(void **state) {
    (void)state;
    ConfigFixture x;
    config_fixture_begin(&x);
    config_fixture_write(&x, "c.yaml",
                         "cores: x\nhttp: 0.0.0.0:1\ndefaults:\n  queue: 0\n"
                         "models:\n- zoo:nope\n- path: zoo:alexnet\n  class: z\n");
    x.s.file = config_fixture_path(&x, "c.yaml");
    assert_int_equal(config_read(&x.c, &x.s), ERR_OK);
    assert_int_equal(x.c.n_problems, 5);
    assert_int_equal(x.c.serve.cores, 0);
    config_finish(&x.c);
    assert_int_equal(config_load(&x.c, &x.s), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "c.yaml:1: cores: 'x'"));
    assert_non_null(strstr(err_why(), "(and 4 more: see cotenant check)"));
    config_fixture_end(&x);
}

static void test_large(void **state) {
    (void)state;
    ConfigFixture x;
    size_t        n = (1 << 20) + 1;
    char         *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, '#', n);
    text[n] = '\0';
    config_fixture_begin(&x);
    assert_int_equal(config_fixture_load(&x, text), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "more than the limit"));
    memset(text, '[', n);
    memcpy(text, "models: ", 8);
    text[1 << 20] = '\0';
    assert_int_equal(config_fixture_load(&x, text), ERR_CONFIG);
    config_fixture_end(&x);
    free(text);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_flags_and_environment),
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

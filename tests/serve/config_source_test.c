// Model repositories: what is found, what is skipped, and the warnings.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/serve/config_fixture.h"
#include "serve/models/pbtxt.h"
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

static void load(const char *source) {
    config_fixture_source(&x, source);
    if (config_fixture_load(&x, NULL) != ERR_OK) fail_msg("%s", err_why());
}

static bool warned(const char *of) {
    for (uint32_t i = 0; i < x.c.n_warnings; i++)
        if (strstr(x.c.warnings[i], of) != NULL) return true;
    return false;
}

static void test_repository(void **state) {
    (void)state;
    config_fixture_write(&x, "digits/1/model.onnx", "");
    config_fixture_write(&x, "digits/9/model.onnx", "");
    config_fixture_write(&x, "digits/10/model.onnx", "");
    config_fixture_write(&x, "digits/011/model.onnx", "");
    config_fixture_write(&x, "digits/0/model.onnx", "");
    config_fixture_write(&x, "digits/-3/model.onnx", "");
    config_fixture_write(&x, "digits/12x/model.onnx", "");
    config_fixture_write(&x, "digits/13", "a file, not a folder");
    config_fixture_write(&x, "digits/14", NULL);
    config_fixture_write(&x, "digits/99999999999999999999/model.onnx", "");
    config_fixture_write(&x, "bare.onnx", "");
    config_fixture_write(&x, "readme.txt", "");
    config_fixture_write(&x, ".hidden/1/model.onnx", "");
    config_fixture_write(&x, "bad name/1/model.onnx", "");
    config_fixture_write(&x, "notes", NULL);
    load(x.folder);
    assert_int_equal(x.c.n_models, 2);
    const ConfigModel *m = config_fixture_model(&x, "digits", NULL);
    assert_string_equal(m->version, "10");
    assert_string_equal(m->path, config_fixture_path(&x, "digits/10/model.onnx"));
    assert_true(m->from_disk && m->broken == NULL && m->pbtxt == NULL && m->declared == NULL);
    m = config_fixture_model(&x, "bare", "1");
    assert_string_equal(m->path, config_fixture_path(&x, "bare.onnx"));
    assert_true(m->from_disk);
    assert_true(warned("digits/14: has no model.onnx"));
    assert_true(warned("bad name: not a valid model name"));
    assert_true(warned("notes: no version found"));
    assert_int_equal(x.c.n_warnings, 3);
}

static void test_sorted(void **state) {
    (void)state;
    config_fixture_write(&x, "b/2/model.onnx", "");
    config_fixture_write(&x, "b/10/model.onnx", "");
    config_fixture_write(&x, "b/1/model.onnx", "");
    config_fixture_write(&x, "a/5/model.onnx", "");
    config_fixture_flag(&x, "versions=64");
    load(x.folder);
    static const char *const names[] = {"a", "b", "b", "b"}, *const versions[] = {"5", "1", "2",
                                                                                  "10"};
    assert_int_equal(x.c.n_models, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(x.c.models[i].name, names[i]);
        assert_string_equal(x.c.models[i].version, versions[i]);
    }
}

static void test_one_model(void **state) {
    (void)state;
    config_fixture_write(&x, "digits/1/model.onnx", "");
    char given[256];
    load(config_fixture_path(&x, "digits"));
    assert_int_equal(x.c.n_models, 1);
    assert_string_equal(x.c.models[0].name, "digits");
    (void)snprintf(given, sizeof given, "other=%s/digits", x.folder);
    x.s.n_sources = 0;
    load(given);
    assert_string_equal(x.c.models[0].name, "other");
    x.s.n_sources = 0;
    load("third=zoo:alexnet");
    assert_string_equal(x.c.models[0].name, "third");
    assert_false(x.c.models[0].from_disk);
}

static void policy(const char *text, uint32_t n, const char *first) {
    config_fixture_write(&x, "m/config.pbtxt", text);
    x.s.n_sources = 0;
    load(x.folder);
    if (x.c.n_models != n) fail_msg("%s: %u models", text, x.c.n_models);
    assert_string_equal(x.c.models[0].version, first);
}

static void test_policies(void **state) {
    (void)state;
    for (int i = 1; i <= 4; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "m/%d/model.onnx", i);
        config_fixture_write(&x, path, "");
    }
    policy("", 1, "4");
    policy("version_policy: { latest { num_versions: 2 } }", 2, "3");
    policy("version_policy { latest: { } }", 1, "4");
    policy("version_policy: { all { } }", 4, "1");
    policy("version_policy: { specific: { versions: [ 1, 3 ] } }", 2, "1");
    policy("version_policy: { specific { versions: 7 versions: 2 } }", 1, "2");
    policy("version_policy: { specific { versions: 7 } }", 1, "1");
    assert_non_null(strstr(x.c.models[0].broken, "selects versions that do not exist"));
    config_fixture_flag(&x, "m.versions=3");
    policy("version_policy: { all { } }", 3, "2");
    policy("version_policy: { specific { versions: 1 } }", 3, "2");
}

static void test_filename(void **state) {
    (void)state;
    config_fixture_write(&x, "m/1/net.onnx", "");
    config_fixture_write(&x, "m/config.pbtxt", "default_model_filename: \"net.onnx\"\n");
    load(x.folder);
    assert_string_equal(x.c.models[0].path, config_fixture_path(&x, "m/1/net.onnx"));
    assert_string_equal(x.c.models[0].pbtxt, config_fixture_path(&x, "m/config.pbtxt"));
    assert_string_equal(x.c.models[0].declared->filename, "net.onnx");
}

// One model that is wrong does not keep the others from being served.
static void test_broken(void **state) {
    (void)state;
    config_fixture_write(&x, "a/1/model.onnx", "");
    config_fixture_write(&x, "b/7/model.onnx", "");
    config_fixture_write(&x, "b/config.pbtxt", "name: \"b\"\nmax_batch_size: {\n");
    config_fixture_write(&x, "c/1/model.onnx", "");
    config_fixture_write(&x, "c/config.pbtxt", "name: \"another\"\n");
    config_fixture_write(&x, "d/1", NULL);
    config_fixture_write(&x, "e/1/model.onnx", "");
    config_fixture_write(&x, "e/config.pbtxt",
                         "parameters { key: \"qos.queue\" value { string_value: \"0\" } }\n");
    load(x.folder);
    assert_int_equal(x.c.n_models, 5);
    assert_null(config_fixture_model(&x, "a", "1")->broken);
    assert_non_null(strstr(config_fixture_model(&x, "b", "7")->broken, "config.pbtxt:2:"));
    assert_non_null(strstr(config_fixture_model(&x, "c", NULL)->broken, "name is 'another'"));
    assert_non_null(strstr(config_fixture_model(&x, "d", NULL)->broken, "no version found"));
    assert_non_null(strstr(config_fixture_model(&x, "e", NULL)->broken,
                           "config.pbtxt:1 of model e: queue: '0' is out of range"));
    config_fixture_flag(&x, "strict=true");
    assert_int_equal(config_fixture_load(&x, NULL), ERR_CONFIG);
}

static void test_strict(void **state) {
    (void)state;
    config_fixture_write(&x, "a/1/model.onnx", "");
    config_fixture_write(&x, "a/config.pbtxt", "\nsequence_batching { idle: 3 }\nmetric_tag: 3\n");
    load(x.folder);
    assert_null(x.c.models[0].broken);
    assert_int_equal(x.c.n_warnings, 2);
    assert_true(warned("a/config.pbtxt:2: sequence_batching is unknown"));
    assert_true(warned("a/config.pbtxt:3: metric_tag is unknown and has no effect; did you "
                       "mean metric_tags?"));
    config_fixture_flag(&x, "strict=true");
    assert_int_equal(config_fixture_load(&x, NULL), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "a/config.pbtxt:2: sequence_batching is unknown"));
}

static void test_unreadable(void **state) {
    (void)state;
    config_fixture_write(&x, "a/1/model.onnx", "");
    config_fixture_write(&x, "b/1/model.onnx", "");
    assert_int_equal(symlink("nowhere", config_fixture_path(&x, "loop")), 0);
    assert_int_equal(mkfifo(config_fixture_path(&x, "pipe.onnx"), 0600), 0);
    assert_int_equal(mkfifo(config_fixture_path(&x, "b/config.pbtxt"), 0600), 0);
    load(x.folder);
    assert_int_equal(x.c.n_models, 2);
    if (geteuid() == 0) return;  // root can read every file
    assert_int_equal(chmod(config_fixture_path(&x, "a"), 0), 0);
    Err e = config_fixture_load(&x, NULL);
    assert_int_equal(chmod(config_fixture_path(&x, "a"), 0700), 0);
    assert_int_equal(e, ERR_OK);
    assert_non_null(strstr(config_fixture_model(&x, "a", NULL)->broken, "cannot read folder"));
}

// M8 of the checklist: nothing is read that is too large, and nothing brings in other files.
static void test_hostile(void **state) {
    (void)state;
    config_fixture_write(&x, "repo/a/1/model.onnx", "");
    config_fixture_write(&x, "repo/b/1/model.onnx", "");
    config_fixture_write(&x, "repo/c/1/model.onnx", "");
    config_fixture_write(&x, "repo/a/config.pbtxt", "");
    config_fixture_write(&x, "repo/b/config.pbtxt", "include: \"config.pbtxt\"\nimport { a: 1 }\n");
    config_fixture_write(&x, "repo/c/config.pbtxt", "include \"config.pbtxt\"\n");
    assert_int_equal(truncate(config_fixture_path(&x, "repo/a/config.pbtxt"), INT64_C(1) << 30), 0);
    load(config_fixture_path(&x, "repo"));
    assert_non_null(strstr(config_fixture_model(&x, "a", "1")->broken, "more than the limit of"));
    assert_null(config_fixture_model(&x, "b", "1")->broken);
    assert_true(warned("b/config.pbtxt:1: include is unknown"));
    assert_non_null(strstr(config_fixture_model(&x, "c", "1")->broken, "config.pbtxt:1:9:"));
    config_fixture_write(&x, "cotenant.yaml", "");
    assert_int_equal(truncate(config_fixture_path(&x, "cotenant.yaml"), INT64_C(1) << 30), 0);
    x.s.file = config_fixture_path(&x, "cotenant.yaml");
    config_finish(&x.c);
    assert_int_equal(config_load(&x.c, &x.s), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "more than the limit of"));
    assert_int_equal(config_fixture_load(&x, "include: other.yaml\n"), ERR_CONFIG);
    assert_int_equal(config_fixture_load(&x, "sources: [!!python/object:os.system x]\n"),
                     ERR_CONFIG);
}

static void test_empty(void **state) {
    (void)state;
    load(x.folder);
    assert_int_equal(x.c.n_models, 0);
    assert_true(warned("no model found; expected MODEL/1/model.onnx"));
}

static void test_same_name(void **state) {
    (void)state;
    config_fixture_write(&x, "one/net.onnx", "");
    config_fixture_write(&x, "two/net.onnx", "");
    config_fixture_source(&x, config_fixture_path(&x, "one/net.onnx"));
    config_fixture_source(&x, config_fixture_path(&x, "two/net.onnx"));
    assert_int_equal(config_fixture_load(&x, NULL), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "model net is defined twice"));
    assert_int_equal(config_fixture_load(&x,
                                         "models:\n- path: one/net.onnx\n- {path: two/net.onnx, "
                                         "version: 2}\n"),
                     ERR_CONFIG);
    x.s.n_sources = 0;
    assert_int_equal(config_fixture_load(&x,
                                         "models:\n- path: one/net.onnx\n- {path: two/net.onnx, "
                                         "version: 2}\n"),
                     ERR_OK);
    assert_string_equal(config_fixture_model(&x, "net", "2")->path,
                        config_fixture_path(&x, "two/net.onnx"));
}

static void test_version_of_a_folder(void **state) {
    (void)state;
    config_fixture_write(&x, "m/1/model.onnx", "");
    config_fixture_write(&x, "m/2/model.onnx", "");
    assert_int_equal(config_fixture_load(&x, "models: [{name: m, path: m, version: 1}]\n"), ERR_OK);
    assert_int_equal(x.c.n_models, 1);
    assert_string_equal(x.c.models[0].version, "1");
    assert_int_equal(config_fixture_load(&x, "models: [{name: m, path: m, version: 3}]\n"),
                     ERR_CONFIG);
    assert_non_null(strstr(err_why(), "cotenant.yaml:1: model m has no version 3"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_repository, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sorted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_policies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_filename, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strict, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_version_of_a_folder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

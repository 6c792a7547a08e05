#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "chip/workload.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 26) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Workload find(const char *what) {
    Workload w;
    assert_int_equal(workload_find(what, &arena, &w), ERR_OK);
    return w;
}

static void test_named(void **state) {
    (void)state;
    static const char *const names[] = {
#define X(name, networks, about) #name,
#include "chip/workload.def"
#undef X
    };
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        Workload w = find(names[i]);
        assert_string_equal(w.name, names[i]);
        assert_true(w.n > 0);
        for (uint32_t k = 0; k < w.n; k++) assert_non_null(zoo_find(w.networks[k]));
    }
    assert_int_equal(find("light").n + find("heavy").n, find("mixed").n);
    assert_string_equal(find("Heavy").name, "heavy");
}

static void test_lists(void **state) {
    (void)state;
    Workload w = find("ResNet50,mobilenet-v2+lstm_kws,some/where.onnx,net.onnx");
    assert_int_equal(w.n, 5);
    assert_string_equal(w.networks[0], "resnet50");
    assert_string_equal(w.networks[1], "mobilenet_v2");
    assert_string_equal(w.networks[3], "some/where.onnx");
    assert_string_equal(w.networks[4], "net.onnx");
    assert_true(w.target_ms[0] == 15 && w.target_ms[2] == 0 && w.target_ms[3] == 0);
    assert_true(find("yolo_v3").target_ms[0] == 100);
}

static void test_refuses(void **state) {
    (void)state;
    Workload w;
    assert_int_equal(workload_find("resnet500", &arena, &w), ERR_ARG);
    assert_non_null(strstr(err_why(), "did you mean resnet50?"));
    assert_int_equal(workload_find("vgg16,,resnet50", &arena, &w), ERR_ARG);
    assert_int_equal(workload_find("", &arena, &w), ERR_ARG);
    assert_int_equal(workload_find("vgg16,VGG16", &arena, &w), ERR_ARG);
    assert_non_null(strstr(err_why(), "twice"));
    char many[33 * 8] = "0.onnx";
    for (int i = 1; i < 33; i++) {
        size_t n = strlen(many);
        (void)snprintf(many + n, sizeof many - n, ",%d.onnx", i);
    }
    assert_int_equal(workload_find(many, &arena, &w), ERR_LIMIT);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}

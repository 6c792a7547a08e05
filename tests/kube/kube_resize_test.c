// Patches for pods/resize: totals are divided as before, and the QoS class stays.
#include "kube/kube_resize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/runner.h"

static json_t *pod_of(const char *containers) {
    char text[2000];
    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"containers\":[%s]}}",
                   containers);
    json_t *pod = json_loads(text, 0, NULL);
    assert_non_null(pod);
    return pod;
}

static void expect(const char *containers, int64_t cores, int64_t bytes, const char *body) {
    json_t *pod = pod_of(containers);
    char   *out = NULL;
    assert_int_equal(kube_resize_patch(pod, cores, bytes, &out), ERR_OK);
    if (body == NULL)
        assert_null(out);
    else
        assert_string_equal(out, body);
    free(out);
    json_decref(pod);
}

#define HEAD "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"containers\":["

static void test_division(void **state) {
    (void)state;
    expect("{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}},"
           "{\"name\":\"b\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}",
           8000, 0,
           HEAD "{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"6000m\"}}},"
                "{\"name\":\"b\",\"resources\":{\"requests\":{\"cpu\":\"2000m\"}}}]}}");
    expect("{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}}", 3000, 5, NULL);
}

static void test_qos(void **state) {
    (void)state;
    expect("{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2\",\"memory\":\"1Ki\"},"
           "\"limits\":{\"cpu\":\"2\",\"memory\":\"1Ki\"}}}",
           3000, 2048,
           HEAD "{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"3000m\",\"memory\":"
                "\"2048\"},\"limits\":{\"cpu\":\"3000m\",\"memory\":\"2048\"}}}]}}");
    expect(
        "{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"4\"}}}",
        6000, 0, HEAD "{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"3999m\"}}}]}}");
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "", "{\"name\":\"a\",\"resizePolicy\":[{\"restartPolicy\":\"RestartContainer\"}]}",
        "{\"resources\":{}}", "{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"x\"}}}",
        "{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":[]}}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *pod = pod_of(bad[i]);
        char   *out = NULL;
        assert_int_not_equal(kube_resize_patch(pod, 1000, 1000, &out), ERR_OK);
        assert_null(out);
        json_decref(pod);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_division), cmocka_unit_test(test_qos),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

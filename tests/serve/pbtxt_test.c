// config.pbtxt: parsing, resulting settings, errors.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "serve/models/pbtxt.h"
#include "tests/runner.h"

static Arena a;

static int setup(void **state) {
    (void)state;
    return arena_init(&a, 1 << 26) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&a);
    return 0;
}

static Pbtxt parse(const char *text) {
    Pbtxt p = {0};
    if (pbtxt_parse("c", text, strlen(text), false, &a, &p) != ERR_OK)
        fail_msg("%s: %s", text, err_why());
    return p;
}

// Later ones are stronger.
static const PbtxtSet *set_of(const Pbtxt *p, const char *key) {
    for (uint32_t i = p->n_sets; i-- > 0;)
        if (strcmp(p->sets[i].key, key) == 0) return &p->sets[i];
    return NULL;
}

static void has(const Pbtxt *p, const char *key, const char *value, uint32_t line) {
    const PbtxtSet *s = set_of(p, key);
    if (s == NULL) fail_msg("%s is not set", key);
    assert_string_equal(s->value, value);
    assert_int_equal(s->line, line);
}

static void test_whole(void **state) {
    (void)state;
    Pbtxt p =
        parse("# as people write them\n"
              "name: \"digits\"\n"
              "platform: 'onnxruntime_onnx'\n"
              "backend: \"onnx\" \"runtime\"\n"
              "max_batch_size: 0x10\n"
              "input [\n"
              "  { name: \"img\"  data_type: TYPE_FP32, dims: [ 1, 28, -1 ] },\n"
              "  { name: \"b\"; data_type: TYPE_INT64; dims: 3 dims: 4 optional: true }\n"
              "]\n"
              "output < name: \"s\\x41\\n\\101\" data_type: TYPE_STRING dims: [] >\n"
              "instance_group { count: 1 kind: KIND_CPU rate_limiter { resources [ { name: "
              "\"R\" global: true count: 3 } ] priority: 2 } }\n"
              "dynamic_batching { preferred_batch_size: [ 4, 8 ] preserve_ordering: t\n"
              "  default_queue_policy: { timeout_action: REJECT\n"
              "    default_timeout_microseconds: 20500 allow_timeout_override: true\n"
              "    max_queue_size: 64 }\n"
              "  priority_queue_policy { key: 1 value: { max_queue_size: 3 } } }\n"
              "model_warmup [ { name: \"a\" batch_size: 1 count: 3 inputs { key: \"img\" "
              "value: { data_type: TYPE_FP32 dims: 1 zero_data: true } } }, { } ]\n"
              "parameters [ { key: \"qos.class\" value: { string_value: \"best_effort\" } },\n"
              "  { key: \"execution_mode\" value: { string_value: \"0\" } } ]\n"
              "metric_tags { key: \"a\" value: \"b\" }\n"
              "default_model_filename: \"net.onnx\"\n");
    assert_string_equal(p.name, "digits");
    assert_string_equal(p.platform, "onnxruntime_onnx");
    assert_string_equal(p.backend, "onnxruntime");
    assert_string_equal(p.filename, "net.onnx");
    assert_int_equal(p.max_batch_size, 16);
    assert_int_equal(p.n_inputs, 2);
    assert_string_equal(p.inputs[0].name, "img");
    assert_int_equal(p.inputs[0].dtype, DT_F32);
    assert_int_equal(p.inputs[0].rank, 3);
    assert_int_equal(p.inputs[0].dims[2], -1);
    assert_int_equal(p.inputs[1].rank, 2);
    assert_true(p.inputs[1].optional && !p.inputs[0].optional);
    assert_int_equal(p.n_outputs, 1);
    assert_string_equal(p.outputs[0].name, "sA\nA");
    assert_int_equal(p.outputs[0].dtype, DT_STR);
    assert_int_equal(p.outputs[0].rank, RANK_UNKNOWN);
    has(&p, "max_batch", "16", 5);
    has(&p, "on_miss", "reject", 13);
    has(&p, "timeout_ms", "20.500", 14);
    has(&p, "queue", "64", 15);
    has(&p, "warmup", "4", 17);
    has(&p, "class", "best_effort", 18);
    assert_int_equal(p.n_sets, 6);
    assert_int_equal(p.n_warnings, 0);
}

static void test_empty(void **state) {
    (void)state;
    Pbtxt p = parse("");
    assert_int_equal(p.n_sets + p.n_inputs + p.n_outputs + p.n_warnings, 0);
    assert_string_equal(p.name, "");
    assert_string_equal(p.filename, "");
    parse(" \n # nothing\n\t");
}

static void test_delay(void **state) {
    (void)state;
    Pbtxt p = parse("dynamic_batching { default_queue_policy {\n"
                    "default_timeout_microseconds: 1\n timeout_action: DELAY } }");
    has(&p, "on_miss", "degrade", 3);
    has(&p, "target_ms", "0.001", 2);
    assert_null(set_of(&p, "timeout_ms"));
    p = parse("dynamic_batching { default_queue_policy { max_queue_size: 0 } } max_batch_size: 0");
    assert_int_equal(p.n_sets, 0);
}

// What a parameter says stands above what other fields mean, wherever it stands.
static void test_parameters(void **state) {
    (void)state;
    Pbtxt p = parse("parameters { key: \"qos.max_batch\" value { string_value: \"7\" } }\n"
                    "max_batch_size: 3");
    has(&p, "max_batch", "7", 1);
    p = parse("parameters { value { string_value: \"7\" } key: \"qos.target_ms\" }");
    has(&p, "target_ms", "7", 1);
    p = parse("\nparameters { key: \"qos.target\" value { string_value: \"7\" } }");
    assert_int_equal(p.n_sets, 0);
    assert_int_equal(p.n_warnings, 1);
    assert_non_null(strstr(p.warnings[0], "c:2: unknown parameter qos.target"));
}

static void test_reshape(void **state) {
    (void)state;
    Pbtxt p = parse("input { name: \"a\" dims: [ 6 ] reshape { shape: [ 2, -1 ] } }\n"
                    "output { name: \"b\" dims: [ 1 ] reshape { } }\n"
                    "output { name: \"c\" dims: [ 1 ] }\n");
    assert_true(p.inputs[0].reshaped && p.inputs[0].rank == 1 && p.inputs[0].shape_rank == 2);
    assert_true(p.inputs[0].shape[0] == 2 && p.inputs[0].shape[1] == -1);
    assert_true(p.outputs[0].reshaped && p.outputs[0].shape_rank == 0);
    assert_false(p.outputs[1].reshaped);
    assert_int_equal(p.n_warnings, 0);
}

static void test_warnings(void **state) {
    (void)state;
    Pbtxt p = parse("optimization { graph { level: 1 } x: [ { a: 1 }, { b < > } ] }\n"
                    "input { name: \"a\" allow_ragged_batch: true reshape { shape: [ ] } }\n"
                    "instance_group { count: 4\n kind: KIND_GPU gpus: [ 0 ] }\n");
    assert_int_equal(p.n_warnings, 5);
    assert_string_equal(p.warnings[0], "c:1: optimization is unknown and has no effect");
    assert_non_null(strstr(p.warnings[1], "c:2: input.allow_ragged_batch is unknown"));
    assert_non_null(strstr(p.warnings[2], "c:3: instance_group.count has no effect"));
    assert_non_null(strstr(p.warnings[3], "c:4: instance_group.kind: models run on CPUs"));
    assert_non_null(strstr(p.warnings[4], "c:4: instance_group.gpus is unknown"));
    char many[4096] = "";
    for (int i = 0; i < 100; i++)
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), "unknown%d: 1\n", i);
    p = parse(many);
    assert_int_equal(p.n_warnings, 16);
    assert_string_equal(p.warnings[15], "c: further warnings omitted");
}

typedef struct Wrong {
    const char *text, *says;
} Wrong;

static const Wrong wrongs[] = {
    {"input { reshape { shape: [ 0 ] } }", "c:1:28: input.reshape.shape: a dimension is -1 or"},
    {"input { reshape { } reshape { } }", "c:1:21: input.reshape: given twice"},
    {"input { reshape { shape: \"a\" } }", "input.reshape.shape takes a whole number"},
    {"name", "c:1:5: unexpected end of file; expected ':' or '{' after a field's name"},
    {"name \"a\"", "c:1:6: found '\"'; expected ':' or '{'"},
    {"name: ", "c:1:7: unexpected end of file; expected a number, a word or a quoted"},
    {"name: \"a", "c:1:9: unexpected end of file; expected the closing quote"},
    {"name: \"a\nb\"", "c:1:9: found byte 10; expected the closing quote"},
    {"name: \"\\q\"", "c:1:9: found 'q'; expected one of \\n"},
    {"name: \"\\0\"", "not NUL"},
    {"name: \"\\777\"", "not NUL"},
    {"name: \"\\xff\"", "c:1:7: string is not UTF-8"},
    {"name: a", "c:1:7: name takes a quoted string"},
    {"name { }", "c:1:1: name takes a quoted string"},
    {"max_batch_size: \"3\"", "c:1:17: max_batch_size takes a whole number"},
    {"max_batch_size: 3.5", "c:1:17: max_batch_size takes a whole number"},
    {"max_batch_size: 99999999999999999999", "takes a whole number of at most 64 bits"},
    {"max_batch_size: -1", "must be at least 0"},
    {"max_batch_size { }", "max_batch_size takes one value"},
    {"\n  }", "c:2:3: found '}'; expected a field's name"},
    {"input {", "c:1:8: unexpected end of file within the message of line 1; expected '}'"},
    {"input { name: \"a\" >", "c:1:19: found '>'; expected a field's name or '}'"},
    {"input: 3", "c:1:8: input takes fields in { }"},
    {"input { data_type: \"TYPE_FP32\" }", "input.data_type takes an unquoted word"},
    {"input { data_type: TYPE_FP8 }", "unknown data type"},
    {"input { dims: [ 1 2 ] }", "c:1:19: found '2'; expected ',' or ']'"},
    {"input { dims: [ 1, ] }", "c:1:20: found ']'; expected another element after ','"},
    {"input { dims: [ 1", "expected ',' or ']'"},
    {"input { dims: 0 }", "a dimension is -1 or above 0"},
    {"input { dims: [1,1,1,1,1,1,1,1,1] }", "more than 8 dimensions"},
    {"input { optional: maybe }", "input.optional takes true or false"},
    {"platform: \"tensorrt_plan\"", "only ONNX models are served"},
    {"backend: \"python\"", "only ONNX models are served"},
    {"default_model_filename: \"../../x.onnx\"", "without a path"},
    {"default_model_filename: \"\"", "without a path"},
    {"version_policy { specific { versions: 0 } }", "versions start at 1"},
    {"dynamic_batching { default_queue_policy { timeout_action: DROP } }", "REJECT or DELAY"},
    {"dynamic_batching { default_queue_policy { default_timeout_microseconds: -1 } }",
     "must be from 0"},
    {"parameters { key: \"qos.queue\" }", "parameter qos.queue lacks value"},
    {"model_warmup { count: 1001 }", "from 0 to 1000"},
    {"[ext.name]: 3", "c:1:1: found '['; expected a field's name"},
    {"name: \"a\" \x01", "found byte 1"},
};

static void test_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        Pbtxt p = {0};
        Err   e = pbtxt_parse("c", wrongs[i].text, strlen(wrongs[i].text), false, &a, &p);
        if (e != ERR_CONFIG) fail_msg("accepted, or %d: %s", e, wrongs[i].text);
        if (strstr(err_why(), wrongs[i].says) == NULL || strncmp(err_why(), "c:", 2) != 0)
            fail_msg("%s\nsays: %s\nlacks: %s", wrongs[i].text, err_why(), wrongs[i].says);
        arena_rewind(&a, 0);
    }
}

static void test_limits(void **state) {
    (void)state;
    size_t n = PBTXT_BYTES + 1;
    char  *text = malloc(n + 1);
    Pbtxt  p = {0};
    assert_non_null(text);
    memset(text, ' ', n);
    assert_int_equal(pbtxt_parse("c", text, n, false, &a, &p), ERR_CONFIG);
    assert_int_equal(pbtxt_parse("c", text, n - 1, false, &a, &p), ERR_OK);
    for (size_t i = 0; i + 1 < n; i += 2) memcpy(text + i, "a{", 2);  // nested without end
    assert_int_equal(pbtxt_parse("c", text, n - 1, false, &a, &p), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "nested deeper than"));
    for (size_t i = 0; i + 2 < n; i += 3) memcpy(text + i, "\"\" ", 3);  // one text of many
    memcpy(text, "name: ", 6);
    assert_int_equal(pbtxt_parse("c", text, n - 3, false, &a, &p), ERR_OK);
    assert_string_equal(p.name, "");
    free(text);
}

// A full arena is an error wherever it fills up.
static void test_memory(void **state) {
    (void)state;
    static const char text[] = "name: \"a\" x: 1 max_batch_size: 3 parameters { key: \"qos.queue\" "
                               "value { string_value: \"7\" } }";
    Err               last = ERR_LIMIT;
    for (size_t cap = 4096; last != ERR_OK && cap < 1 << 20; cap += 16) {
        Arena small;
        Pbtxt p = {0};
        assert_int_equal(arena_init(&small, cap), ERR_OK);
        last = pbtxt_parse("c", text, sizeof text - 1, false, &small, &p);
        assert_true(last == ERR_OK || last == ERR_LIMIT);
        arena_finish(&small);
    }
    assert_int_equal(last, ERR_OK);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_empty),
        cmocka_unit_test(test_delay),   cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_reshape), cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_wrong),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

// Damaged bytes: truncated, flipped, inserted, nested without end. Each is an error or a valid
// model.
#include "tests/model/onnx_build.h"
#include "tests/runner.h"

#include <stdio.h>

// A model with constants, attributes, a body, a function and dynamic shapes.
static Msg small_model(void) {
    Msg     body = {0}, other = {0}, g = {0}, n = node_of("If", "cond", "y"), fn = {0}, call;
    int64_t one = 1, open[2] = {-1, 3};
    float   v[3] = {1, 2, 3};
    msg_sub(&body, 1, node_of("Relu", "h", "out"));
    graph_ends(&body, "", "out");
    msg_sub(&other, 5, floats_of("out", 3, v));
    graph_ends(&other, "", "out");
    msg_sub(&n, 5, graph_attr("then_branch", body));
    msg_sub(&n, 5, graph_attr("else_branch", other));
    msg_sub(&g, 1, n);
    msg_text(&g, 2, "small");
    call = node_of("Twice", "x", "h");
    msg_text(&call, 7, "own");
    msg_sub(&g, 1, call);
    msg_sub(&g, 11, info_of("cond", 9, 1, &one));
    msg_sub(&g, 11, info_of("x", 1, 2, open));
    graph_ends(&g, "", "y");
    msg_text(&fn, 1, "Twice");
    msg_text(&fn, 4, "a");
    msg_text(&fn, 5, "b");
    msg_sub(&fn, 7, node_of("Relu", "a", "t"));
    msg_sub(&fn, 7, node_of("Relu", "t", "b"));
    msg_sub(&fn, 9, import_of("", 13));
    msg_text(&fn, 10, "own");
    Msg m = model_of(g, 13);
    msg_sub(&m, 25, fn);
    return m;
}

// From a buffer of exactly n bytes, so that a sanitizer sees one byte too many.
static Err read_exactly(const uint8_t *at, size_t n) {
    uint8_t *copy = malloc(n > 0 ? n : 1);
    Model    m;
    assert_non_null(copy);
    memcpy(copy, at, n);
    Err e = onnx_read_bytes(copy, n, "damaged", NULL, &m);
    if (e == ERR_OK)
        model_finish(&m);
    else
        assert_null(m.arena.base);
    free(copy);
    return e;
}

static void cut_at_every_byte(void **state) {
    (void)state;
    Msg    m = small_model();
    size_t good = 0;
    for (size_t n = 0; n < m.n; n++) good += read_exactly(m.at, n) == ERR_OK;
    assert_int_equal(good, 0);  // the function comes last and is needed
    assert_int_equal(read_exactly(m.at, m.n), ERR_OK);
    free(m.at);
}

static void every_bit_flipped(void **state) {
    (void)state;
    Msg    m = small_model();
    size_t bad = 0;
    for (size_t i = 0; i < 8 * m.n; i++) {
        m.at[i / 8] ^= (uint8_t)(1u << i % 8);
        bad += read_exactly(m.at, m.n) != ERR_OK;
        m.at[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    assert_true(bad > 0);
    free(m.at);
}

static void bytes_set_inserted_removed(void **state) {
    (void)state;
    static const uint8_t evil[] = {0x00, 0x7f, 0x80, 0xff};
    Msg                  m = small_model();
    uint8_t             *changed = malloc(m.n + 1);
    assert_non_null(changed);
    for (size_t i = 0; i < m.n; i++) {
        memcpy(changed, m.at, i);
        for (size_t k = 0; k < sizeof evil; k++) {
            changed[i] = evil[k];
            memcpy(changed + i + 1, m.at + i, m.n - i);
            (void)read_exactly(changed, m.n + 1);
            memcpy(changed + i + 1, m.at + i + 1, m.n - i - 1);
            (void)read_exactly(changed, m.n);
        }
        memcpy(changed + i, m.at + i + 1, m.n - i - 1);
        (void)read_exactly(changed, m.n - 1);
    }
    free(changed);
    free(m.at);
}

static void broken(const void *bytes, size_t n, const char *why) {
    if (read_exactly(bytes, n) != ERR_PARSE || strstr(err_why(), why) == NULL)
        fail_msg("wanted '%s', got: %s", why, err_why());
}

static void broken_fields_name_the_byte(void **state) {
    (void)state;
    broken("\x3a\x05\x0a", 3, "byte 2: a field exceeds its message");
    broken("\x3a\xff\xff\xff\xff\x0f", 6, "2 GiB or more");
    broken("\x3a\xff\xff\xff\xff\xff\x01", 7, "incomplete length");
    broken("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "byte 1: incomplete varint");
    broken("\x08\x80", 2, "incomplete varint");
    broken("\x00\x01", 2, "byte 0: invalid field tag");
    broken("\xff\xff\xff\xff\xff\x01", 6, "invalid field tag");
    broken("\x3b\x3c", 2, "unknown wire type");
    broken("\x3d\x01\x02\x03\x04", 5, "field 'graph' has wire type 5, must be 2");
    broken("\x0a\x01\x01", 3, "field 'ir_version' has wire type 2, must be 0");
    broken("\x12\x02\xc3\x28", 4, "field 'producer_name' is not UTF-8");
    broken("\x12\x02\x61\x00", 4, "field 'producer_name' is not UTF-8");
    broken("\x3a\x00\x3a\x00", 4, "occurs twice");
    broken("\x3a\x06\x2a\x04\x22\x02\x00\x00", 8, "truncated packed field");
    broken("\x3a\x05\x2a\x03\x3a\x01\x80", 7, "truncated packed field");
}

// The last of several scalars counts, repeated fields may be packed or not, unknown fields are
// skipped.
static void odd_but_legal(void **state) {
    (void)state;
    Model   m;
    Msg     g = {0}, t = {0};
    int64_t packed = 2;
    msg_int(&t, 1, 9);
    msg_bytes(&t, 1, (uint8_t[]){1}, 1);
    msg_int(&t, 2, 7);
    msg_int(&t, 2, 1);
    msg_text(&t, 8, "w");
    for (int i = 0; i < 5; i++) msg_float(&t, 4, (float)i);
    msg_bytes(&t, 4, (float[]){5, 6, 7, 8}, 16);
    msg_int(&t, 900, 1);
    msg_text(&t, 901, "new");
    msg_sub(&g, 5, t);
    msg_sub(&g, 1, node_of("Relu", "w", "y"));
    graph_ends(&g, "", "y");
    accepted(model_of(g, 13), &m);
    const Tensor *w = &m.graph->values[graph_find(m.graph, "w")].type;
    assert_int_equal(w->rank, packed);
    assert_int_equal(w->dims[0], 9);
    assert_true(((float *)w->data)[8] == 8);
    model_finish(&m);
}

static void nesting_ends(void **state) {
    (void)state;
    Msg type = {0};
    for (int i = 0; i < 100000; i++) {  // sequence of sequence of ...
        Msg seq = {0}, outer = {0};
        if (type.n > 1 << 16) break;
        msg_sub(&seq, 1, type);
        msg_sub(&outer, 4, seq);
        type = outer;
    }
    Msg info = {0}, g = {0};
    msg_text(&info, 1, "x");
    msg_sub(&info, 2, type);
    msg_sub(&g, 11, info);
    rejected(model_of(g, 13), ERR_LIMIT, "nested deeper");
}

// Two bytes per node: memory stays proportional to the file.
static void tiny_messages_are_capped(void **state) {
    (void)state;
    Msg g = {0};
    for (int i = 0; i < 200000; i++) msg_bytes(&g, 1, "", 0);
    rejected(model_of(g, 13), ERR_LIMIT, "more memory");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(every_bit_flipped),
        cmocka_unit_test(bytes_set_inserted_removed),
        cmocka_unit_test(broken_fields_name_the_byte),
        cmocka_unit_test(odd_but_legal),
        cmocka_unit_test(nesting_ends),
        cmocka_unit_test(tiny_messages_are_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

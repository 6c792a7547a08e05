// RNN, GRU, LSTM: matching sizes, activations and the order of their parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/params/rnn.h"
#include "tests/model/call.h"
#include "tests/runner.h"

// An LSTM of 5 neurons over 7 steps of 2 sequences of 3 features.
static void lstm(Call *c) {
    call_begin(c, OP_LSTM, 14);
    call_in(c, DT_F32, SHAPE(7, 2, 3), NULL);
    call_in(c, DT_F32, SHAPE(1, 20, 3), NULL);
    call_in(c, DT_F32, SHAPE(1, 20, 5), NULL);
    c->node.n_out = 3;
}

static void shapes(void **state) {
    (void)state;
    Call c;
    lstm(&c);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(7, 1, 2, 5)));
    assert_true(call_shape_is(&c.out[2], SHAPE(1, 2, 5)));
    call_int(&c, "layout", 1);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(7, 2, 1, 5)));
    assert_true(call_shape_is(&c.out[1], SHAPE(7, 1, 5)));
    call_finish(&c);
}

static void sizes_disagree(void **state) {
    (void)state;
    static const int64_t hidden[] = {4, 0, -5, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        Call c;
        lstm(&c);
        call_int(&c, "hidden_size", hidden[i]);
        assert_int_equal(call_infer(&c), ERR_INVALID);
        call_finish(&c);
    }
    Call c;
    lstm(&c);
    c.tensors[1].dims[1] = 15;  // a GRU's
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[1].dims[1] = 20;
    c.tensors[2].dims[2] = INT64_MAX;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[2].dims[2] = 5;
    call_str(&c, "direction", "bidirectional");
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.attrs[0].v.s = (Str){"sideways", 8};
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void optional_inputs(void **state) {
    (void)state;
    Call c;
    lstm(&c);
    call_in(&c, DT_F32, SHAPE(1, 40), NULL);
    call_in(&c, DT_I32, SHAPE(2), NULL);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(1, 2, 5), NULL);
    call_in(&c, DT_F32, SHAPE(1, 15), NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    for (uint32_t i = 3; i < 8; i++) {
        if (c.in[i] == NULL) continue;
        c.tensors[i].dims[0]++;
        assert_int_equal(call_infer(&c), ERR_INVALID);
        c.tensors[i].dims[0]--;
    }
    call_finish(&c);
}

static void activation_parameters(void **state) {
    (void)state;
    static const Str   names[3] = {{"LeakyRelu", 9}, {"tanh", 4}, {"HardSigmoid", 11}};
    static const float alpha[2] = {0.5F, 0.25F}, beta[1] = {0.75F};
    Call               c;
    Rnn                r;
    lstm(&c);
    call_strings(&c, "activations", 3, names);
    call_floats(&c, "activation_alpha", 2, alpha);
    call_floats(&c, "activation_beta", 1, beta);
    assert_int_equal(rnn_read(&c.op, &r), ERR_OK);
    assert_int_equal(r.fn[0][1], RNN_TANH);
    assert_true(r.alpha[0][0] == 0.5F && r.alpha[0][2] == 0.25F && r.beta[0][2] == 0.75F);
    c.attrs[0].n = 2;
    assert_int_equal(rnn_read(&c.op, &r), ERR_INVALID);
    static const Str unknown[3] = {{"Tanh", 4}, {"Tanh", 4}, {"Tanhh", 5}};
    c.attrs[0].n = 3;
    c.attrs[0].v.strings = unknown;
    assert_int_equal(rnn_read(&c.op, &r), ERR_UNSUPPORTED);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(sizes_disagree),
        cmocka_unit_test(optional_inputs),
        cmocka_unit_test(activation_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

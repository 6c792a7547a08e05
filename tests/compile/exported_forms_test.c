// Forms that exporters write out run on fast kernels and equal the interpreter: Where, also as the
// mask of attention, LRN, GELU by tanh, functions of one number, and sequences of unlike lengths.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/net_builder.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { INPUTS = 4, CONDITION_PERIOD = 3 };

static void set_input(Tensor *t, Rng *r, Arena *a) {
    assert_int_equal(tensor_alloc(t, a), ERR_OK);
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set(t, i, t->dtype == DT_BOOL ? i % CONDITION_PERIOD != 1 : rng_normal(r));
}

static void compare(const Tensor *want, const Tensor *got, const char *isa) {
    const float *a = want->data, *b = got->data;
    assert_true(tensor_same_shape(want, got));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (a[i] != b[i] && !(fabsf(a[i] - b[i]) <= 1e-5f + 1e-4f * fabsf(a[i])))
            fail_msg("on %s: element %lld is %g, not %g", isa, (long long)i, (double)b[i],
                     (double)a[i]);
}

// kind: that of a step the program has; refs: the most reference steps.
static void run_compiled(const ShapedGraph *s, const Isa *isa, const Tensor *in, const Tensor *want,
                         const char *kind, uint32_t refs) {
    Program   p;
    RunMemory mem;
    Tensor    got;
    bool      found = false;
    if (program_make(&p, s, &(ProgramOptions){.isa = isa}) != ERR_OK) fail_msg("%s", err_why());
    for (uint32_t i = 0; i < p.n_steps; i++) {
        found = found || strcmp(p.steps[i].kind->name, kind) == 0;
        if (strcmp(p.steps[i].kind->name, "reference") == 0 && refs-- == 0)
            fail_msg("reference kernel: %s", p.steps[i].name);
    }
    assert_true(found);
    assert_int_equal(run_memory_init(&mem, &p, 1), ERR_OK);
    if (program_run(&p, &mem, NULL, in, NULL, &got) != ERR_OK) fail_msg("%s", err_why());
    compare(want, &got, isa->name);
    run_memory_finish(&mem);
    program_finish(&p);
}

static void check(void (*build)(NetBuilder *n), const char *kind, uint32_t refs) {
    Model        m;
    NetBuilder   n;
    ShapedGraph *s = NULL;
    Tensor       in[INPUTS], want;
    Rng          r = {3};
    const Isa   *isas[3];
    size_t       n_isas = isas_here(isas);
    assert_int_equal(model_init(&m, "form"), ERR_OK);
    net_init(&n, m.graph, 7);
    build(&n);
    assert_int_equal(model_materialise(&m), ERR_OK);
    assert_in_range(m.graph->n_inputs, 1, INPUTS);
    for (uint32_t i = 0; i < m.graph->n_inputs; i++) {
        in[i] = m.graph->values[m.graph->inputs[i]].type;
        set_input(&in[i], &r, &m.arena);
    }
    if (shaped_graph_make(m.graph, in, interp_eval, &m.arena, &s) != ERR_OK ||
        interp_run(s, in, &(InterpLimits){0}, &m.arena, &want) != ERR_OK)
        fail_msg("%s", err_why());
    for (size_t i = 0; i < n_isas; i++) run_compiled(s, isas[i], in, &want, kind, refs);
    model_finish(&m);
}

static uint32_t where(NetBuilder *n, uint32_t c, uint32_t x, uint32_t y, uint32_t like) {
    uint32_t in[3] = {c, x, y};
    NetNode  d = {OP_Where, "choice", in, 3, 0, NULL, false};
    return net_node(n, d, n->g->values[like].type, (NetStat){0, 1});
}

static void scores(NetBuilder *n, int64_t queries, int64_t keys, float otherwise) {
    int64_t  q_dims[4] = {2, 3, queries, 16}, k_dims[4] = {2, 3, 16, keys};
    int64_t  v_dims[4] = {2, 3, keys, 8}, c_dims[4] = {1, 1, queries, keys};
    uint32_t q = net_input(n, "q", DT_F32, 4, q_dims), k = net_input(n, "k", DT_F32, 4, k_dims);
    uint32_t v = net_input(n, "v", DT_F32, 4, v_dims), c = net_input(n, "c", DT_BOOL, 4, c_dims);
    uint32_t x = net_matmul(n, "scores", q, k);
    x = where(n, c, x, net_const_scalar(n, otherwise), x);
    net_output(n, net_matmul(n, "context", net_softmax(n, x), v), "y");
}

static void low_scores(NetBuilder *n) { scores(n, 37, 45, -3e38f); }
static void near_scores(NetBuilder *n) { scores(n, 21, 19, -0.5f); }
static void few_queries(NetBuilder *n) { scores(n, 1, 67, -1e4f); }

static void either(NetBuilder *n) {
    int64_t  dims[3] = {3, 5, 7}, row[1] = {7};
    uint32_t c = net_input(n, "c", DT_BOOL, 3, dims);
    uint32_t x = net_input(n, "x", DT_F32, 3, dims), y = net_input(n, "y", DT_F32, 1, row);
    net_output(n, where(n, c, x, y, x), "z");
}

static void number_or(NetBuilder *n) {
    int64_t  dims[2] = {6, 35}, row[2] = {1, 35};
    uint32_t c = net_input(n, "c", DT_BOOL, 2, row), x = net_input(n, "x", DT_F32, 2, dims);
    net_output(n, where(n, c, net_const_scalar(n, -INFINITY), x, x), "z");
}

static uint32_t normalised(NetBuilder *n, uint32_t x, int64_t size, float beta) {
    Attr    attrs[4] = {net_attr_int("size", size), net_attr_float("alpha", 0.3f),
                        net_attr_float("beta", beta), net_attr_float("bias", 1.5f)};
    NetNode d = {OP_LRN, "lrn", &x, 1, 4, attrs, false};
    return net_node(n, d, n->g->values[x].type, (NetStat){0, 1});
}

static void lrn(NetBuilder *n) {
    int64_t dims[4] = {2, 21, 5, 9};
    net_output(n, normalised(n, net_input(n, "x", DT_F32, 4, dims), 5, 0.75f), "y");
}

static void lrn_even(NetBuilder *n) {
    int64_t dims[3] = {1, 6, 40};
    net_output(n, normalised(n, net_input(n, "x", DT_F32, 3, dims), 4, 0.6f), "y");
}

static void gelu(NetBuilder *n) {
    int64_t  dims[2] = {9, 50};
    uint32_t x = net_input(n, "x", DT_F32, 2, dims);
    uint32_t cube = net_binary(n, OP_Pow, "cube", x, net_const_scalar(n, 3));
    cube = net_binary(n, OP_Mul, "part", cube, net_const_scalar(n, 0.044715f));
    uint32_t sum = net_binary(n, OP_Add, "sum", x, cube);
    sum = net_binary(n, OP_Mul, "root", sum, net_const_scalar(n, 0.79788456f));
    uint32_t gate = net_activation(n, NET_TANH, sum);
    gate = net_binary(n, OP_Add, "gate", gate, net_const_scalar(n, 1));
    uint32_t half = net_binary(n, OP_Mul, "half", x, net_const_scalar(n, 0.5f));
    net_output(n, net_binary(n, OP_Mul, "gelu", half, gate), "y");
}

static void waves(NetBuilder *n) {
    static const OpId ops[] = {OP_Sin, OP_Cos, OP_Atan, OP_Softsign, OP_Sign, OP_Swish};
    int64_t           dims[2] = {9, 50};
    uint32_t          x = net_input(n, "x", DT_F32, 2, dims), sum = x;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        Attr     alpha = net_attr_float("alpha", 0.7f);
        NetNode  d = {ops[i], "wave", &x, 1, ops[i] == OP_Swish, &alpha, false};
        uint32_t y = net_node(n, d, n->g->values[x].type, (NetStat){0, 1});
        sum = net_binary(n, OP_Add, "sum", sum, y);
    }
    net_output(n, sum, "y");
}

static void lengths(NetBuilder *n, OpId op, int64_t gates) {
    enum { STEPS = 6, BATCH = 3, IN = 5, HIDDEN = 19 };
    int32_t  lens[BATCH] = {6, 0, 4};
    int64_t  dims[3] = {STEPS, BATCH, IN}, w[3] = {2, gates * HIDDEN, IN}, count = BATCH;
    int64_t  r[3] = {2, gates * HIDDEN, HIDDEN}, b[2] = {2, 2 * gates * HIDDEN};
    int64_t  out[4] = {STEPS, 2, BATCH, HIDDEN};
    uint32_t in[5] = {net_input(n, "x", DT_F32, 3, dims), net_weight(n, "w", 3, w, 0, 0.3),
                      net_weight(n, "r", 3, r, 0, 0.3), net_weight(n, "b", 2, b, 0, 0.3),
                      net_const(n, "lengths", tensor_of(DT_I32, 1, &count, lens))};
    Attr     attrs[2] = {net_attr_int("hidden_size", HIDDEN),
                         net_attr_str("direction", "bidirectional")};
    NetNode  d = {op, "layer", in, 5, 2, attrs, false};
    net_output(n, net_node(n, d, tensor_of(DT_F32, 4, out, NULL), (NetStat){0, 1}), "y");
}

static void lstm_lengths(NetBuilder *n) { lengths(n, OP_LSTM, 4); }
static void gru_lengths(NetBuilder *n) { lengths(n, OP_GRU, 3); }

static void choices(void **state) {
    (void)state;
    check(low_scores, "attention", 1);  // the condition becomes floats
    check(near_scores, "attention", 1);
    check(few_queries, "attention", 1);
    check(either, "elementwise", 1);
    check(number_or, "elementwise", 1);
}

static void normalisations(void **state) {
    (void)state;
    check(lrn, "pool", 0);
    check(lrn_even, "pool", 0);
    check(gelu, "elementwise", 0);
    check(waves, "elementwise", 0);
}

static void sequences(void **state) {
    (void)state;
    check(lstm_lengths, "rnn", 0);
    check(gru_lengths, "rnn", 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(normalisations),
                                       cmocka_unit_test(sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

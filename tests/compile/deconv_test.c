// Transposed convolutions with all attributes run on the fast kernel and equal the interpreter.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/net_builder.h"
#include "tests/runner.h"

enum { MAX_ATTRS = 6 };

typedef struct Case {
    bool    fast;
    int32_t rank;  // of x, w and y
    int64_t x[5], w[5], y[5];
    struct {
        const char *name;
        uint32_t    n;  // 0: a scalar
        int64_t     at[6];
    } attrs[MAX_ATTRS];
    const char *auto_pad;
} Case;

static const Case cases[] = {
    {true, 4, {2, 11, 5, 6}, {11, 9, 3, 3}, {2, 9, 7, 8}, {{0}}, NULL},
    {true,
     4,
     {1, 16, 5, 7},
     {16, 20, 3, 4},
     {1, 20, 10, 14},
     {{"strides", 2, {2, 2}}, {"pads", 4, {1, 1, 1, 1}}, {"output_padding", 2, {1, 0}}},
     NULL},
    {true,
     4,
     {1, 5, 4, 3},
     {5, 3, 2, 3},
     {1, 3, 15, 11},
     {{"strides", 2, {3, 2}}, {"output_shape", 2, {15, 11}}},
     NULL},
    {true,
     4,
     {1, 9, 4, 5},
     {9, 8, 3, 2},
     {1, 8, 11, 13},
     {{"strides", 2, {2, 2}}, {"dilations", 2, {2, 4}}},
     NULL},
    {true, 4, {1, 8, 4, 5}, {8, 17, 3, 3}, {1, 17, 8, 15}, {{"strides", 2, {2, 3}}}, "SAME_UPPER"},
    {true, 4, {1, 8, 4, 5}, {8, 17, 4, 3}, {1, 17, 8, 10}, {{"strides", 2, {2, 2}}}, "SAME_LOWER"},
    {true, 3, {2, 12, 20}, {12, 24, 4}, {2, 24, 42}, {{"strides", 1, {2}}}, NULL},
    {true, 4, {1, 8, 5, 6}, {8, 3, 3, 3}, {1, 6, 7, 8}, {{"group", 0, {2}}}, NULL},
    {true,
     4,
     {2, 20, 3, 4},
     {20, 1, 4, 4},
     {2, 20, 6, 8},
     {{"group", 0, {20}}, {"strides", 2, {2, 2}}, {"pads", 4, {1, 1, 1, 1}}},
     NULL},
    {true,
     5,
     {1, 6, 3, 4, 5},
     {6, 10, 2, 3, 4},
     {1, 10, 6, 9, 10},
     {{"strides", 3, {2, 2, 2}}, {"pads", 6, {0, 0, 1, 0, 0, 1}}},
     NULL},
    {true,
     5,
     {1, 12, 3, 3, 3},
     {12, 2, 3, 3, 3},
     {1, 6, 6, 5, 3},
     {{"group", 0, {3}},
      {"strides", 3, {2, 2, 1}},
      {"pads", 6, {1, 1, 1, 1, 1, 1}},
      {"output_padding", 3, {1, 0, 0}}},
     NULL},
};

static uint32_t case_attrs(const Case *c, Attr *out) {
    uint32_t n = 0;
    for (; n < MAX_ATTRS && c->attrs[n].name != NULL; n++)
        out[n] = c->attrs[n].n == 0
                     ? net_attr_int(c->attrs[n].name, c->attrs[n].at[0])
                     : net_attr_ints(c->attrs[n].name, c->attrs[n].at, c->attrs[n].n);
    if (c->auto_pad != NULL) out[n++] = net_attr_str("auto_pad", c->auto_pad);
    return n;
}

// With element-wise layers behind it, some of which are fused into the weights.
static void build(Graph *g, const Case *c) {
    NetBuilder n;
    Attr       attrs[MAX_ATTRS + 1];
    net_init(&n, g, 7);
    uint32_t x = net_input(&n, "x", DT_F32, c->rank, c->x);
    uint32_t w = net_weight(&n, "w", c->rank, c->w, 0, 1);
    uint32_t in[3] = {x, w, net_weight(&n, "b", 1, &c->y[1], 0, 1)};
    NetNode  d = {OP_ConvTranspose, "up", in, 3, case_attrs(c, attrs), attrs, false};
    uint32_t y = net_node(&n, d, tensor_of(DT_F32, c->rank, c->y, NULL), (NetStat){0, 1});
    int64_t  channels[4] = {c->y[1], 1, 1, 1};
    y = net_mul(&n, y, net_weight(&n, "scale", c->rank - 1, channels, 1, 0.5));
    y = net_add(&n, y, net_weight(&n, "rest", c->rank, c->y, 0, 1));
    net_output(&n, net_activation(&n, NET_HSWISH, y), "y");
}

static void compare(const Tensor *want, const Tensor *got, size_t which, const char *isa) {
    const float *a = want->data, *b = got->data;
    assert_true(tensor_same_shape(want, got));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f + 1e-4f * fabsf(a[i])))
            fail_msg("case %zu on %s: element %lld is %g, not %g", which, isa, (long long)i,
                     (double)b[i], (double)a[i]);
}

static void run_compiled(const ShapedGraph *s, const Isa *isa, const Tensor *in, const Tensor *want,
                         size_t which) {
    Program   p;
    RunMemory mem;
    Tensor    got;
    bool      fast = false;
    if (program_make(&p, s, &(ProgramOptions){.isa = isa}) != ERR_OK) fail_msg("%s", err_why());
    for (uint32_t i = 0; i < p.n_steps; i++)
        fast = fast || strcmp(p.steps[i].kind->name, "deconv") == 0;
    assert_int_equal(fast, cases[which].fast);
    assert_int_equal(run_memory_init(&mem, &p, 1), ERR_OK);
    if (program_run(&p, &mem, NULL, in, NULL, &got) != ERR_OK) fail_msg("%s", err_why());
    compare(want, &got, which, isa->name);
    run_memory_finish(&mem);
    program_finish(&p);
}

static void one_case(size_t which) {
    Model        m;
    ShapedGraph *s = NULL;
    Tensor       in, want;
    Rng          r = {which + 1};
    const Isa   *best = NULL;
    assert_int_equal(model_init(&m, "deconv"), ERR_OK);
    build(m.graph, &cases[which]);
    assert_int_equal(model_materialise(&m), ERR_OK);
    in = m.graph->values[m.graph->inputs[0]].type;
    assert_int_equal(tensor_alloc(&in, &m.arena), ERR_OK);
    for (int64_t i = 0; i < tensor_count(&in); i++) ((float *)in.data)[i] = (float)rng_normal(&r);
    if (shaped_graph_make(m.graph, &in, interp_eval, &m.arena, &s) != ERR_OK ||
        interp_run(s, &in, &(InterpLimits){0}, &m.arena, &want) != ERR_OK)
        fail_msg("case %zu: %s", which, err_why());
    assert_int_equal(isa_choose(&best), ERR_OK);
    run_compiled(s, &isa_baseline, &in, &want, which);
    if (best != &isa_baseline) run_compiled(s, best, &in, &want, which);
    model_finish(&m);
}

static void all_attributes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) one_case(i);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_attributes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

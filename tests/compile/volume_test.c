// Convolutions and pools of volumes run on fast kernels and equal the
// interpreter.
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

enum { ATTRS = 6 };

typedef struct Case {
    OpId    op;
    int64_t x[5], channels, kernel[3], stride[3], dilation[3], pad[6], out[3], group, count_pad;
} Case;

static const Case cases[] = {
    {OP_Conv,
     {2, 3, 5, 9, 8},
     18,
     {3, 3, 3},
     {1, 2, 2},
     {1, 1, 1},
     {1, 1, 1, 1, 1, 1},
     {5, 5, 4},
     1,
     0},
    {OP_Conv,
     {1, 20, 6, 7, 5},
     33,
     {3, 1, 1},
     {2, 1, 1},
     {1, 1, 1},
     {1, 0, 0, 1, 0, 0},
     {3, 7, 5},
     1,
     0},
    {OP_Conv,
     {1, 20, 6, 7, 5},
     9,
     {3, 1, 1},
     {1, 2, 2},
     {2, 1, 1},
     {2, 0, 0, 2, 0, 0},
     {6, 4, 3},
     1,
     0},
    {OP_Conv,
     {2, 16, 4, 6, 7},
     24,
     {1, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 1, 0, 1, 1},
     {4, 6, 7},
     1,
     0},
    {OP_Conv, {1, 33, 4, 5, 6}, 17, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {4, 5, 6}, 1, 0},
    {OP_Conv,
     {1, 12, 5, 6, 6},
     12,
     {3, 3, 3},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1, 1, 1, 1},
     {5, 6, 6},
     12,
     0},
    {OP_Conv, {1, 32, 3, 4, 4}, 16, {2, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0}, {2, 2, 2}, 4, 0},
    {OP_MaxPool, {2, 19, 6, 9, 8}, 19, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0}, {3, 4, 4}, 1, 0},
    {OP_MaxPool,
     {1, 16, 5, 9, 8},
     16,
     {3, 3, 3},
     {1, 2, 2},
     {1, 1, 1},
     {1, 1, 1, 1, 1, 1},
     {5, 5, 4},
     1,
     0},
    {OP_AveragePool,
     {1, 7, 5, 6, 8},
     7,
     {3, 2, 3},
     {1, 2, 1},
     {1, 1, 1},
     {1, 0, 1, 1, 0, 1},
     {5, 3, 8},
     1,
     0},
    {OP_AveragePool,
     {1, 7, 5, 6, 8},
     7,
     {3, 2, 3},
     {1, 2, 1},
     {1, 1, 1},
     {1, 0, 1, 1, 0, 1},
     {5, 3, 8},
     1,
     1},
};

static uint32_t attrs_of(const Case *c, Attr *out) {
    uint32_t n = 0;
    out[n++] = net_attr_ints("kernel_shape", c->kernel, 3);
    out[n++] = net_attr_ints("strides", c->stride, 3);
    out[n++] = net_attr_ints("pads", c->pad, 6);
    if (c->op == OP_Conv) out[n++] = net_attr_ints("dilations", c->dilation, 3);
    if (c->op == OP_Conv) out[n++] = net_attr_int("group", c->group);
    if (c->op == OP_AveragePool) out[n++] = net_attr_int("count_include_pad", c->count_pad);
    return n;
}

// With a scale and an activation behind it, so that layouts and epilogues take part.
static void build(Graph *g, const Case *c) {
    NetBuilder n;
    Attr       attrs[ATTRS];
    int64_t    w[5] = {c->channels, c->x[1] / c->group, c->kernel[0], c->kernel[1], c->kernel[2]};
    int64_t    y[5] = {c->x[0], c->channels, c->out[0], c->out[1], c->out[2]};
    int64_t    scale[4] = {c->channels, 1, 1, 1};
    net_init(&n, g, 7);
    uint32_t in[3] = {net_input(&n, "x", DT_F32, 5, c->x)};
    if (c->op == OP_Conv) {
        in[1] = net_weight(&n, "w", 5, w, 0, 0.3);
        in[2] = net_weight(&n, "b", 1, &c->channels, 0, 1);
    }
    NetNode  d = {c->op, "volume", in, c->op == OP_Conv ? 3 : 1, attrs_of(c, attrs), attrs, false};
    uint32_t v = net_node(&n, d, tensor_of(DT_F32, 5, y, NULL), (NetStat){0, 1});
    v = net_mul(&n, v, net_weight(&n, "scale", 4, scale, 1, 0.5));
    net_output(&n, net_activation(&n, NET_HSWISH, v), "y");
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
    if (program_make(&p, s, &(ProgramOptions){.isa = isa}) != ERR_OK) fail_msg("%s", err_why());
    for (uint32_t i = 0; i < p.n_steps; i++)
        assert_string_not_equal(p.steps[i].kind->name, "reference");
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
    const Isa   *isas[3];
    size_t       n = isas_here(isas);
    assert_int_equal(model_init(&m, "volume"), ERR_OK);
    build(m.graph, &cases[which]);
    assert_int_equal(model_materialise(&m), ERR_OK);
    in = m.graph->values[m.graph->inputs[0]].type;
    assert_int_equal(tensor_alloc(&in, &m.arena), ERR_OK);
    for (int64_t i = 0; i < tensor_count(&in); i++) ((float *)in.data)[i] = (float)rng_normal(&r);
    if (shaped_graph_make(m.graph, &in, interp_eval, &m.arena, &s) != ERR_OK ||
        interp_run(s, &in, &(InterpLimits){0}, &m.arena, &want) != ERR_OK)
        fail_msg("case %zu: %s", which, err_why());
    for (size_t i = 0; i < n; i++) run_compiled(s, isas[i], &in, &want, which);
    model_finish(&m);
}

static void volumes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) one_case(i);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(volumes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Every kernel version of a heavy layer equals the reference: odd shapes on every instruction set,
// layers of some networks on small images, and small networks as a whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/zoo/zoo.h"
#include "tests/compile/version_check.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { ARENA_SHIFT = 36 };

static void tell(const char *what) { print_error("%s\n", what); }

typedef struct OddConv {
    int64_t       n, ic, h, w;
    NetConv       conv;
    NetActivation act;
    bool          add;  // adds a tensor of the output's shape before the activation
} OddConv;

static const OddConv convs[] = {
    {1, 3, 17, 19, {20, .kernel = 3, .stride = 2, .pad = 1, .bias = true}, NET_RELU6, false},
    {1, 3, 30, 29, {16, .kernel = 7, .stride = 2, .pad = 3}, NET_RELU, false},
    {1, 1, 12, 12, {9, .kernel = 5}, NET_LINEAR, false},
    {2, 13, 9, 11, {21, .kernel = 3, .pad = 1, .bias = true}, NET_RELU, true},
    {1, 16, 14, 14, {24, .kernel = 3, .pad = 1}, NET_SILU, true},
    {1, 24, 13, 10, {40, .kernel = 3, .pad = 1, .bias = true}, NET_LINEAR, false},
    {1, 19, 4, 3, {5, .kernel = 3, .pad = 1}, NET_LEAKY, false},
    {1, 9, 3, 3, {9, .kernel = 3}, NET_LINEAR, false},
    {1, 8, 7, 5, {40, .kernel = 1}, NET_HSWISH, true},
    {3, 33, 6, 6, {17, .kernel = 1, .stride = 2, .bias = true}, NET_SIGMOID, false},
    {2, 40, 1, 1, {27, .kernel = 1}, NET_GELU, false},
    {1, 16, 12, 10, {16, .kernel = 5, .pad = 2}, NET_RELU, false},
    {1, 24, 10, 11, {30, .kernel = 3, .pad = 2, .dilation = 2}, NET_TANH, false},
    {1, 17, 15, 9, {12, .kernel = 3, .stride = 2, .same = true}, NET_RELU, true},
    {1, 10, 8, 12, {14, .kernel = 1, .kernel_w = 7, .pad_w = 3}, NET_RELU, false},
    {1, 12, 9, 9, {18, .kernel = 3, .pad = 1, .groups = 3}, NET_RELU, false},
    {1, 32, 9, 9, {16, .kernel = 3, .pad = 1, .groups = 2, .bias = true}, NET_RELU, true},
    {1, 20, 11, 13, {20, .kernel = 3, .pad = 1, .groups = 20, .bias = true}, NET_RELU6, false},
    {2, 21, 12, 12, {21, .kernel = 5, .stride = 2, .pad = 2, .groups = 21}, NET_HSWISH, false},
};

static uint32_t odd_conv(NetBuilder *n, const OddConv *o) {
    uint32_t x = net_input(n, "x", DT_F32, 4, (int64_t[]){o->n, o->ic, o->h, o->w});
    uint32_t y = net_conv(n, "conv", x, o->conv);
    int64_t  dims[4];
    for (int32_t i = 0; i < 4; i++) dims[i] = net_dim(n, y, i);
    if (o->add) y = net_add(n, y, net_input(n, "r", DT_F32, 4, dims));
    return net_activation(n, o->act, y);
}

typedef struct OddProduct {
    int64_t       stack, m, k, n;
    NetActivation act;
    bool          both;  // both operands are computed
} OddProduct;

static const OddProduct products[] = {
    {1, 1, 37, 19, NET_RELU, false},    {1, 5, 64, 64, NET_GELU, false},
    {2, 17, 100, 33, NET_TANH, false},  {1, 48, 70, 200, NET_LINEAR, false},
    {1, 3, 300, 7, NET_SIGMOID, false}, {3, 7, 20, 13, NET_LINEAR, true},
    {2, 1, 9, 40, NET_LINEAR, true},    {1, 33, 31, 29, NET_RELU, true},
};

static uint32_t odd_product(NetBuilder *n, const OddProduct *p) {
    uint32_t x = net_input(n, "x", DT_F32, 3, (int64_t[]){p->stack, p->m, p->k});
    uint32_t y = IR_NONE;
    if (p->both)
        y = net_matmul(n, "product", x,
                       net_input(n, "b", DT_F32, 3, (int64_t[]){p->stack, p->k, p->n}));
    else
        y = net_linear(n, "linear", x, p->n);
    return net_activation(n, p->act, y);
}

static void one_layer(VersionCheck *q, const OddConv *conv, const OddProduct *product) {
    Model      m;
    NetBuilder n;
    Arena      a;
    assert_int_equal(model_init(&m, "odd"), ERR_OK);
    assert_int_equal(arena_init(&a, (size_t)1 << ARENA_SHIFT), ERR_OK);
    net_init(&n, m.graph, 5);
    net_output(&n, conv != NULL ? odd_conv(&n, conv) : odd_product(&n, product), "y");
    assert_int_equal(model_materialise(&m), ERR_OK);
    Tensor types[2];
    for (uint32_t i = 0; i < m.graph->n_inputs; i++)
        types[i] = m.graph->values[m.graph->inputs[i]].type;
    uint32_t before = q->versions;
    if (version_check_graph(q, m.graph, types, NULL, false, &a) != ERR_OK)
        fail_msg("%s", err_why());
    assert_true(q->versions > before);  // it has a fast kernel
    arena_finish(&a);
    model_finish(&m);
}

static void odd_shapes(void **state) {
    (void)state;
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    for (size_t i = 0; i < n; i++) {
        VersionCheck q;
        assert_int_equal(version_check_init(&q, isas[i], tell), ERR_OK);
        for (size_t k = 0; k < sizeof convs / sizeof *convs; k++) one_layer(&q, &convs[k], NULL);
        for (size_t k = 0; k < sizeof products / sizeof *products; k++)
            one_layer(&q, NULL, &products[k]);
        print_message("%s: %u versions\n", isas[i]->name, q.versions);
        assert_int_equal(q.failed, 0);
        version_check_finish(&q);
    }
}

static void open_network(const char *name, int64_t sequence, Model *m, Tensor *types,
                         ShapedGraph **s) {
    assert_int_equal(zoo_build(name, &(ZooOptions){.sequence = sequence}, m), ERR_OK);
    assert_int_equal(model_materialise(m), ERR_OK);
    for (uint32_t i = 0; i < m->graph->n_inputs; i++)
        types[i] = m->graph->values[m->graph->inputs[i]].type;
    assert_int_equal(shaped_graph_make(m->graph, types, interp_eval, &m->arena, s), ERR_OK);
}

static void layers_of_networks(void **state) {
    (void)state;
    static const char *const names[] = {"squeezenet1_1", "mobilenet_v2", "resnet18"};
    VersionCheck             q;
    Arena                    a;
    const Isa               *isa = NULL;
    assert_int_equal(isa_choose(&isa), ERR_OK);
    assert_int_equal(version_check_init(&q, isa, tell), ERR_OK);
    assert_int_equal(arena_init(&a, (size_t)1 << ARENA_SHIFT), ERR_OK);
    q.max_macs = 1e6;
    q.skip_macs = 8e6;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Model        m;
        ShapedGraph *s = NULL;
        Tensor       types[3];
        open_network(names[i], 0, &m, types, &s);
        if (version_check_layers(&q, s, &a) != ERR_OK) fail_msg("%s: %s", names[i], err_why());
        model_finish(&m);
    }
    print_message("%u layers, %u shapes, %u made smaller, %u left out, %u versions\n", q.layers,
                  q.shapes, q.shrunk, q.skipped, q.versions);
    assert_true(q.shapes - q.skipped > 40 && q.versions > q.shapes);
    assert_int_equal(q.failed, 0);
    arena_finish(&a);
    version_check_finish(&q);
}

static void as_a_whole(const char *name, int64_t sequence) {
    Model        m;
    ShapedGraph *s = NULL;
    Tensor       types[3], got[3], want[3], *in = NULL;
    open_network(name, sequence, &m, types, &s);
    assert_int_equal(version_check_fill(types, m.graph->n_inputs, (Rng){3}, &m.arena, &in), ERR_OK);
    if (interp_run(s, in, &(InterpLimits){0}, &m.arena, want) != ERR_OK ||
        program_run_once(s, in, &(ProgramOptions){0}, &m.arena, got) != ERR_OK)
        fail_msg("%s: %s", name, err_why());
    for (uint32_t i = 0; i < m.graph->n_outputs; i++) {
        double apart = version_check_apart(&want[i], got[i].data);
        if (!(apart <= version_check_tolerance))
            fail_msg("%s: output %u is %g apart", name, i, apart);
    }
    model_finish(&m);
}

static void whole_networks(void **state) {
    (void)state;
    as_a_whole("squeezenet1_1", 0);
    as_a_whole("mobilenet_v3_large", 0);
    as_a_whole("mobile_bert", 4);
    as_a_whole("lstm_kws", 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(odd_shapes),
                                       cmocka_unit_test(layers_of_networks),
                                       cmocka_unit_test(whole_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

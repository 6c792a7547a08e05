// Random networks compute the same compiled and interpreted, on each instruction set and any number
// of threads.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/net_builder.h"
#include "tests/runner.h"

enum { NETWORKS = 60, LAYERS = 14, MAX_LIVE = LAYERS + 2, PARTS = 3 };

typedef struct Grow {
    NetBuilder net;
    Rng        rng;
    uint32_t   live[MAX_LIVE];
    uint32_t   n;
} Grow;

static int64_t below(Grow *g, uint64_t n) { return (int64_t)rng_below(&g->rng, n); }

static uint32_t pick(Grow *g) { return g->live[below(g, g->n)]; }

static uint32_t grow_conv(Grow *g, uint32_t x) {
    static const int64_t kernels[] = {1, 1, 3, 3, 3, 5, 7};
    int64_t              c = net_dim(&g->net, x, 1);
    NetConv              conv = {.out = 1 + below(g, 40), .bias = below(g, 2)};
    conv.kernel = kernels[below(g, 7)];
    conv.stride = 1 + (below(g, 4) == 0);
    conv.dilation = 1 + (below(g, 6) == 0);
    conv.pad = conv.dilation * (conv.kernel / 2);
    if (below(g, 4) == 0) conv.groups = conv.out = c;
    if (below(g, 6) == 0 && c % 2 == 0) conv.groups = 2, conv.out = 2 * (1 + below(g, 12));
    return net_conv(&g->net, "conv", x, conv);
}

static uint32_t grow_transposed(Grow *g, uint32_t x) {
    NetConv conv = {.out = 1 + below(g, 40), .kernel = 1 + below(g, 3)};
    if (net_dim(&g->net, x, 2) > 12 || net_dim(&g->net, x, 3) > 12) conv.kernel = 1;
    return net_conv_transpose(&g->net, "up", x, conv);
}

static uint32_t grow_gate(Grow *g, uint32_t x) {
    uint32_t y = net_global_pool(&g->net, x);
    y = net_conv(&g->net, "gate", y, (NetConv){.out = net_dim(&g->net, x, 1), .bias = true});
    return net_mul(&g->net, x, net_activation(&g->net, NET_SIGMOID, y));
}

static bool same_size(Grow *g, uint32_t a, uint32_t b, int32_t from) {
    for (int32_t i = from; i < 4; i++)
        if (net_dim(&g->net, a, i) != net_dim(&g->net, b, i)) return false;
    return true;
}

static uint32_t grow_pair(Grow *g, uint32_t x) {
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t y = pick(g);
        if (!same_size(g, x, y, 2)) continue;
        if (same_size(g, x, y, 1) && below(g, 3) > 0) return net_add(&g->net, x, y);
        return net_concat(&g->net, "join", (uint32_t[]){x, y, x}, 2 + (uint32_t)below(g, 2), 1);
    }
    return net_activation(&g->net, NET_RELU, x);
}

static uint32_t grow_pool(Grow *g, uint32_t x) {
    if (net_dim(&g->net, x, 2) < 4 || net_dim(&g->net, x, 3) < 4)
        return net_activation(&g->net, NET_TANH, x);
    NetPool p = {.kernel = 2 + below(g, 2), .stride = 1 + below(g, 2), .ceil = below(g, 2)};
    p.pad = below(g, 2);
    return below(g, 2) ? net_max_pool(&g->net, x, p) : net_avg_pool(&g->net, x, p);
}

static uint32_t grow_one(Grow *g) {
    uint32_t x = below(g, 3) > 0 ? g->live[g->n - 1] : pick(g);
    switch (below(g, 11)) {
    case 0:
    case 1:
    case 2: return grow_conv(g, x);
    case 3: return net_batch_norm(&g->net, "bn", x, 1e-3f);
    case 4:
    case 5: return net_activation(&g->net, (NetActivation)(1 + below(g, NET_GELU)), x);
    case 6: return grow_gate(g, x);
    case 7: return grow_pool(g, x);
    case 8: return grow_transposed(g, x);
    default: return grow_pair(g, x);
    }
}

static void grow(Graph *graph, uint64_t seed) {
    Grow    g = {.rng = (Rng){seed}};
    int64_t dims[4] = {1 + below(&g, 2), 1 + below(&g, 20), 3 + below(&g, 20), 3 + below(&g, 20)};
    net_init(&g.net, graph, seed);
    g.live[g.n++] = net_input(&g.net, "x", DT_F32, 4, dims);
    for (int i = 0; i < LAYERS; i++) {
        net_push_scope(&g.net, "layer%d", i);
        g.live[g.n] = grow_one(&g);
        net_pop_scope(&g.net);
        g.n++;
    }
    net_output(&g.net, g.live[g.n - 1], "y");
    if (g.n > 4 && g.live[4] != g.live[g.n - 1]) net_output(&g.net, g.live[4], "z");
}

static void check_close(const Tensor *want, const Tensor *got, uint64_t seed, const char *isa) {
    const float *a = want->data, *b = got->data;
    float        most = 1e-3f;
    assert_true(tensor_same_shape(want, got));
    for (int64_t i = 0; i < tensor_count(want); i++) most = fmaxf(most, fabsf(a[i]));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 2e-4f * most))
            fail_msg("network %llu on %s: element %lld is %g, not %g", (unsigned long long)seed,
                     isa, (long long)i, (double)b[i], (double)a[i]);
}

static void run_compiled(const ShapedGraph *s, const Isa *isa, Team *team, Tensor *in,
                         uint32_t n_out, const Tensor *want, uint64_t seed) {
    Program   p;
    RunMemory mem;
    Tensor    got[2];
    if (program_make(&p, s, &(ProgramOptions){.isa = isa}) != ERR_OK) fail_msg("%s", err_why());
    assert_int_equal(run_memory_init(&mem, &p, PARTS), ERR_OK);
    for (int parts = 0; parts < 2; parts++) {
        if (program_run(&p, &mem, parts == 0 ? NULL : team, in, NULL, got) != ERR_OK)
            fail_msg("%s", err_why());
        for (uint32_t i = 0; i < n_out; i++) check_close(&want[i], &got[i], seed, isa->name);
    }
    run_memory_finish(&mem);
    program_finish(&p);
}

static void one_network(uint64_t seed, Team *team) {
    Model        m;
    ShapedGraph *s = NULL;
    Tensor       in, want[2];
    Rng          r = (Rng){seed + 1000};
    assert_int_equal(model_init(&m, "random"), ERR_OK);
    grow(m.graph, seed);
    assert_int_equal(model_materialise(&m), ERR_OK);
    in = m.graph->values[m.graph->inputs[0]].type;
    assert_int_equal(tensor_alloc(&in, &m.arena), ERR_OK);
    for (int64_t i = 0; i < tensor_count(&in); i++) ((float *)in.data)[i] = (float)rng_normal(&r);
    if (shaped_graph_make(m.graph, &in, interp_eval, &m.arena, &s) != ERR_OK ||
        interp_run(s, &in, &(InterpLimits){0}, &m.arena, want) != ERR_OK)
        fail_msg("network %llu: %s", (unsigned long long)seed, err_why());
    const Isa *best = NULL;
    assert_int_equal(isa_choose(&best), ERR_OK);
    run_compiled(s, &isa_baseline, team, &in, m.graph->n_outputs, want, seed);
    if (best != &isa_baseline) run_compiled(s, best, team, &in, m.graph->n_outputs, want, seed);
    model_finish(&m);
}

static void random_networks(void **state) {
    (void)state;
    Team *team = NULL;
    assert_int_equal(team_create(&team, PARTS, NULL), ERR_OK);
    for (uint64_t i = 1; i <= NETWORKS; i++) one_network(i, team);
    team_destroy(team);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

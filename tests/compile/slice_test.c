// A step computed in slices gives the same bits as computed at once, whatever the number of slices
// and the threads of each slice, for every kind of step and several versions.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/net_builder.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

enum { PARTS = 4, MOST_INPUTS = 3, KINDS = 32, ROUNDS = 3 };

static const char *sliced[KINDS];  // kinds of steps that ran in several slices
static uint32_t    n_sliced;

static void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

static void note_kind(const char *name) {
    for (uint32_t i = 0; i < n_sliced; i++)
        if (strcmp(sliced[i], name) == 0) return;
    assert_true(n_sliced < KINDS);
    sliced[n_sliced++] = name;
}

static bool has_kind(const char *name) {
    for (uint32_t i = 0; i < n_sliced; i++)
        if (strcmp(sliced[i], name) == 0) return true;
    return false;
}

// Kernels of pictures: convolutions, pools, resizing, layouts.
static void picture(Graph *g) {
    NetBuilder n;
    net_init(&n, g, 3);
    uint32_t x = net_input(&n, "x", DT_F32, 4, (int64_t[]){2, 20, 21, 23});
    uint32_t a = net_conv(&n, "a", x, (NetConv){.out = 40, .kernel = 3, .pad = 1, .bias = true});
    uint32_t d = net_conv(&n, "d", a, (NetConv){.out = 40, .kernel = 3, .pad = 1, .groups = 40});
    uint32_t s = net_add(&n, net_activation(&n, NET_TANH, a), d);
    uint32_t p = net_max_pool(&n, s, (NetPool){.kernel = 2, .stride = 2});
    uint32_t u = net_conv_transpose(&n, "u", p, (NetConv){.out = 24, .kernel = 2});
    u = net_resize(&n, u, 33, 35);
    uint32_t t = net_transpose(&n, net_add(&n, u, u), (int64_t[]){0, 2, 3, 1});
    net_output(&n, net_softmax(&n, t), "out_t");
    uint32_t m = net_concat(&n, "join", (uint32_t[]){s, a}, 2, 1);
    net_output(&n, net_slice(&n, m, 3, 2, 20), "out_m");
    uint32_t f = net_flatten(&n, net_global_pool(&n, s));
    net_output(&n, net_linear(&n, "e", f, 100), "out_f");
    net_output(&n, net_conv(&n, "w", s, (NetConv){.out = 48, .kernel = 3, .pad = 1}), "out_w");
}

static uint32_t sum_rows(NetBuilder *n, uint32_t x) {
    int64_t  dims[3] = {net_dim(n, x, 0), 1, net_dim(n, x, 2)};
    uint32_t in[2] = {x, net_const_ints(n, "axes", (int64_t[]){1}, 1)};
    Tensor   out = n->g->values[x].type;
    memcpy(out.dims, dims, sizeof dims);
    return net_node(n, (NetNode){.op = OP_ReduceSum, .name = "sum", .in = in, .n_in = 2}, out,
                    (NetStat){0, 1});
}

// Kernels of sequences: gathers, products, attention, recurrence, normalization, reductions.
static void sequence(Graph *g) {
    NetBuilder n;
    net_init(&n, g, 4);
    uint32_t x = net_input(&n, "x", DT_F32, 3, (int64_t[]){9, 7, 33});
    uint32_t index = net_input(&n, "index", DT_I64, 2, (int64_t[]){40, 60});
    net_output(&n, net_lstm(&n, "lstm", x, 24), "out_h");
    uint32_t y = net_embedding(&n, "rows", index, 2, 48, 1);
    y = net_layer_norm(&n, "norm", y, 1e-5f);
    net_output(&n, sum_rows(&n, y), "out_s");
    uint32_t q = net_linear(&n, "q", y, 48), k = net_transpose(&n, y, (int64_t[]){0, 2, 1});
    net_output(&n, net_matmul(&n, "scores", q, k), "out_y");
}

static void fill(Tensor *t, Rng *r, Arena *a) {
    check(tensor_alloc(t, a));
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = (float)rng_normal(r);
        else
            ((int64_t *)t->data)[i] = (int64_t)rng_below(r, 2);
    }
}

static uint32_t version_of(const Program *p, uint32_t layer, uint32_t round) {
    return layer < p->n_steps ? round % p->steps[layer].n_versions : 0;
}

static void run_whole(const Program *p, RunMemory *s, const Tensor *in, uint32_t round,
                      Tensor *out) {
    program_begin(p, s, in);
    for (uint32_t l = 0; l < program_layer_count(p); l++)
        program_run_layer(p, s, l, version_of(p, l, round), 0, 1, out);
    check(program_outputs(p, s, NULL, out));
}

// A layer may go on after any slice with another number of threads.
static void run_layer_sliced(const Program *p, RunMemory *s, uint32_t l, uint32_t v, Rng *r,
                             Tensor *out) {
    uint32_t most = program_slices(p, l, v, 1), n = 1 + (uint32_t)rng_below(r, 7);
    if (n > most) n = most;
    if (n > 1) note_kind(p->steps[l].kind->name);
    for (uint32_t at = 0; at < n; at++) {
        uint32_t count = 1 + (uint32_t)rng_below(r, PARTS);
        for (uint32_t i = count; i-- > 0;)
            program_run_slice(p, s, l, v, (StepSlice){at, n}, i, count, out);
    }
}

static void run_sliced(const Program *p, RunMemory *s, const Tensor *in, uint32_t round, Rng *r,
                       Tensor *out) {
    program_begin(p, s, in);
    for (uint32_t l = 0; l < program_layer_count(p); l++)
        run_layer_sliced(p, s, l, version_of(p, l, round), r, out);
    check(program_outputs(p, s, NULL, out));
}

static void offer_versions(Program *p, Rng *r) {
    static Version all[PROFILE_CANDIDATES];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step *s = &p->steps[i];
        if (s->key == NULL || s->kind->versions == NULL) continue;
        uint32_t n = s->kind->versions(s, &p->caches, all, PROFILE_CANDIDATES);
        for (uint32_t v = 1; v < ROUNDS && n > 1; v++) {
            s->versions[v] = all[rng_below(r, n)];
            s->n_versions = v + 1;
        }
    }
}

// Bit by bit; `rounds`: up to rounding, as compilers may contract the last rows of a recurrence
// differently from the others.
static bool same(const Tensor *want, const Tensor *got, bool rounds) {
    if (!rounds || want->dtype != DT_F32) return tensor_equal(want, got);
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!(fabs(tensor_get_f64(want, i) - tensor_get_f64(got, i)) < 1e-6)) return false;
    return tensor_same_shape(want, got);
}

static bool has_recurrence(const Program *p) {
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (strcmp(p->steps[i].kind->name, "rnn") == 0) return true;
    return false;
}

static void compare(const Program *p, const Tensor *in, Rng *r) {
    const bool rounds = has_recurrence(p);
    RunMemory  whole, parts;
    Tensor     want[8], got[8];
    uint32_t   n = p->shaped->graph->n_outputs;
    assert_true(n <= 8);
    check(run_memory_init(&whole, p, 1));
    check(run_memory_init(&parts, p, PARTS));
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        memset(parts.base, 0xa5, p->arena_bytes);
        run_whole(p, &whole, in, round, want);
        run_sliced(p, &parts, in, round, r, got);
        for (uint32_t i = 0; i < n; i++)
            if (!same(&want[i], &got[i], rounds)) fail_msg("round %u: output %u differs", round, i);
    }
    run_memory_finish(&whole);
    run_memory_finish(&parts);
}

static void check_model(Model *m) {
    Graph       *g = m->graph;
    ShapedGraph *s = NULL;
    Program      p;
    Tensor       in[MOST_INPUTS];
    Rng          r = {11};
    check(model_materialise(m));
    assert_true(g->n_inputs <= MOST_INPUTS);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        in[i] = g->values[g->inputs[i]].type;
        fill(&in[i], &r, &m->arena);
    }
    check(shaped_graph_make(g, in, interp_eval, &m->arena, &s));
    check(program_make(&p, s, &(ProgramOptions){.pack_all_versions = true}));
    offer_versions(&p, &r);
    compare(&p, in, &r);
    program_finish(&p);
    model_finish(m);
}

static void pictures(void **state) {
    (void)state;
    Model m;
    check(model_init(&m, "picture"));
    picture(m.graph);
    check_model(&m);
}

static void sequences(void **state) {
    (void)state;
    Model m;
    check(model_init(&m, "sequence"));
    sequence(m.graph);
    check_model(&m);
}

static void language(void **state) {
    (void)state;
    Model m;
    check(zoo_build("mobile_bert", &(ZooOptions){.sequence = 8}, &m));
    check_model(&m);
}

static void every_kind_was_sliced(void **state) {
    (void)state;
    static const char *const kinds[] = {"conv",        "depthwise", "deconv", "pool",      "resize",
                                        "layout",      "concat",    "copy",   "gather",    "reduce",
                                        "elementwise", "normalize", "gemm",   "attention", "rnn"};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!has_kind(kinds[i])) fail_msg("no step of kind %s ran in slices", kinds[i]);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures),
        cmocka_unit_test(sequences),
        cmocka_unit_test(language),
        cmocka_unit_test(every_kind_was_sliced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

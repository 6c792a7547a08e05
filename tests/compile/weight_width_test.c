// Programs with weights of 16 and 8 bits against their slow twin: the reference interpreter on a
// model whose weights were rounded the same way, one by one, in double.
#include "compile/weight_width.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/fp.h"
#include "compile/program.h"
#include "tests/compile/open_model.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { PARTS = 3, WIDE_K = 300, WIDE_N = 67, BLOCK_MOST = 128 };

static void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

static int64_t block_of(int64_t k) {
    int64_t blocks = (k + BLOCK_MOST - 1) / BLOCK_MOST, size = (k + blocks - 1) / blocks;
    return (size + 3) / 4 * 4;
}

// Rounds weights at, at + step, ... of one block of a column.
static void round_bytes(float *at, int64_t n, int64_t step) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(at[i * step]));
    float scale = most / 127;
    for (int64_t i = 0; i < n && scale > 0; i++)
        at[i * step] = (float)(round((double)(at[i * step] / scale)) * (double)scale);
}

static void round_matrix(float *w, int64_t k, int64_t n, bool transposed, WeightWidth width) {
    int64_t step = transposed ? 1 : n, column = transposed ? k : 1, block = block_of(k);
    for (int64_t i = 0; width == WEIGHTS_FP16 && i < k * n; i++)
        w[i] = half_to_f32(half_from_f32(w[i]));
    for (int64_t j = 0; width == WEIGHTS_INT8 && j < n; j++)
        for (int64_t b = 0; b < k; b += block)
            round_bytes(w + j * column + b * step, b + block < k ? block : k - b, step);
}

// All constant right operands of Gemm and MatMul with two dimensions.
static void round_model(Model *m, WeightWidth width) {
    Graph *g = m->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *x = &g->nodes[i];
        if (x->op != OP_Gemm && x->op != OP_MatMul) continue;
        Value *v = &g->values[x->in[1]];
        bool   transposed = x->op == OP_Gemm;
        if (!v->constant || v->type.rank != 2) continue;
        round_matrix(v->type.data, v->type.dims[transposed], v->type.dims[!transposed], transposed,
                     width);
    }
}

// [rows, 300] -> Gemm of alpha 0.5, a scale per channel that is fused into it, Gemm, softmax.
static void build_gemms(Graph *g) {
    NetBuilder net, *n = &net;
    float      scale[WIDE_N];
    for (int i = 0; i < WIDE_N; i++) scale[i] = ldexpf(i % 2 == 0 ? 1 : -1, i % 5 - 2);
    net_init(n, g, 9);
    uint32_t x = net_input(n, "x", DT_F32, 2, (int64_t[]){4, WIDE_K});
    uint32_t in[] = {x, net_weight(n, "w", 2, (int64_t[]){WIDE_N, WIDE_K}, 0.01, 0.1)};
    Attr     attrs[] = {net_attr_int("transB", 1), net_attr_float("alpha", 0.5f)};
    x = net_node(n, (NetNode){OP_Gemm, "scaled", in, 2, 2, attrs, false},
                 tensor_of(DT_F32, 2, (int64_t[]){4, WIDE_N}, NULL), open_usual);
    x = net_mul(n, x, net_const(n, "scale", tensor_of(DT_F32, 2, (int64_t[]){1, WIDE_N}, scale)));
    x = net_activation(n, NET_GELU, net_linear(n, "one", x, 130));
    net_output(n, net_softmax(n, net_linear(n, "two", x, 5)), "y");
    open_dims(g, 0, 1);
}

typedef struct Twins {
    Model          narrowed, rounded;
    PackedWeights *packed;
    Arena          arena;
    WeightWidth    width;
    const Isa     *isa;
    WeightReport  *report;
} Twins;

static void setup(Twins *t, void (*build)(Graph *g), WeightWidth width, const Isa *isa) {
    *t = (Twins){.width = width, .isa = isa};
    check(open_model_make(&t->narrowed, build));
    check(open_model_make(&t->rounded, build));
    round_model(&t->rounded, width);
    check(packed_weights_create(&t->packed, &t->narrowed.arena));
    check(arena_init_growing(&t->arena, 1 << 20, (size_t)1 << 34));
}

static void teardown(Twins *t) {
    packed_weights_destroy(t->packed);
    model_finish(&t->narrowed);
    model_finish(&t->rounded);
    arena_finish(&t->arena);
}

static void fill(Tensor *t, Arena *a) {
    Rng r = {(uint64_t)tensor_count(t)};
    check(tensor_alloc(t, a));
    for (int64_t i = 0; i < tensor_count(t); i++)
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = 2 * rng_unit(&r) - 1;
        else
            ((int64_t *)t->data)[i] = (int64_t)rng_below(&r, OPEN_WORDS);
}

static void make(Twins *t, Tensor *in, bool shares, Program *p) {
    ShapedGraph *s = NULL;
    check(shaped_graph_make(t->narrowed.graph, in, interp_eval, &t->arena, &s));
    ProgramOptions o = {.isa = t->isa,
                        .packed = shares ? t->packed : NULL,
                        .weights = t->width,
                        .report = t->report};
    check(program_make(p, s, &o));
}

static void compare(const Twins *t, const Tensor *want, const Tensor *got) {
    const float *a = want->data, *b = got->data;
    float        most = 1e-3f;
    assert_true(tensor_same_shape(want, got));
    for (int64_t i = 0; i < tensor_count(want); i++) most = fmaxf(most, fabsf(a[i]));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * most))
            fail_msg("%s on %s: element %lld is %g, not %g", weight_width_name(t->width),
                     t->isa->name, (long long)i, (double)b[i], (double)a[i]);
}

static void check_twins(Twins *t, Tensor in, bool shares) {
    Program      p;
    RunMemory    mem;
    ShapedGraph *s = NULL;
    Tensor       want, got;
    Team        *team = NULL;
    fill(&in, &t->arena);
    check(shaped_graph_make(t->rounded.graph, &in, interp_eval, &t->arena, &s));
    check(interp_run(s, &in, &(InterpLimits){0}, &t->arena, &want));
    make(t, &in, shares, &p);
    check(run_memory_init(&mem, &p, PARTS));
    check(team_create(&team, PARTS, NULL));
    for (int parts = 0; parts < 2; parts++) {
        check(program_run(&p, &mem, parts == 0 ? NULL : team, &in, NULL, &got));
        compare(t, &want, &got);
    }
    team_destroy(team);
    run_memory_finish(&mem);
    program_finish(&p);
}

static Tensor rows(int64_t n) { return tensor_of(DT_F32, 2, (int64_t[]){n, WIDE_K}, NULL); }
static Tensor ids(int64_t n) { return tensor_of(DT_I64, 2, (int64_t[]){1, n}, NULL); }

static void programs_equal_their_twins(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 4, 5, 33};
    const Isa           *isas[3];
    for (size_t i = 0, n = isas_here(isas); i < n * 2 * 2; i++) {
        Twins       t;
        WeightWidth width = i % 2 == 0 ? WEIGHTS_FP16 : WEIGHTS_INT8;
        bool        gemms = i / 2 % 2 == 0;
        setup(&t, gemms ? build_gemms : open_encoder, width, isas[i / 4]);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_twins(&t, gemms ? rows(sizes[k]) : ids(sizes[k]), k % 2 == 1);
        teardown(&t);
    }
}

// Weights are rounded for the first shape and for no other.
static void shapes_share_narrow_weights(void **state) {
    (void)state;
    for (WeightWidth w = WEIGHTS_FP16; w <= WEIGHTS_INT8; w++) {
        Twins      t;
        const Isa *isa = NULL;
        check(isa_choose(&isa));
        setup(&t, open_encoder, w, isa);
        check_twins(&t, ids(1), true);
        size_t bytes = packed_weights_bytes(t.packed);
        for (int64_t n = 2; n < 40; n += 5) check_twins(&t, ids(n), true);
        assert_int_equal(packed_weights_bytes(t.packed), bytes);
        teardown(&t);
    }
}

static size_t bytes_of(void (*build)(Graph *g), WeightWidth width, Tensor in, WeightReport *r) {
    Twins   t;
    Program p;
    check(open_model_make(&t.narrowed, build));
    check(arena_init_growing(&t.arena, 1 << 20, (size_t)1 << 34));
    t.width = width;
    t.isa = &isa_baseline;
    t.report = r;
    make(&t, &in, false, &p);
    size_t bytes = p.weight_bytes;
    program_finish(&p);
    arena_finish(&t.arena);
    model_finish(&t.narrowed);
    return bytes;
}

static void weights_take_fewer_bytes(void **state) {
    (void)state;
    size_t floats = bytes_of(build_gemms, WEIGHTS_FP32, rows(1), NULL);
    size_t halves = bytes_of(build_gemms, WEIGHTS_FP16, rows(1), NULL);
    size_t bytes = bytes_of(build_gemms, WEIGHTS_INT8, rows(1), NULL);
    size_t weights = (WIDE_K * WIDE_N + WIDE_N * 130 + 130 * 5) * sizeof(float);
    assert_true(floats - halves > weights * 45 / 100);
    assert_true(floats - bytes > weights * 70 / 100);
}

// Convolutions stay as they are, and the report says so.
static void report_names_all_layers(void **state) {
    (void)state;
    Arena        a;
    WeightReport gemms = {.arena = &a}, image = {.arena = &a}, floats = {.arena = &a};
    check(arena_init(&a, 1 << 20));
    (void)bytes_of(build_gemms, WEIGHTS_INT8, rows(3), &gemms);
    assert_int_equal(gemms.narrowed, 3);
    assert_int_equal(gemms.kept, 0);
    for (const LayerWeights *l = gemms.first; l != NULL; l = l->next) {
        assert_true(l->kept == NULL && l->name[0] != '\0' && l->packed_bytes > 0);
        assert_true(l->rms_error > 1e-4 && l->rms_error < 0.01);
        assert_true(l->max_error > 1e-4 && l->max_error < 0.5 / 127 + 1e-6);
    }
    (void)bytes_of(open_image, WEIGHTS_FP16, tensor_of(DT_F32, 4, (int64_t[]){1, 3, 16, 16}, NULL),
                   &image);
    assert_int_equal(image.narrowed, 0);
    assert_int_equal(image.kept, 6);
    for (const LayerWeights *l = image.first; l != NULL; l = l->next)
        assert_true(strstr(l->kept, "convolution") != NULL && l->file_bytes > 0);
    (void)bytes_of(build_gemms, WEIGHTS_FP32, rows(3), &floats);
    assert_null(floats.first);
    arena_finish(&a);
}

// Weights that are not finite, or beyond 65504, stay floats.
static float extreme;

static void build_extreme(Graph *g) {
    NetBuilder net, *n = &net;
    float      w[12] = {0};
    w[5] = extreme;
    net_init(n, g, 9);
    uint32_t x = net_input(n, "x", DT_F32, 2, (int64_t[]){2, 4});
    uint32_t y = net_const(n, "w", tensor_of(DT_F32, 2, (int64_t[]){4, 3}, w));
    net_output(n, net_matmul(n, "product", x, y), "y");
}

static void extreme_weights_stay_floats(void **state) {
    (void)state;
    static const struct {
        float       weight;
        WeightWidth width;
        const char *kept;
    } cases[] = {{65504, WEIGHTS_FP16, NULL},       {70000, WEIGHTS_FP16, "range of float16"},
                 {70000, WEIGHTS_INT8, NULL},       {INFINITY, WEIGHTS_INT8, "not finite"},
                 {NAN, WEIGHTS_INT8, "not finite"}, {NAN, WEIGHTS_FP16, "not finite"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena        a;
        WeightReport r = {.arena = &a};
        check(arena_init(&a, 1 << 20));
        extreme = cases[i].weight;
        (void)bytes_of(build_extreme, cases[i].width, tensor_of(DT_F32, 2, (int64_t[]){2, 4}, NULL),
                       &r);
        assert_non_null(r.first);
        assert_int_equal(r.first->kept == NULL, cases[i].kept == NULL);
        if (cases[i].kept != NULL) assert_non_null(strstr(r.first->kept, cases[i].kept));
        arena_finish(&a);
    }
}

// The profile store finds a layer by its key: widths have keys of their own.
static void profiles_are_kept_by_width(void **state) {
    (void)state;
    char   keys[WEIGHT_WIDTHS][256];
    Tensor in = rows(1);
    for (WeightWidth w = WEIGHTS_FP32; w < WEIGHT_WIDTHS; w++) {
        Twins   t;
        Program p;
        setup(&t, build_gemms, w, &isa_baseline);
        make(&t, &in, false, &p);
        uint32_t i = 0;
        while (i < p.n_steps && p.steps[i].key == NULL) i++;
        assert_true(i < p.n_steps && strlen(p.steps[i].key) < sizeof keys[w]);
        memcpy(keys[w], p.steps[i].key, strlen(p.steps[i].key) + 1);
        for (WeightWidth other = WEIGHTS_FP32; other < w; other++)
            assert_string_not_equal(keys[w], keys[other]);
        program_finish(&p);
        teardown(&t);
    }
}

static void names_are_read(void **state) {
    (void)state;
    WeightWidth w = WEIGHTS_FP32;
    check(weight_width_parse("int8", &w));
    assert_int_equal(w, WEIGHTS_INT8);
    assert_int_equal(weight_width_parse("in8", &w), ERR_ARG);
    assert_non_null(strstr(err_why(), "did you mean int8?"));
    assert_int_equal(weight_width_parse("", &w), ERR_ARG);
    assert_string_equal(weight_width_name(WEIGHTS_FP16), "fp16");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_equal_their_twins),
        cmocka_unit_test(shapes_share_narrow_weights),
        cmocka_unit_test(weights_take_fewer_bytes),
        cmocka_unit_test(report_names_all_layers),
        cmocka_unit_test(extreme_weights_stay_floats),
        cmocka_unit_test(profiles_are_kept_by_width),
        cmocka_unit_test(names_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

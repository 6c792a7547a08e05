// Address space of many models with reference steps and tails: what a server with 60 models of four
// shapes and eight contexts each reserves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "compile/program.h"
#include "model/graph.h"
#include "tests/runner.h"

enum { MODELS = 60, SHAPES = 4, CONTEXTS = 8, LIMIT_GIB = 4 };

typedef struct Served {
    Model     model;
    Arena     arena;
    Program   program[SHAPES];
    RunMemory mem[SHAPES][CONTEXTS];
} Served;

static Node node_of(OpId op, const char *name, const uint32_t *in, uint32_t n_in,
                    const uint32_t *out) {
    return (Node){
        .name = name, .op = op, .version = 18, .n_in = n_in, .n_out = 1, .in = in, .out = out};
}

// y = cumsum(x), a reference step; z = nonzero(y), in the tail.
static void build(Graph *g, Arena *a) {
    int64_t *axis = arena_new(a, int64_t, 1);
    uint32_t x = graph_value(g, "x"), *in = arena_new(a, uint32_t, 4);
    in[0] = x;
    in[1] = graph_const(g, "axis", tensor_of(DT_I64, 0, NULL, axis), NULL);
    in[2] = graph_value(g, "y");
    in[3] = graph_value(g, "z");
    g->values[x].type = (Tensor){.dtype = DT_F32, .rank = 1, .dims = {DIM_UNKNOWN}};
    graph_input(g, x);
    (void)graph_node(g, node_of(OP_CumSum, "y", in, 2, &in[2]));
    (void)graph_node(g, node_of(OP_NonZero, "z", &in[2], 1, &in[3]));
    graph_output(g, in[3]);
    assert_int_equal(graph_sort(g), ERR_OK);
}

static void serve(Served *s) {
    assert_int_equal(model_init(&s->model, "model"), ERR_OK);
    build(s->model.graph, &s->model.arena);
    arena_trim(&s->model.arena);
    assert_int_equal(arena_init_growing(&s->arena, 1 << 20, (size_t)1 << 34), ERR_OK);
    for (int i = 0; i < SHAPES; i++) {
        int64_t        n = 1 + i;
        Tensor         x = tensor_of(DT_F32, 1, &n, NULL);
        ShapedGraph   *shaped = NULL;
        ProgramOptions o = {.at_least_one_step = true};
        assert_int_equal(shaped_graph_make(s->model.graph, &x, interp_eval, &s->arena, &shaped),
                         ERR_OK);
        assert_int_equal(program_make(&s->program[i], shaped, &o), ERR_OK);
        for (int k = 0; k < CONTEXTS; k++)
            assert_int_equal(run_memory_init(&s->mem[i][k], &s->program[i], 2), ERR_OK);
    }
}

static void run(Served *s) {
    float data[SHAPES] = {1, 2, 3, 4};
    for (int i = 0; i < SHAPES; i++) {
        int64_t n = 1 + i;
        Tensor  x = tensor_of(DT_F32, 1, &n, data), out;
        assert_int_equal(program_run(&s->program[i], &s->mem[i][0], NULL, &x, NULL, &out), ERR_OK);
        assert_int_equal(out.dims[1], n);
        run_memory_release(&s->mem[i][0]);
    }
}

static void finish(Served *s) {
    for (int i = 0; i < SHAPES; i++) {
        for (int k = 0; k < CONTEXTS; k++) run_memory_finish(&s->mem[i][k]);
        program_finish(&s->program[i]);
    }
    arena_finish(&s->arena);
    model_finish(&s->model);
}

static size_t mapped_bytes(void) {
    unsigned long pages = 0;
    FILE         *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    (void)fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void sixty_models_fit_a_few_gigabytes(void **state) {
    (void)state;
    Served       *all = calloc(MODELS, sizeof *all);
    size_t        before = arena_reserved_all();
    struct rlimit old, now;
    assert_non_null(all);
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    now = old;
    now.rlim_cur = mapped_bytes() + ((size_t)LIMIT_GIB << 30);
    if (now.rlim_cur > now.rlim_max) now.rlim_cur = now.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    for (int i = 0; i < MODELS; i++) serve(&all[i]);
    for (int i = 0; i < MODELS; i++) run(&all[i]);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_true(arena_reserved_all() - before < (size_t)LIMIT_GIB << 30);
    for (int i = 0; i < MODELS; i++) finish(&all[i]);
    assert_int_equal(arena_reserved_all(), before);
    free(all);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sixty_models_fit_a_few_gigabytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cli/suite.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare.h"
#include "compile/program.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"

static const Tolerance      onnx_tolerance = {.relative = 1e-3, .absolute = 1e-7};
static const ProgramOptions options = {
    .limits = {.max_bytes = (size_t)1 << 32, .max_iterations = 100000}};

enum { PATH_BYTES = 1024, ARENA_SHIFT = 34 };

static Err read_values(const char *set, const char *what, const Graph *g, const uint32_t *values,
                       uint32_t n, Arena *a, Tensor *out) {
    for (uint32_t i = 0; i < n; i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s_%u.pb", set, what, i);
        if (access(path, F_OK) != 0) return err_set(ERR_IO, "%s is missing", path);
        const Tensor *declared = &g->values[values[i]].type;
        TRY(onnx_read_value(path, declared, a, &out[i]));
        // The suite was made with NumPy, which has no bfloat16 and stores its bits as uint16.
        if (declared->dtype == DT_BF16 && out[i].dtype == DT_U16) out[i].dtype = DT_BF16;
    }
    return ERR_OK;
}

// ONNX's own runner compares bfloat16 as the suite stores it: the bits as a number.
static void as_stored(Tensor *t) {
    if (t->dtype == DT_BF16) t->dtype = DT_U16;
}

static bool draws_random(const Graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        switch (g->nodes[i].op) {
        case OP_Bernoulli:
        case OP_Multinomial:
        case OP_RandomNormal:
        case OP_RandomNormalLike:
        case OP_RandomUniform:
        case OP_RandomUniformLike: return true;
        default: break;
        }
    }
    return false;
}

// Random numbers agree only in type and shape, which proves too little to count as passed.
static Err compare_random(const Graph *g, const Tensor *got, const Tensor *want) {
    static const Tolerance anything = {.absolute = INFINITY};
    for (uint32_t i = 0; i < g->n_outputs; i++) TRY(compare_values(&got[i], &want[i], anything));
    return err_set(ERR_UNSUPPORTED, "draws random numbers, which cannot be compared");
}

static Err run_set(ShapeCache *shape_cache, const char *set, Arena *a) {
    const Graph *g = shape_cache->model->graph;
    Tensor      *in = arena_new(a, Tensor, g->n_inputs), *want = arena_new(a, Tensor, g->n_outputs);
    Tensor      *got = arena_new(a, Tensor, g->n_outputs);
    const ShapedGraph *s = NULL;
    TRY(read_values(set, "input", g, g->inputs, g->n_inputs, a, in));
    TRY(read_values(set, "output", g, g->outputs, g->n_outputs, a, want));
    TRY(shape_cache_get(shape_cache, in, &s));
    TRY(program_run_once(s, in, &options, a, got));
    if (draws_random(g)) return compare_random(g, got, want);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        as_stored(&got[i]);
        as_stored(&want[i]);
        Err e = compare_values(&got[i], &want[i], onnx_tolerance);
        if (e != ERR_OK) return err_add(e, "output '%s'", g->values[g->outputs[i]].name);
    }
    return ERR_OK;
}

static Err run_sets(const Model *m, const char *dir) {
    ShapeCache shape_cache;
    Arena      a = {0};
    Err        e = arena_init(&a, (size_t)1 << ARENA_SHIFT);
    shape_cache_init(&shape_cache, m, interp_eval);
    uint32_t n = 0;
    for (; e == ERR_OK; n++) {
        char set[PATH_BYTES];
        (void)snprintf(set, sizeof set, "%s/test_data_set_%u", dir, n);
        if (access(set, F_OK) != 0) break;
        e = run_set(&shape_cache, set, &a);
        arena_rewind(&a, 0);
    }
    if (e == ERR_OK && n == 0) e = err_set(ERR_IO, "%s holds no test_data_set_0", dir);
    shape_cache_finish(&shape_cache);
    arena_finish(&a);
    return e;
}

Verdict suite_case(const char *dir) {
    char  path[PATH_BYTES];
    Model m = {0};
    (void)snprintf(path, sizeof path, "%s/model.onnx", dir);
    Err e = onnx_read(path, &m);
    if (e == ERR_OK) e = fold_constants(&m, interp_eval);
    if (e == ERR_OK) e = run_sets(&m, dir);
    model_finish(&m);
    if (e == ERR_OK) return VERDICT_PASSED;
    return e == ERR_UNSUPPORTED ? VERDICT_REFUSED : VERDICT_FAILED;
}

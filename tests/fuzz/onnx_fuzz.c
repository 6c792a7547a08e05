// Any bytes as a model: a file that can be read is shaped, folded and run, within limits.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "tests/fuzz/fuzz.h"

enum {
    INPUT_BYTES = 1 << 16,
    ARENA_BYTES = 1 << 28,
    RUN_BYTES = 1 << 24,
    RUN_ROUNDS = 64,
    RUN_MACS = 1 << 24
};

// As declared, open dimensions 1, all zero. False when there is nothing sensible to feed.
static bool make_inputs(const Graph *g, Arena *a, Tensor *out) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        size_t bytes = 0;
        out[i] = g->values[g->inputs[i]].type;
        if (out[i].rank < 0 || out[i].dtype == DT_STR || out[i].dtype >= DT_SEQ) return false;
        for (int32_t d = 0; d < out[i].rank; d++)
            if (out[i].dims[d] < 0) out[i].dims[d] = 1;
        if (tensor_measure(&out[i], &bytes) != ERR_OK || bytes > INPUT_BYTES) return false;
        out[i].data = arena_try(a, 1, bytes, TENSOR_ALIGN);
        if (out[i].data == NULL) return false;
    }
    return true;
}

static void run(const Graph *g, Arena *a) {
    InterpLimits limits = {
        .max_bytes = RUN_BYTES, .max_iterations = RUN_ROUNDS, .max_macs = RUN_MACS};
    ShapedGraph *s = NULL;
    Tensor      *in = arena_try_new(a, Tensor, g->n_inputs);
    Tensor      *types = arena_try_new(a, Tensor, g->n_inputs);
    Tensor      *out = arena_try_new(a, Tensor, g->n_outputs);
    if (in == NULL || types == NULL || out == NULL || !make_inputs(g, a, in)) return;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        types[i] = in[i];
        types[i].data = NULL;
    }
    if (shaped_graph_check_inputs(g, types) != ERR_OK) return;
    if (shaped_graph_make(g, types, interp_eval, a, &s) != ERR_OK) return;
    Err e = interp_run(s, in, &limits, a, out);
    (void)e;
}

FUZZ_TARGET(data, size) {
    Model m;
    Arena a;
    if (onnx_read_bytes(data, size, "fuzz", NULL, &m) != ERR_OK) return 0;
    if (fold_constants(&m, interp_eval) == ERR_OK && arena_init(&a, ARENA_BYTES) == ERR_OK) {
        run(m.graph, &a);
        arena_finish(&a);
    }
    model_finish(&m);
    return 0;
}

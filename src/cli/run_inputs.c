#include "cli/run_inputs.h"

#include <string.h>

#include "base/npy.h"
#include "model/onnx/onnx.h"

// Floats in [-1, 1), integers 0 or 1: small enough to be an index into any table.
static void randomise(Tensor *t, Rng *r) {
    int64_t n = tensor_count(t);
    size_t  size = dtype_size(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = 2 * rng_unit(r) - 1;
        else if (t->dtype == DT_F64)
            ((double *)t->data)[i] = 2 * rng_unit64(r) - 1;
        else if (t->dtype == DT_F16)
            ((uint16_t *)t->data)[i] = (uint16_t)(0x3000 + rng_below(r, 2048));
        else if (t->dtype == DT_BF16)
            ((uint16_t *)t->data)[i] = (uint16_t)(0x3E00 + rng_below(r, 256));
        else
            ((unsigned char *)t->data)[(size_t)i * size] = (unsigned char)rng_below(r, 2);
    }
}

static Err make_random(const char *name, Tensor *t, Rng r, Arena *a) {
    if (t->rank < 0 || t->dtype == DT_NONE || t->dtype == DT_STR || t->dtype == DT_SEQ ||
        t->dtype == DT_OPT)
        return err_set(ERR_ARG,
                       "input '%s' (%s) cannot be made at random; give --input %s=FILE.npy", name,
                       dtype_name(t->dtype), name);
    Err e = tensor_alloc(t, a);
    if (e != ERR_OK) return err_add(e, "input '%s'", name);
    randomise(t, &r);
    return ERR_OK;
}

static Err read_input(const char *name, const char *file, Arena *a, Tensor *t) {
    size_t n = strlen(file);
    bool   onnx = n > 3 && strcmp(file + n - 3, ".pb") == 0;
    Err    e = onnx ? onnx_read_value(file, t, a, t) : npy_read(file, a, t);
    return e == ERR_OK ? e : err_add(e, "input '%s'", name);
}

static const char *asked(const ArgList *given, const char *name) {
    size_t n = strlen(name);
    for (uint32_t i = 0; i < given->n; i++)
        if (strncmp(given->at[i], name, n) == 0 && given->at[i][n] == '=')
            return given->at[i] + n + 1;
    return "random";
}

static Err check_names(const Graph *g, const ArgList *given) {
    for (uint32_t i = 0; i < given->n; i++) {
        bool known = false;
        for (uint32_t k = 0; k < g->n_inputs && !known; k++) {
            const char *name = g->values[g->inputs[k]].name;
            size_t      n = strlen(name);
            known = strncmp(given->at[i], name, n) == 0 && given->at[i][n] == '=';
        }
        if (!known)
            return err_set(ERR_ARG,
                           "--input %s: no input has that name; 'cotenant model show' "
                           "lists them; write NAME=FILE.npy or NAME=random",
                           given->at[i]);
    }
    return ERR_OK;
}

Err run_inputs_read(const Model *m, const ModelArgs *o, const ArgList *given, Arena *a,
                    Tensor *types) {
    const Graph *g = m->graph;
    TRY(check_names(g, given));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const char *name = g->values[g->inputs[i]].name, *file = asked(given, name);
        if (strcmp(file, "random") != 0) {
            TRY(read_input(name, file, a, &types[i]));
            continue;
        }
        model_args_note_open(&g->values[g->inputs[i]], o);
        TRY(make_random(name, &types[i], rng_fork((Rng){(uint64_t)o->seed}, i), a));
    }
    return ERR_OK;
}

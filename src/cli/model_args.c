#include "cli/model_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/npy.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "model/zoo/zoo.h"

static bool is_file(const char *what) {
    size_t n = strlen(what);
    bool   suffix = n > 5 && strcmp(what + n - 5, ".onnx") == 0;
    return suffix || strchr(what, '/') != NULL || access(what, F_OK) == 0;
}

Err model_args_load(const char *what, const ModelArgs *o, Model *m) {
    if (is_file(what)) {
        TRY(onnx_read(what, m));
    } else {
        ZooOptions z = {.batch = o->batch, .sequence = o->sequence, .seed = (uint64_t)o->seed};
        TRY(zoo_build(what, &z, m));
    }
    Err e = ERR_OK;
    if (o->numbers) e = model_materialise(m);
    if (e == ERR_OK) e = fold_constants(m, interp_eval);
    if (e != ERR_OK) model_finish(m);
    return e;
}

// Whether "NAME=N" names dimension d of the input: by its symbol, or as INPUT.AXIS.
static bool names(const char *given, const Value *v, int32_t d) {
    const char *end = strrchr(given, '=');
    if (end == NULL) return false;
    size_t      n = (size_t)(end - given), len = strlen(v->name);
    const char *symbol = v->symbols != NULL ? v->symbols[d] : NULL;
    if (symbol != NULL && strlen(symbol) == n && strncmp(symbol, given, n) == 0) return true;
    return n == len + 2 && strncmp(given, v->name, len) == 0 && given[len] == '.' &&
           given[len + 1] == '0' + d;
}

static const char *find_given(const ModelArgs *o, const Value *v, int32_t d) {
    for (uint32_t i = 0; i < o->dims.n; i++)
        if (names(o->dims.at[i], v, d)) return o->dims.at[i];
    return NULL;
}

static Err read_size(const char *given, int64_t *size) {
    char *end = NULL;
    errno = 0;
    *size = strtoll(strrchr(given, '=') + 1, &end, 10);
    if (errno == 0 && *end == '\0' && *size > 0) return ERR_OK;
    return err_set(ERR_ARG, "--dim %s: the size must be a whole number above 0", given);
}

static bool names_any(const char *given, const Graph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Value *v = &g->values[g->inputs[i]];
        for (int32_t d = 0; d < v->type.rank; d++)
            if (v->type.dims[d] < 0 && names(given, v, d)) return true;
    }
    return false;
}

Err model_args_input_types(const Model *m, const ModelArgs *o, int64_t otherwise, Tensor *types) {
    const Graph *g = m->graph;
    for (uint32_t i = 0; i < o->dims.n; i++)
        if (!names_any(o->dims.at[i], g))
            return err_set(ERR_ARG,
                           "--dim %s: no input has such an open dimension; write SYMBOL=N or "
                           "INPUT.AXIS=N",
                           o->dims.at[i]);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Value *v = &g->values[g->inputs[i]];
        types[i] = v->type;
        for (int32_t d = 0; d < types[i].rank; d++) {
            const char *given = types[i].dims[d] < 0 ? find_given(o, v, d) : NULL;
            if (given != NULL)
                TRY(read_size(given, &types[i].dims[d]));
            else if (types[i].dims[d] < 0)
                types[i].dims[d] = otherwise;
        }
    }
    return ERR_OK;
}

void model_args_note_open(const Value *v, const ModelArgs *o) {
    for (int32_t d = 0; d < v->type.rank; d++) {
        if (v->type.dims[d] >= 0 || find_given(o, v, d) != NULL) continue;
        fprintf(stderr, "dimension %d of input '%s' is open and set to 1; set it with --dim ", d,
                v->name);
        if (v->symbols != NULL && v->symbols[d] != NULL)
            fprintf(stderr, "'%s=N'\n", v->symbols[d]);
        else
            fprintf(stderr, "'%s.%d=N'\n", v->name, d);
    }
}

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
        return err_set(ERR_ARG, "input '%s' (%s) cannot be random; give --input %s=FILE.npy", name,
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

static const char *source_of(const ArgList *given, const char *name) {
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
        const char *name = g->values[g->inputs[i]].name, *file = source_of(given, name);
        if (strcmp(file, "random") != 0) {
            TRY(read_input(name, file, a, &types[i]));
            continue;
        }
        model_args_note_open(&g->values[g->inputs[i]], o);
        TRY(make_random(name, &types[i], rng_fork((Rng){(uint64_t)o->seed}, i), a));
    }
    return ERR_OK;
}

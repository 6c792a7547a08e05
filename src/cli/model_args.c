#include "cli/model_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        fprintf(stderr, "dimension %d of input '%s' is open and taken as 1; choose with --dim ", d,
                v->name);
        if (v->symbols != NULL && v->symbols[d] != NULL)
            fprintf(stderr, "'%s=N'\n", v->symbols[d]);
        else
            fprintf(stderr, "'%s.%d=N'\n", v->name, d);
    }
}

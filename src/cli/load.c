#include "cli/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/interp.h"
#include "model/fold.h"
#include "model/onnx_read.h"
#include "model/zoo.h"

static bool is_file(const char *what) {
    size_t n = strlen(what);
    bool   suffix = n > 5 && strcmp(what + n - 5, ".onnx") == 0;
    return suffix || strchr(what, '/') != NULL || access(what, F_OK) == 0;
}

Err load_model(const char *what, const LoadOptions *o, Model *m) {
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

// The size given for a symbol on the command line; 0 when none was.
static Err given_size(const LoadOptions *o, const char *symbol, int64_t *size) {
    size_t n = strlen(symbol);
    for (uint32_t i = 0; i < o->dims.n; i++) {
        if (strncmp(o->dims.at[i], symbol, n) != 0 || o->dims.at[i][n] != '=') continue;
        char *end = NULL;
        errno = 0;
        *size = strtoll(o->dims.at[i] + n + 1, &end, 10);
        if (errno != 0 || *end != '\0' || *size < 1)
            return err_set(ERR_ARG, "--dim %s: the size must be a whole number above 0",
                           o->dims.at[i]);
    }
    return ERR_OK;
}

Err load_input_types(const Model *m, const LoadOptions *o, Tensor *types) {
    const Graph *g = m->graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Value *v = &g->values[g->inputs[i]];
        types[i] = v->type;
        for (int32_t d = 0; d < types[i].rank; d++) {
            if (types[i].dims[d] >= 0) continue;
            types[i].dims[d] = 1;
            if (v->symbols != NULL && v->symbols[d] != NULL)
                TRY(given_size(o, v->symbols[d], &types[i].dims[d]));
        }
    }
    return ERR_OK;
}

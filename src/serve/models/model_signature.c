#include "serve/models/model_signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#include "serve/models/registry_int.h"

static Err specs_of(const Graph *g, const uint32_t *values, uint32_t n, const char *what, Arena *a,
                    const TensorSpec **out) {
    TensorSpec *specs = n <= INFER_TENSORS ? arena_try_new(a, TensorSpec, n) : NULL;
    if (specs == NULL) return err_set(ERR_LIMIT, "too many %ss: %u", what, n);
    for (uint32_t i = 0; i < n; i++) {
        const Value *v = &g->values[values[i]];
        specs[i] = (TensorSpec){.name = v->name, .type = v->type};
        specs[i].type.data = NULL;
        for (int32_t d = 0; d < v->type.rank; d++)
            if (specs[i].type.dims[d] < 0) specs[i].type.dims[d] = DIM_UNKNOWN;
        if (v->type.dtype != DT_NONE && infer_type_name(v->type.dtype) == NULL)
            return err_set(ERR_UNSUPPORTED, "%s '%s' has type %s, which the protocol does not have",
                           what, v->name, dtype_name(v->type.dtype));
    }
    *out = specs;
    return ERR_OK;
}

Err signature_from_graph(const Graph *g, Arena *a, ModelSignature *out) {
    ModelSignature p = {.n_inputs = g->n_inputs, .n_outputs = g->n_outputs};
    TRY(specs_of(g, g->inputs, g->n_inputs, "input", a, &p.inputs));
    TRY(specs_of(g, g->outputs, g->n_outputs, "output", a, &p.outputs));
    *out = p;
    return ERR_OK;
}

static Err narrow_dim(const PbtxtTensor *d, int32_t i, const char *what, int64_t *dim) {
    if (d->dims[i] < 0) return ERR_OK;
    if (*dim >= 0 && *dim != d->dims[i])
        return err_set(ERR_CONFIG,
                       "config.pbtxt:%u: dimension %d of %s '%s' is %" PRId64
                       " in the model, not %" PRId64,
                       d->line, i, what, d->name, *dim, d->dims[i]);
    *dim = d->dims[i];
    return ERR_OK;
}

// With max_batch_size, the dims of config.pbtxt leave out the batch dimension.
static Err narrow(const PbtxtTensor *d, bool batch, const char *what, TensorSpec *spec) {
    Tensor *t = &spec->type;
    if (d->dtype != DT_NONE && t->dtype != DT_NONE && d->dtype != t->dtype)
        return err_set(ERR_CONFIG, "config.pbtxt:%u: %s '%s' is %s in the model, not %s", d->line,
                       what, d->name, dtype_name(t->dtype), dtype_name(d->dtype));
    if (d->rank < 0 || t->rank < 0) return ERR_OK;
    if (t->rank != d->rank + batch)
        return err_set(
            ERR_CONFIG, "config.pbtxt:%u: %s '%s' has %d dimensions in the model%s, not %d",
            d->line, what, d->name, t->rank, batch ? ", the batch included" : "", d->rank + batch);
    for (int32_t i = 0; i < d->rank; i++) TRY(narrow_dim(d, i, what, &t->dims[i + batch]));
    return ERR_OK;
}

static int32_t count_open(const int64_t *dims, int32_t rank) {
    int32_t n = 0;
    for (int32_t i = 0; i < rank; i++) n += dims[i] < 0;
    return n;
}

// Product of the dimensions that are not open; -1: too large.
static int64_t count_fixed(const int64_t *dims, int32_t rank) {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] >= 0 && __builtin_mul_overflow(n, dims[i], &n)) return -1;
    return n;
}

static Err check_reshape(const PbtxtTensor *d, const char *what) {
    int32_t open = count_open(d->dims, d->rank), inside = count_open(d->shape, d->shape_rank);
    int64_t n = count_fixed(d->dims, d->rank), m = count_fixed(d->shape, d->shape_rank);
    if (d->rank < 0)
        return err_set(ERR_CONFIG, "config.pbtxt:%u: the reshape of %s '%s' needs its dims",
                       d->line, what, d->name);
    if (open != inside)
        return err_set(ERR_CONFIG,
                       "config.pbtxt:%u: dims of %s '%s' have %d open dimensions (-1), its reshape "
                       "has %d; they must agree",
                       d->line, what, d->name, open, inside);
    if (n == m && n >= 0) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "config.pbtxt:%u: dims of %s '%s' have %" PRId64
                   " elements, its reshape has %" PRId64 "; they must agree",
                   d->line, what, d->name, n, m);
}

// The model's own shape, with what the reshape fills in.
static Err narrow_own(const PbtxtTensor *d, bool batch, const char *what, TensorSpec *spec) {
    PbtxtTensor inside = *d;
    inside.rank = d->shape_rank;
    memcpy(inside.dims, d->shape, sizeof inside.dims);
    spec->own = spec->type;
    if (spec->own.rank < 0) {
        spec->own.rank = d->shape_rank + batch;
        for (int32_t i = 0; i < spec->own.rank && i < TENSOR_MAX_RANK; i++)
            spec->own.dims[i] = DIM_UNKNOWN;
    }
    if (spec->own.rank > TENSOR_MAX_RANK || d->rank + batch > TENSOR_MAX_RANK)
        return err_set(ERR_CONFIG, "config.pbtxt:%u: %s '%s' has more than %d dimensions", d->line,
                       what, d->name, TENSOR_MAX_RANK);
    TensorSpec own = {.type = spec->own};
    TRY(narrow(&inside, batch, what, &own));
    spec->own = own.type;
    return ERR_OK;
}

// Clients see the dims of config.pbtxt. A dimension that is open there and in the reshape, but not
// in the model, has the model's size.
static Err narrow_reshaped(const PbtxtTensor *d, bool batch, const char *what, TensorSpec *spec) {
    int32_t at = 0;
    TRY(check_reshape(d, what));
    TRY(narrow_own(d, batch, what, spec));
    Tensor seen = spec->own;
    seen.rank = d->rank + batch;
    for (int32_t i = 0; i < d->rank; i++) {
        seen.dims[i + batch] = d->dims[i];
        if (d->dims[i] >= 0) continue;
        while (d->shape[at] >= 0) at++;
        seen.dims[i + batch] = spec->own.dims[batch + at++];
    }
    spec->type = seen;
    spec->reshaped = true;
    return ERR_OK;
}

static Err narrow_all(const PbtxtTensor *all, uint32_t n, bool batch, const char *what,
                      const TensorSpec *specs, uint32_t n_specs) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n_specs && strcmp(specs[k].name, all[i].name) != 0) k++;
        if (k == n_specs)
            return err_set(ERR_CONFIG, "config.pbtxt:%u: the model has no %s '%s'", all[i].line,
                           what, all[i].name);
        TensorSpec *spec = (TensorSpec *)(uintptr_t)&specs[k];
        TRY(all[i].reshaped && !spec->reshaped ? narrow_reshaped(&all[i], batch, what, spec)
                                               : narrow(&all[i], batch, what, spec));
    }
    return ERR_OK;
}

Err signature_narrow(ModelSignature *signature, const Pbtxt *p) {
    bool batch = p->max_batch_size > 0;
    TRY(narrow_all(p->inputs, p->n_inputs, batch, "input", signature->inputs, signature->n_inputs));
    return narrow_all(p->outputs, p->n_outputs, batch, "output", signature->outputs,
                      signature->n_outputs);
}

enum { LABELS_BYTES = 4 << 20, LABELS_MOST = 1 << 18 };

// One class name a line; a last line without an end counts, a carriage return does not.
static Err read_labels(const char *path, Arena *a, TensorSpec *spec) {
    char  *text = NULL;
    size_t len = 0;
    TRY(file_read(path, LABELS_BYTES, a, &text, &len));
    while (len > 0 && text[len - 1] == '\n') len--;
    Str     all = {text, len};
    int64_t n = len > 0 ? text_split(all, (Str){"\n", 1}, -1, NULL) : 0;
    Str    *labels = n <= LABELS_MOST ? arena_try_new(a, Str, (size_t)n) : NULL;
    if (labels == NULL) return err_set(ERR_LIMIT, "%s: more than %d labels", path, LABELS_MOST);
    if (n > 0) (void)text_split(all, (Str){"\n", 1}, -1, labels);
    for (int64_t i = 0; i < n; i++)
        if (labels[i].len > 0 && labels[i].at[labels[i].len - 1] == '\r') labels[i].len--;
    spec->labels = labels;
    spec->n_labels = (uint32_t)n;
    return ERR_OK;
}

Err signature_read_labels(ModelSignature *signature, const Pbtxt *p, const char *pbtxt, Arena *a) {
    const char *slash = strrchr(pbtxt, '/');
    int         folder = slash != NULL ? (int)(slash - pbtxt) : 1;
    char        path[4096];
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        uint32_t k = 0;
        while (k < signature->n_outputs &&
               strcmp(signature->outputs[k].name, p->outputs[i].name) != 0)
            k++;
        if (p->outputs[i].labels == NULL || k == signature->n_outputs) continue;
        int n = snprintf(path, sizeof path, "%.*s/%s", folder, slash != NULL ? pbtxt : ".",
                         p->outputs[i].labels);
        if (n < 0 || (size_t)n >= sizeof path)
            return err_set(ERR_CONFIG, "%s: the path of a label file is too long", pbtxt);
        TRY(read_labels(path, a, (TensorSpec *)(uintptr_t)&signature->outputs[k]));
    }
    return ERR_OK;
}

Err model_version_signature(ModelVersion *mv) {
    const ConfigModel *m = mv->info.config;
    TRY(signature_from_graph(mv->source.model.graph, &mv->arena, &mv->signature));
    if (m->declared == NULL) return ERR_OK;
    TRY(signature_narrow(&mv->signature, m->declared));
    return m->pbtxt != NULL
               ? signature_read_labels(&mv->signature, m->declared, m->pbtxt, &mv->arena)
               : ERR_OK;
}

// Fills in output types and dimensions that follow from compiled input shapes; dimensions stay open
// where input shapes may vary.
void model_version_set_outputs(ModelVersion *mv, const PreparedModel *s) {
    const Graph *g = mv->source.model.graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        TensorSpec   *spec = (TensorSpec *)(uintptr_t)&mv->signature.outputs[i];
        const Tensor *t = &s->shaped->values[g->outputs[i]];
        if (spec->type.dtype == DT_NONE) spec->type.dtype = t->dtype;
        if (spec->reshaped) continue;
        if (spec->type.rank < 0 && t->rank >= 0) {
            spec->type = tensor_of(spec->type.dtype, t->rank, t->dims, NULL);
            for (int32_t d = 0; d < t->rank; d++)
                if (mv->source.open || t->dims[d] < 0) spec->type.dims[d] = DIM_UNKNOWN;
        }
        for (int32_t d = 0; d < spec->type.rank && d < t->rank && !mv->source.open; d++)
            if (spec->type.dims[d] < 0 && t->dims[d] >= 0) spec->type.dims[d] = t->dims[d];
    }
}

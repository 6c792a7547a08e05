#include "bench/ort/network.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "model/onnx/onnx.h"

enum { SEED = 1, ABOUT_BYTES = 1 << 16 };

static Err parse_type(const json_t *about, Tensor *t) {
    const char *type;
    json_t     *shape;
    TRY(json_get_text(about, "dtype", &type));
    TRY(json_get_array(about, "shape", &shape));
    if (json_array_size(shape) > TENSOR_MAX_RANK) return err_set(ERR_LIMIT, "the rank is too high");
    *t = (Tensor){.dtype = DT_NONE, .rank = (int32_t)json_array_size(shape)};
    for (DType d = 1; d < DT_COUNT; d++)
        if (strcmp(dtype_name(d), type) == 0) t->dtype = d;
    for (int32_t i = 0; i < t->rank; i++)
        t->dims[i] = json_integer_value(json_array_get(shape, (size_t)i));
    return ERR_OK;
}

static Err read_numbers(const char *path, Arena *a, Tensor *t) {
    size_t bytes = 0, len = 0;
    char  *raw = NULL;
    TRY(tensor_alloc(t, a));
    TRY(tensor_measure(t, &bytes));
    TRY(file_read(path, bytes, a, &raw, &len));
    if (len != bytes)
        return err_set(ERR_INVALID, "%s has %zu bytes, its description says %zu", path, len, bytes);
    if (len > 0) memcpy(t->data, raw, len);
    return ERR_OK;
}

// Finds the recorded input of that name; found stays false if there is none.
static Err find_recorded(const char *dir, const char *name, Arena *a, Tensor *t, bool *found) {
    *found = false;
    for (int k = 0; !*found; k++) {
        const char *path = arena_printf(a, "%s/input_%d.json", dir, k), *called = NULL;
        json_t     *about = NULL;
        if (access(path, F_OK) != 0) return ERR_OK;
        TRY(json_read(path, ABOUT_BYTES, &about));
        Err e = json_get_text(about, "name", &called);
        *found = e == ERR_OK && strcmp(called, name) == 0;
        if (*found) e = parse_type(about, t);
        json_decref(about);
        if (e == ERR_OK && *found)
            e = read_numbers(arena_printf(a, "%s/input_%d.raw", dir, k), a, t);
        if (e != ERR_OK) return err_add(e, "%s", path);
    }
    return ERR_OK;
}

static void set_length(const Tensor *declared, int64_t length, Tensor *t) {
    for (int32_t d = t->rank; d-- > 0;) {
        if (declared->dims[d] >= 0) continue;
        t->dims[d] = length;
        length = 1;
    }
}

// Floats in [-1, 1), integers 0 or 1: small enough to be an index into any table.
static Err make_up(Tensor *t, Rng r, Arena *a) {
    if (!dtype_is_number(t->dtype) && t->dtype != DT_BOOL)
        return err_set(ERR_UNSUPPORTED, "%s cannot be made up; record it beside the model",
                       dtype_name(t->dtype));
    TRY(tensor_alloc(t, a));
    size_t size = dtype_size(t->dtype);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = 2 * rng_unit(&r) - 1;
        else if (dtype_is_float(t->dtype))
            tensor_set(t, i, 2 * rng_unit64(&r) - 1);
        else
            ((unsigned char *)t->data)[(size_t)i * size] = (unsigned char)rng_below(&r, 2);
    }
    return ERR_OK;
}

static Err read_inputs(const char *path, int64_t length, Arena *a, Network *n) {
    const Graph *g = n->model.graph;
    const char  *slash = strrchr(path, '/');
    const char  *dir = slash != NULL ? arena_printf(a, "%.*s", (int)(slash - path), path) : ".";
    n->inputs = arena_new(a, Tensor, g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Value *v = &g->values[g->inputs[i]];
        bool         found;
        n->inputs[i] = v->type;
        set_length(&v->type, length, &n->inputs[i]);
        TRY(find_recorded(dir, v->name, a, &n->inputs[i], &found));
        Err e = found ? ERR_OK : make_up(&n->inputs[i], rng_fork((Rng){SEED}, i), a);
        if (e != ERR_OK) return err_add(e, "input '%s'", v->name);
    }
    return ERR_OK;
}

void network_inputs_at(const Network *n, int64_t length, Tensor *out) {
    const Graph *g = n->model.graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        out[i] = n->inputs[i];
        set_length(&g->values[g->inputs[i]].type, length, &out[i]);
    }
}

Err network_read(const char *path, int64_t length, Arena *a, Network *n) {
    *n = (Network){.path = path};
    TRY(onnx_read(path, &n->model));
    const Graph *g = n->model.graph;
    for (uint32_t i = 0; i < g->n_values; i++)
        n->quantised |= g->values[i].type.dtype == DT_F16 || g->values[i].type.dtype == DT_BF16;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        n->quantised |= strstr(op_info(g->nodes[i].op)->name, "Quantize") != NULL;
    Err e = read_inputs(path, length, a, n);
    if (e != ERR_OK) model_finish(&n->model);
    return e;
}

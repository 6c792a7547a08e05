// Inputs of a model from its metadata (JSON or protobuf), and random bytes that fit them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/tensor.h"
#include "loadgen/bench_int.h"
#include "serve/grpc/wire.h"

static Err read_type(const BenchModel *m, Str type, TensorSpec *s) {
    s->type.dtype = infer_dtype(type);
    if (s->type.dtype != DT_NONE) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "model '%s': input '%s' has an unknown datatype '%.*s'",
                   m->name, s->name, (int)(type.len < 40 ? type.len : 40), type.at);
}

static Err add_dim(const BenchModel *m, TensorSpec *s, int64_t dim) {
    if (s->type.rank == TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "model '%s': input '%s' has more than %d dimensions",
                       m->name, s->name, TENSOR_MAX_RANK);
    s->type.dims[s->type.rank++] = dim < 0 ? DIM_UNKNOWN : dim;
    return ERR_OK;
}

static Err read_shape(const BenchModel *m, const json_t *shape, TensorSpec *s) {
    size_t  i = 0;
    json_t *v = NULL;
    json_array_foreach(shape, i, v) {
        // Some servers write int64 as a string, as the JSON mapping of protobuf does.
        int64_t dim =
            json_is_string(v) ? strtoll(json_string_value(v), NULL, 10) : json_integer_value(v);
        if (!json_is_string(v) && !json_is_integer(v))
            return err_set(ERR_PARSE, "model '%s': the shape of input '%s' is not of numbers",
                           m->name, s->name);
        TRY(add_dim(m, s, dim));
    }
    return ERR_OK;
}

static Err read_inputs(BenchModel *m, const json_t *inputs, Arena *a) {
    size_t  i = 0;
    json_t *v = NULL;
    json_array_foreach(inputs, i, v) {
        const char *name = NULL, *type = NULL;
        json_t     *shape = NULL;
        TensorSpec *s = &m->inputs[i];
        TRY(json_get_text(v, "name", &name));
        TRY(json_get_text(v, "datatype", &type));
        TRY(json_get_array(v, "shape", &shape));
        *s = (TensorSpec){.name = arena_str(a, name)};
        TRY(read_type(m, (Str){type, strlen(type)}, s));
        TRY(read_shape(m, shape, s));
    }
    return ERR_OK;
}

static Err room_for(BenchModel *m, size_t inputs, Arena *a) {
    if (inputs == 0 || inputs > INFER_TENSORS)
        return err_set(ERR_UNSUPPORTED, "model '%s' has %zu inputs; 1 to %d are handled", m->name,
                       inputs, INFER_TENSORS);
    if (m->inputs == NULL) m->inputs = arena_try_new(a, TensorSpec, inputs);
    m->n_inputs = (uint32_t)inputs;
    return m->inputs != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for inputs");
}

void bench_set_target(BenchModel *m, double target_ms) {
    if (m->slo_ns == 0 && target_ms > 0 && target_ms < 1e9) m->slo_ns = (TimeNs)(target_ms * 1e6);
}

Err bench_read_json(BenchModel *m, const char *body, size_t len, Arena *a) {
    json_t *doc = NULL, *inputs = NULL;
    TRY(json_parse("metadata", body, len, &doc));
    Err e = json_get_array(doc, "inputs", &inputs);
    if (e == ERR_OK) e = room_for(m, json_array_size(inputs), a);
    if (e == ERR_OK) e = read_inputs(m, inputs, a);
    const json_t *parameters = json_object_get(doc, "parameters");
    bench_set_target(m, json_number_value(json_object_get(parameters, "target_ms")));
    json_decref(doc);
    return e == ERR_OK ? e : err_add(e, "metadata of model '%s'", m->name);
}

static Err read_tensor(const BenchModel *m, WireReader in, TensorSpec *s, Arena *a) {
    WireField f;
    bool      more = true;
    Str       type = {"", 0};
    *s = (TensorSpec){.name = ""};
    for (;;) {
        TRY(wire_next(&in, &f, &more));
        if (!more) break;
        uint64_t v = f.value;
        if (f.number == 1 && f.kind == WIRE_BYTES)
            s->name = arena_printf(a, "%.*s", (int)f.len, (const char *)f.at);
        else if (f.number == 2 && f.kind == WIRE_BYTES)
            type = (Str){(const char *)f.at, f.len};
        else if (f.number == 3 && f.kind == WIRE_VARINT)
            TRY(add_dim(m, s, (int64_t)v));
        else if (f.number == 3 && f.kind == WIRE_BYTES)
            for (WireReader packed = wire_inside(&in, &f); packed.at < packed.end;) {
                TRY(wire_varint(&packed, &v));
                TRY(add_dim(m, s, (int64_t)v));
            }
    }
    return read_type(m, type, s);
}

static void read_property(BenchModel *m, WireReader in) {
    WireField f;
    bool      more = true, target = false;
    char      text[32] = "";
    while (wire_next(&in, &f, &more) == ERR_OK && more) {
        if (f.kind != WIRE_BYTES || f.len >= sizeof text) continue;
        if (f.number == 1) target = f.len == 9 && memcmp(f.at, "target_ms", 9) == 0;
        if (f.number == 2)
            (void)snprintf(text, sizeof text, "%.*s", (int)f.len, (const char *)f.at);
    }
    if (target) bench_set_target(m, strtod(text, NULL));
}

Err bench_read_proto(BenchModel *m, const unsigned char *body, size_t len, Arena *a) {
    WireField  f;
    bool       more = true;
    WireReader in = wire_reader(body, len);
    uint32_t   n = 0;
    TRY(room_for(m, INFER_TENSORS, a));
    for (;;) {
        TRY(wire_next(&in, &f, &more));
        if (!more) break;
        if (f.number == 6 && f.kind == WIRE_BYTES) read_property(m, wire_inside(&in, &f));
        if (f.number != 4 || f.kind != WIRE_BYTES) continue;
        if (n < INFER_TENSORS) TRY(read_tensor(m, wire_inside(&in, &f), &m->inputs[n], a));
        n++;
    }
    return room_for(m, n, a);
}

// "1x3x224x224" after INPUT: or MODEL/INPUT:, if it names this input; else NULL.
static const char *shape_for(const char *spec, const char *model, const char *input) {
    size_t n = strlen(model), k = strlen(input);
    if (strncmp(spec, model, n) == 0 && spec[n] == '/') spec += n + 1;
    return strncmp(spec, input, k) == 0 && spec[k] == ':' ? spec + k + 1 : NULL;
}

static Err read_shape_option(const BenchModel *m, TensorSpec *s, const char *shape) {
    int32_t     rank = 0;
    const char *at = shape;
    for (; rank < TENSOR_MAX_RANK; at++) {
        char     *end = NULL;
        long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || (*end != 'x' && *end != '\0'))
            return err_set(ERR_ARG, "--shape %s:%s: dimensions look like 1x3x224x224", s->name,
                           shape);
        s->type.dims[rank++] = dim;
        at = end;
        if (*at == '\0') break;
    }
    if (rank != s->type.rank)
        return err_set(ERR_ARG, "--shape %s:%s: the input of model '%s' has %d dimensions", s->name,
                       shape, m->name, s->type.rank);
    return ERR_OK;
}

Err bench_set_shapes(BenchModel *m, const BenchShapes *shapes) {
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        TensorSpec *s = &m->inputs[i];
        for (int32_t k = 0; k < s->type.rank; k++)
            if (s->type.dims[k] == DIM_UNKNOWN) s->type.dims[k] = k == 0 ? shapes->batch : 1;
        for (uint32_t k = 0; k < shapes->n; k++) {
            const char *shape = shape_for(shapes->shapes[k], m->name, s->name);
            if (shape != NULL) TRY(read_shape_option(m, s, shape));
        }
    }
    return ERR_OK;
}

// BYTES: each element is a 4-byte length and a word.
static Err fill_words(TensorSpec *s, Rng *rng, Arena *a) {
    enum { WORD = 8, EACH = 4 + WORD };
    int64_t        n = 1;
    unsigned char *at = NULL;
    for (int32_t i = 0; i < s->type.rank; i++)
        if (__builtin_mul_overflow(n, s->type.dims[i], &n) || n > INT32_MAX / EACH)
            return err_set(ERR_LIMIT, "input '%s' is too large", s->name);
    at = arena_try(a, (size_t)n + 1, EACH, 1);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for input '%s'", s->name);
    for (int64_t i = 0; i < n; i++) {
        at[i * EACH] = WORD;
        for (int32_t k = 4; k < EACH; k++)
            at[i * EACH + k] = (unsigned char)('a' + rng_below(rng, 26));
    }
    s->type.data = at;
    return ERR_OK;
}

// Integers are 0 or 1, valid as indices of any table; uint8 images use the whole range.
static double draw(DType t, Rng *rng) {
    if (dtype_is_float(t)) return rng_unit(rng);
    return (double)rng_below(rng, t == DT_U8 ? 256 : 2);
}

Err bench_fill(BenchModel *m, Rng *rng, Arena *a) {
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        TensorSpec *s = &m->inputs[i];
        Err         e = s->type.dtype == DT_STR ? fill_words(s, rng, a) : tensor_alloc(&s->type, a);
        if (e != ERR_OK) return err_add(e, "model '%s', input '%s'", m->name, s->name);
        if (s->type.dtype == DT_STR) continue;
        for (int64_t k = 0, n = tensor_count(&s->type); k < n; k++)
            tensor_set(&s->type, k, draw(s->type.dtype, rng));
    }
    return ERR_OK;
}

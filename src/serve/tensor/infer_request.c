// Checks a request against a model's signature: names, types, shapes, outputs, binary data.
#include "serve/tensor/infer_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/coroutine.h"
#include "base/text.h"
#include "base/utf8.h"

const char *infer_type_name(DType t) {
    switch (t) {
#define X(name, id)                                                                                \
    case DT_##id:                                                                                  \
        return name;
#include "serve/tensor/infer_type.def"
#undef X
    default: return NULL;
    }
}

DType infer_dtype(Str name) {
#define X(text, id)                                                                                \
    if (name.len == sizeof(text) - 1 && memcmp(name.at, text, name.len) == 0) return DT_##id;
#include "serve/tensor/infer_type.def"
#undef X
    return DT_NONE;
}

const char *infer_printable(Str name, char out[INFER_PRINTABLE]) {
    const char *at = name.len > 0 ? name.at : "", *end = at + name.len;
    size_t      n = 0;
    while (at < end && n < INFER_PRINTABLE - 8) {
        uint32_t point = utf8_next(&at, end);
        if (point == UTF8_BAD || utf8_control(point))
            out[n++] = '?';
        else
            n += utf8_put(point, out + n);
    }
    if (at < end) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

static bool find_output(const ModelSignature *signature, Str name, uint32_t *out) {
    for (uint32_t i = 0; i < signature->n_outputs; i++)
        if (text_equal(name, text_of(signature->outputs[i].name))) {
            *out = i;
            return true;
        }
    return false;
}

// Values of these types are ranked; BYTES, BOOL and 16-bit floating point are not.
static bool can_classify(DType t) {
    return t == DT_NONE || t == DT_F32 || t == DT_F64 || dtype_is_int(t);
}

static bool is_selected(const uint32_t *index, uint32_t n, uint32_t output) {
    for (uint32_t i = 0; i < n; i++)
        if (index[i] == output) return true;
    return false;
}

Err infer_select_outputs(const ModelSignature *signature, const InferRequest *r, uint32_t *index,
                         bool *binary, uint32_t *n) {
    char shown[INFER_PRINTABLE];
    for (uint32_t i = 0; i < r->n_requested; i++) {
        const InferRequestedOutput *w = &r->requested[i];
        uint32_t                    at = 0;
        if (!find_output(signature, w->name, &at))
            return err_set(ERR_INVALID, "outputs[%u]: the model has no output '%s'", i,
                           infer_printable(w->name, shown));
        if (is_selected(index, i, at))
            return err_set(ERR_INVALID, "outputs[%u]: '%s' is requested twice", i,
                           signature->outputs[at].name);
        if (w->classes > 0 && !can_classify(signature->outputs[at].type.dtype))
            return err_set(ERR_INVALID, "outputs[%u]: '%s' is %s, which has no classification", i,
                           signature->outputs[at].name,
                           infer_type_name(signature->outputs[at].type.dtype));
        index[i] = at;
        binary[i] = w->has_binary ? w->binary : r->binary;
    }
    *n = r->n_requested;
    if (r->n_requested > 0) return ERR_OK;
    for (uint32_t i = 0; i < signature->n_outputs; i++) {
        index[i] = i;
        binary[i] = r->binary;
    }
    *n = signature->n_outputs;
    return ERR_OK;
}

Err infer_add_flag(InferResponse *r, const char *key, bool value, Arena *a) {
    InferParameter *all = arena_try_new(a, InferParameter, r->n_parameters + 1);
    if (all == NULL) return err_set(ERR_LIMIT, "out of memory for a parameter of the response");
    if (r->n_parameters > 0) memcpy(all, r->parameters, r->n_parameters * sizeof *all);
    all[r->n_parameters++] = (InferParameter){.key = key, .number = value, .is_flag = true};
    r->parameters = all;
    return ERR_OK;
}

static bool find_input(const InferRequest *r, const char *name, uint32_t *out) {
    for (uint32_t i = 0; i < r->n_inputs; i++)
        if (text_equal(r->inputs[i].name, text_of(name))) {
            *out = i;
            return true;
        }
    return false;
}

static Err check_type(const TensorSpec *spec, const Tensor *t) {
    if (t->dtype == spec->type.dtype) return ERR_OK;
    const char *takes = infer_type_name(spec->type.dtype), *is = infer_type_name(t->dtype);
    return err_set(ERR_INVALID, "input '%s' is %s, the model takes %s", spec->name,
                   is != NULL ? is : "of unknown type", takes != NULL ? takes : "another type");
}

static bool shape_fits(const Tensor *type, const Tensor *t) {
    if (type->rank == RANK_UNKNOWN) return true;
    if (type->rank != t->rank) return false;
    for (int32_t i = 0; i < t->rank; i++)
        if (type->dims[i] >= 0 && type->dims[i] != t->dims[i]) return false;
    return true;
}

// A dimension may be 0 only where the model declares it so.
static Err check_shape(const TensorSpec *spec, const Tensor *t) {
    char has[160], takes[160];
    if (!shape_fits(&spec->type, t)) {
        tensor_shape_text(t, has, sizeof has);
        tensor_shape_text(&spec->type, takes, sizeof takes);
        return err_set(ERR_INVALID, "input '%s' has shape %s, the model takes %s", spec->name, has,
                       takes);
    }
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] == 0 && (spec->type.rank < 0 || spec->type.dims[i] != 0))
            return err_set(ERR_INVALID,
                           "input '%s': dimension %" PRId32 " is 0, nothing to compute", spec->name,
                           i);
    return ERR_OK;
}

// A request's input that the model does not have, or that occurs twice.
static Err check_names(const ModelSignature *signature, const InferRequest *r) {
    char shown[INFER_PRINTABLE];
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        uint32_t first = i;
        bool     known = false;
        for (uint32_t k = 0; k < signature->n_inputs && !known; k++)
            known = text_equal(r->inputs[i].name, text_of(signature->inputs[k].name));
        if (!known)
            return err_set(ERR_INVALID, "inputs[%u]: the model has no input '%s'", i,
                           infer_printable(r->inputs[i].name, shown));
        for (uint32_t k = 0; k < i && first == i; k++)
            if (text_equal(r->inputs[i].name, r->inputs[k].name)) first = k;
        if (first != i)
            return err_set(ERR_INVALID, "inputs[%u]: '%s' repeats inputs[%u]", i,
                           infer_printable(r->inputs[i].name, shown), first);
    }
    return ERR_OK;
}

// Shape of a raw body: the open dimension follows from the number of bytes.
static Err raw_shape(const TensorSpec *spec, size_t len, Tensor *t) {
    int32_t open = -1;
    size_t  row = 0;
    if (spec->type.rank < 0)
        return err_set(ERR_INVALID, "the rank of the model's input is unknown");
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] >= 0) continue;
        if (open >= 0) return err_set(ERR_INVALID, "the model's input has two open dimensions");
        open = i;
        t->dims[i] = 1;
    }
    TRY(tensor_measure(t, &row));
    if (t->dtype == DT_STR && tensor_count(t) != 1)
        return err_set(ERR_INVALID, "the model takes more than one element of BYTES");
    if (open < 0 || t->dtype == DT_STR) return ERR_OK;
    if (row == 0 || len == 0 || len % row != 0)
        return err_set(ERR_INVALID, "%zu bytes are not a multiple of the %zu bytes of one row", len,
                       row);
    t->dims[open] = (int64_t)(len / row);
    return ERR_OK;
}

static Err bind_raw(const ModelSignature *signature, const InferTensor *body, Arena *a,
                    Tensor *out) {
    if (signature->n_inputs != 1)
        return err_set(ERR_INVALID, "a raw body is for models with one input, this one has %u",
                       signature->n_inputs);
    Tensor t = signature->inputs[0].type;
    size_t len = (size_t)body->t.dims[0];
    TRY(raw_shape(&signature->inputs[0], len, &t));
    if (t.dtype == DT_STR) {
        TRY(tensor_alloc(&t, a));
        *(Str *)t.data = (Str){body->t.data, len};
    } else {
        TRY(infer_read_binary(&t, body->t.data, len, dtype_size(t.dtype), a));
    }
    *out = t;
    return ERR_OK;
}

Err infer_bind_inputs(const ModelSignature *signature, const InferRequest *r, Arena *a,
                      Tensor *inputs) {
    if (r->raw_body) {
        Err e = bind_raw(signature, &r->inputs[0], a, inputs);
        return e == ERR_OK ? e : err_add(e, "raw body");
    }
    TRY(check_names(signature, r));
    for (uint32_t i = 0; i < signature->n_inputs; i++) {
        const TensorSpec *spec = &signature->inputs[i];
        uint32_t          at = 0;
        inputs[i] = (Tensor){0};
        if (!find_input(r, spec->name, &at)) {
            if (spec->optional) continue;
            return err_set(ERR_INVALID, "input '%s' is missing", spec->name);
        }
        TRY(check_type(spec, &r->inputs[at].t));
        TRY(check_shape(spec, &r->inputs[at].t));
        inputs[i] = r->inputs[at].t;
    }
    return ERR_OK;
}

static Err not_reshaped(const TensorSpec *spec, const Tensor *from, const Tensor *t) {
    char has[160], wanted[160];
    tensor_shape_text(t, has, sizeof has);
    tensor_shape_text(from, wanted, sizeof wanted);
    return err_set(ERR_INVALID, "'%s' has shape %s; config.pbtxt reshapes %s", spec->name, has,
                   wanted);
}

Err infer_apply_reshape(const TensorSpec *spec, bool inward, Tensor *t) {
    const Tensor *from = inward ? &spec->type : &spec->own, *to = inward ? &spec->own : &spec->type;
    Tensor        out = *t;
    int32_t       at = 0;
    if (!spec->reshaped || t->dtype == DT_NONE) return ERR_OK;
    out.rank = to->rank;
    memcpy(out.dims, to->dims, sizeof out.dims);
    if (t->rank != from->rank) return not_reshaped(spec, from, t);
    for (int32_t i = 0; i < from->rank; i++) {
        if (from->dims[i] >= 0 && from->dims[i] != t->dims[i]) return not_reshaped(spec, from, t);
        if (from->dims[i] >= 0) continue;
        while (to->dims[at] >= 0) at++;
        out.dims[at++] = t->dims[i];
    }
    *t = out;
    return ERR_OK;
}

void infer_reshape_inputs(const ModelSignature *signature, Tensor *inputs) {
    for (uint32_t i = 0; i < signature->n_inputs; i++)
        CHECK(infer_apply_reshape(&signature->inputs[i], true, &inputs[i]) == ERR_OK);
}

enum { STRING_NS = 10, PIECE_BYTES = 1 << 18, PIECE_NS = 50000 };

static Err read_strings(Tensor *t, unsigned char *bytes, size_t len, Arena *a) {
    int64_t n = tensor_count(t);
    if (n > (int64_t)(len / 4))
        return err_set(ERR_INVALID, "%" PRId64 " elements of BYTES need more than %zu bytes", n,
                       len);
    TRY(tensor_alloc(t, a));
    Str   *out = t->data;
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t size = 0;
        coroutine_point(STRING_NS);
        if (len - at >= sizeof size) memcpy(&size, bytes + at, sizeof size);
        if (len - at < sizeof size || len - at - sizeof size < size)
            return err_set(ERR_INVALID, "element %" PRId64 " exceeds its %zu bytes", i, len);
        out[i] = (Str){(const char *)bytes + at + sizeof size, size};
        at += sizeof size + size;
    }
    if (at != len)
        return err_set(ERR_INVALID, "%" PRId64 " elements end at byte %zu of %zu", n, at, len);
    return ERR_OK;
}

static Err check_bools(const unsigned char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (bytes[i] > 1)
            return err_set(ERR_INVALID, "element %zu is %u: a BOOL is 0 or 1", i, bytes[i]);
    return ERR_OK;
}

static void copy_in_pieces(char *to, const unsigned char *from, size_t len) {
    while (len > 0) {
        size_t n = len < PIECE_BYTES ? len : PIECE_BYTES;
        memcpy(to, from, n);
        to += n;
        from += n;
        len -= n;
        coroutine_point(PIECE_NS);
    }
}

Err infer_read_binary(Tensor *t, unsigned char *bytes, size_t len, size_t align, Arena *a) {
    size_t need = 0;
    char   shape[160];
    if (t->dtype == DT_STR) return read_strings(t, bytes, len, a);
    TRY(tensor_measure(t, &need));
    if (need != len) {
        tensor_shape_text(t, shape, sizeof shape);
        return err_set(ERR_INVALID, "shape %s needs %zu bytes, got %zu", shape, need, len);
    }
    if (t->dtype == DT_BOOL) TRY(check_bools(bytes, len));
    t->data = bytes;
    if ((uintptr_t)bytes % align == 0) return ERR_OK;
    TRY(tensor_alloc(t, a));
    copy_in_pieces(t->data, bytes, len);
    return ERR_OK;
}

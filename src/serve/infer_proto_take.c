#include <string.h>

#include "serve/infer_proto_int.h"

enum { CONTENTS = 5, CONTENTS_LAST = 8 };

static const ProtoContents contents[] = {
    {DT_BOOL, 1, WIRE_VARINT}, {DT_I8, 2, WIRE_VARINT},   {DT_I16, 2, WIRE_VARINT},
    {DT_I32, 2, WIRE_VARINT},  {DT_I64, 3, WIRE_VARINT},  {DT_U8, 4, WIRE_VARINT},
    {DT_U16, 4, WIRE_VARINT},  {DT_U32, 4, WIRE_VARINT},  {DT_U64, 5, WIRE_VARINT},
    {DT_F32, 6, WIRE_FIXED32}, {DT_F64, 7, WIRE_FIXED64}, {DT_STR, 8, WIRE_BYTES},
};

static const WireKind kinds[CONTENTS_LAST + 1] = {  // of each field of InferTensorContents
    0,           WIRE_VARINT,  WIRE_VARINT,  WIRE_VARINT, WIRE_VARINT,
    WIRE_VARINT, WIRE_FIXED32, WIRE_FIXED64, WIRE_BYTES};

const ProtoContents *proto_contents(DType t) {
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (contents[i].dtype == t) return &contents[i];
    return NULL;
}

static Err no_memory(size_t bytes) {
    return err_set(ERR_LIMIT, "no memory for its %zu bytes; send fewer numbers", bytes);
}

static uint32_t length_at(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

// Each element is a length of four bytes and so many bytes.
static Err take_strings(InferTensor *in, Str raw, Arena *a) {
    size_t n = (size_t)tensor_count(&in->t), at = 0;
    if (raw.len / 4 < n) return err_set(ERR_INVALID, "%zu bytes are no %zu strings", raw.len, n);
    Str *s = arena_try_new(a, Str, n);
    if (s == NULL) return no_memory(n * sizeof(Str));
    for (size_t i = 0; i < n; i++) {
        if (raw.len - at < 4) return err_set(ERR_INVALID, "string %zu is cut short", i);
        size_t len = length_at(raw.at + at);
        at += 4;
        if (len > raw.len - at) return err_set(ERR_INVALID, "string %zu is cut short", i);
        s[i] = (Str){raw.at + at, len};
        at += len;
    }
    if (at != raw.len)
        return err_set(ERR_INVALID, "%zu bytes follow the last string", raw.len - at);
    in->t.data = s;
    return ERR_OK;
}

static Err check_bools(const unsigned char *at, size_t n) {
    unsigned all = 0;
    for (size_t i = 0; i < n; i++) all |= at[i];
    return all <= 1 ? ERR_OK : err_set(ERR_INVALID, "a BOOL is neither 0 nor 1");
}

Err proto_take_raw(InferTensor *in, Str raw, Arena *a) {
    if (in->t.dtype == DT_STR) return take_strings(in, raw, a);
    size_t bytes;
    TRY(tensor_measure(&in->t, &bytes));
    if (raw.len != bytes)
        return err_set(ERR_INVALID, "its shape and datatype need %zu bytes, raw contents have %zu",
                       bytes, raw.len);
    if (in->t.dtype == DT_BOOL) TRY(check_bools((const unsigned char *)raw.at, bytes));
    void *data = (void *)(uintptr_t)raw.at;
    if ((uintptr_t)raw.at % TENSOR_ALIGN != 0) {
        data = arena_try(a, bytes, 1, TENSOR_ALIGN);
        if (data == NULL) return no_memory(bytes);
        if (bytes > 0) memcpy(data, raw.at, bytes);
    }
    in->t.data = data;
    return ERR_OK;
}

static Err count_contents(const InferTensor *in, const WireIn *message, const WireField *c,
                          size_t *n) {
    const ProtoContents *row = proto_contents(in->t.dtype);
    WireIn               inside = wire_inside(message, c);
    WireField            f;
    bool                 more;
    size_t               some;
    for (;;) {
        TRY(wire_next(&inside, &f, &more));
        if (!more) return ERR_OK;
        if (f.number > CONTENTS_LAST) continue;
        TRY(wire_count(message, &f, kinds[f.number], &some));
        if (some > 0 && (row == NULL || row->field != f.number))
            return err_set(ERR_INVALID, "its contents (field %u) do not suit datatype %s%s",
                           f.number, infer_type_name(in->t.dtype),
                           row == NULL ? ", which goes raw only" : "");
        *n += some;
    }
}

Err proto_count_typed(const InferTensor *in, const WireIn *message, size_t *n) {
    WireIn    walk = *message;
    WireField f;
    bool      more;
    *n = 0;
    for (;;) {
        TRY(wire_next(&walk, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == CONTENTS) TRY(count_contents(in, message, &f, n));
    }
}

// An integer as the wire has it; false: it is not of the type.
static bool put_int(Tensor *t, size_t i, uint64_t v) {
    int64_t  s = (int32_t)(uint32_t)v;  // as int32 and uint32 fields are read: the low 32 bits
    uint32_t u = (uint32_t)v;
    switch (t->dtype) {
    case DT_BOOL: ((uint8_t *)t->data)[i] = v != 0; return true;
    case DT_I8: ((int8_t *)t->data)[i] = (int8_t)s; return s >= INT8_MIN && s <= INT8_MAX;
    case DT_I16: ((int16_t *)t->data)[i] = (int16_t)s; return s >= INT16_MIN && s <= INT16_MAX;
    case DT_I32: ((int32_t *)t->data)[i] = (int32_t)s; return true;
    case DT_I64: ((int64_t *)t->data)[i] = (int64_t)v; return true;
    case DT_U8: ((uint8_t *)t->data)[i] = (uint8_t)u; return u <= UINT8_MAX;
    case DT_U16: ((uint16_t *)t->data)[i] = (uint16_t)u; return u <= UINT16_MAX;
    case DT_U32: ((uint32_t *)t->data)[i] = u; return true;
    case DT_U64: ((uint64_t *)t->data)[i] = v; return true;
    default: return false;
    }
}

static Err fill_ints(InferTensor *in, const WireIn *message, const WireField *f, size_t *at) {
    WireIn   packed = wire_inside(message, f);
    uint64_t v = f->value;
    bool     alone = f->kind == WIRE_VARINT;
    while (alone || packed.at < packed.end) {
        if (!alone) TRY(wire_varint(&packed, &v));
        if (!put_int(&in->t, (*at)++, v))
            return err_set(ERR_INVALID, "number %zu is beyond %s", *at - 1,
                           infer_type_name(in->t.dtype));
        if (alone) break;
    }
    return ERR_OK;
}

static Err fill_field(InferTensor *in, const WireIn *message, const WireField *f, size_t *at) {
    size_t size = dtype_size(in->t.dtype);
    if (in->t.dtype == DT_STR) {
        ((Str *)in->t.data)[(*at)++] = (Str){(const char *)f->at, f->len};
    } else if (dtype_is_float(in->t.dtype)) {
        if (f->len > 0) memcpy((char *)in->t.data + *at * size, f->at, f->len);
        *at += f->len / size;
    } else {
        return fill_ints(in, message, f, at);
    }
    return ERR_OK;
}

static Err fill_contents(InferTensor *in, const WireIn *message, const WireField *c, size_t *at) {
    uint32_t  wanted = proto_contents(in->t.dtype)->field;
    WireIn    inside = wire_inside(message, c);
    WireField f;
    bool      more;
    for (;;) {
        TRY(wire_next(&inside, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == wanted) TRY(fill_field(in, message, &f, at));
    }
}

Err proto_take_typed(InferTensor *in, const WireIn *message, size_t n, Arena *a) {
    size_t    bytes, at = 0, need = (size_t)tensor_count(&in->t);
    WireIn    walk = *message;
    WireField f;
    bool      more;
    TRY(tensor_measure(&in->t, &bytes));
    if (n != need) {
        if (n == 0 && proto_contents(in->t.dtype) == NULL)
            return err_set(ERR_INVALID, "datatype %s needs raw contents",
                           infer_type_name(in->t.dtype));
        return err_set(ERR_INVALID, "its shape needs %zu numbers, its contents have %zu", need, n);
    }
    in->t.data = arena_try(a, bytes, 1, TENSOR_ALIGN);
    if (in->t.data == NULL) return no_memory(bytes);
    if (n == 0) return ERR_OK;
    for (;;) {
        TRY(wire_next(&walk, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == CONTENTS) TRY(fill_contents(in, message, &f, &at));
    }
}

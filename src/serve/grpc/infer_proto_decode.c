// Decodes ModelInferRequest: typed and raw tensor contents, parameters, requested outputs.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/coroutine.h"
#include "base/text.h"
#include "serve/grpc/infer_proto_int.h"

enum { NUMBER_NS = 3 };  // estimated time of an element
enum { CONTENTS = 5, CONTENTS_LAST = 8 };

typedef struct ContentsRow {  // field of InferTensorContents for a data type
    DType    dtype;
    uint32_t field;
} ContentsRow;

static const ContentsRow contents[] = {
    {DT_BOOL, 1}, {DT_I8, 2},  {DT_I16, 2}, {DT_I32, 2}, {DT_I64, 3}, {DT_U8, 4},
    {DT_U16, 4},  {DT_U32, 4}, {DT_U64, 5}, {DT_F32, 6}, {DT_F64, 7}, {DT_STR, 8},
};

// Wire type of each field of InferTensorContents.
static const WireType kinds[CONTENTS_LAST + 1] = {
    0,           WIRE_VARINT,  WIRE_VARINT,  WIRE_VARINT, WIRE_VARINT,
    WIRE_VARINT, WIRE_FIXED32, WIRE_FIXED64, WIRE_BYTES};

// NULL: the type needs raw contents.
static const ContentsRow *contents_row(DType t) {
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (contents[i].dtype == t) return &contents[i];
    return NULL;
}

static Err no_memory(size_t bytes) {
    return err_set(ERR_LIMIT, "out of memory for %zu bytes", bytes);
}

static Err count_contents(const InferTensor *in, const WireReader *message, const WireField *c,
                          size_t *n) {
    const ContentsRow *row = contents_row(in->t.dtype);
    WireReader         inside = wire_inside(message, c);
    WireField          f;
    bool               more;
    size_t             some;
    for (;;) {
        TRY(wire_next(&inside, &f, &more));
        if (!more) return ERR_OK;
        if (f.number > CONTENTS_LAST) continue;
        TRY(wire_count(message, &f, kinds[f.number], &some));
        if (some > 0 && (row == NULL || row->field != f.number))
            return err_set(ERR_INVALID, "its contents (field %u) do not match datatype %s%s",
                           f.number, infer_type_name(in->t.dtype),
                           row == NULL ? ", which needs raw contents" : "");
        *n += some;
    }
}

static Err count_typed(const InferTensor *in, const WireReader *message, size_t *n) {
    WireReader walk = *message;
    WireField  f;
    bool       more;
    *n = 0;
    for (;;) {
        TRY(wire_next(&walk, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == CONTENTS) TRY(count_contents(in, message, &f, n));
    }
}

// Stores an integer as it was on the wire; false: out of the type's range.
static bool put_int(Tensor *t, size_t i, uint64_t v) {
    int64_t  s = (int32_t)(uint32_t)v;  // int32 and uint32 fields: the low 32 bits
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

static Err fill_ints(InferTensor *in, const WireReader *message, const WireField *f, size_t *at) {
    WireReader packed = wire_inside(message, f);
    uint64_t   v = f->value;
    bool       alone = f->kind == WIRE_VARINT;
    while (alone || packed.at < packed.end) {
        if (!alone) TRY(wire_varint(&packed, &v));
        coroutine_point(NUMBER_NS);
        if (!put_int(&in->t, (*at)++, v))
            return err_set(ERR_INVALID, "number %zu is out of the range of %s", *at - 1,
                           infer_type_name(in->t.dtype));
        if (alone) break;
    }
    return ERR_OK;
}

static Err fill_field(InferTensor *in, const WireReader *message, const WireField *f, size_t *at) {
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

static Err fill_contents(InferTensor *in, const WireReader *message, const WireField *c,
                         size_t *at) {
    uint32_t   requested = contents_row(in->t.dtype)->field;
    WireReader inside = wire_inside(message, c);
    WireField  f;
    bool       more;
    for (;;) {
        TRY(wire_next(&inside, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == requested) TRY(fill_field(in, message, &f, at));
    }
}

static Err take_typed(InferTensor *in, const WireReader *message, size_t n, Arena *a) {
    size_t     bytes, at = 0, need = (size_t)tensor_count(&in->t);
    WireReader walk = *message;
    WireField  f;
    bool       more;
    TRY(tensor_measure(&in->t, &bytes));
    if (n != need) {
        if (n == 0 && contents_row(in->t.dtype) == NULL)
            return err_set(ERR_INVALID, "datatype %s needs raw contents",
                           infer_type_name(in->t.dtype));
        return err_set(ERR_INVALID, "shape needs %zu numbers, contents have %zu", need, n);
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

// Field numbers of ModelInferRequest and its submessages
enum { REQUEST_MODEL = 1, REQUEST_VERSION, REQUEST_ID, REQUEST_PARAMETERS, REQUEST_INPUTS };
enum { REQUEST_OUTPUTS = 6, REQUEST_RAW };
enum { INPUT_NAME = 1, INPUT_TYPE, INPUT_SHAPE, INPUT_PARAMETERS, INPUT_CONTENTS };
enum { PARAMETER_BOOL = 1, PARAMETER_INT, PARAMETER_TEXT, PARAMETER_DOUBLE, PARAMETER_UINT };

typedef struct Parameter {
    Str      key;
    uint32_t which;  // field number of the oneof that was set last; 0: none
    uint64_t bits;
    double   real;
} Parameter;

typedef struct Counts {
    uint32_t inputs, requested, raw;
} Counts;

static Err read_value(const WireReader *in, const WireField *f, Parameter *p) {
    WireReader inside = wire_inside(in, f);
    WireField  v;
    bool       more;
    Str        text;
    for (;;) {
        TRY(wire_next(&inside, &v, &more));
        if (!more) return ERR_OK;
        switch (v.number) {
        case PARAMETER_BOOL:
        case PARAMETER_INT:
        case PARAMETER_UINT: TRY(wire_want(in, &v, WIRE_VARINT)); break;
        case PARAMETER_TEXT: TRY(wire_text(in, &v, &text)); break;
        case PARAMETER_DOUBLE:
            TRY(wire_want(in, &v, WIRE_FIXED64));
            memcpy(&p->real, v.at, sizeof p->real);
            break;
        default: continue;
        }
        p->which = v.number;
        p->bits = v.value;
    }
}

static Err read_parameter(const WireReader *in, const WireField *f, Parameter *p) {
    TRY(wire_want(in, f, WIRE_BYTES));
    WireReader inside = wire_inside(in, f);
    WireField  v;
    bool       more;
    *p = (Parameter){.key = {"", 0}};
    for (;;) {
        TRY(wire_next(&inside, &v, &more));
        if (!more) return ERR_OK;
        if (v.number == 1) TRY(wire_text(in, &v, &p->key));
        if (v.number != 2) continue;
        TRY(wire_want(in, &v, WIRE_BYTES));
        TRY(read_value(in, &v, p));
    }
}

static bool is(const Parameter *p, const char *key) { return text_equal(p->key, text_of(key)); }

// A number of at least 0; values above INT64_MAX become INT64_MAX.
static Err take_count(const Parameter *p, int64_t *out) {
    int64_t v;
    switch (p->which) {
    case PARAMETER_UINT: v = p->bits > INT64_MAX ? INT64_MAX : (int64_t)p->bits; break;
    case PARAMETER_INT: v = (int64_t)p->bits; break;
    case PARAMETER_DOUBLE:
        if (isnan(p->real) || p->real < 0)
            v = -1;
        else
            v = p->real >= 0x1p63 ? INT64_MAX : (int64_t)p->real;
        break;
    default: v = -1;
    }
    if (v < 0)
        return err_set(ERR_INVALID, "parameter '%.*s' is not a number of at least 0",
                       (int)p->key.len, p->key.at);
    *out = v;
    return ERR_OK;
}

static Err take_bool(const Parameter *p, bool *out) {
    if (p->which != PARAMETER_BOOL)
        return err_set(ERR_INVALID, "parameter '%.*s' is neither true nor false", (int)p->key.len,
                       p->key.at);
    *out = p->bits != 0;
    return ERR_OK;
}

static Err take_parameter(const WireReader *in, const WireField *f, InferRequest *r) {
    Parameter p;
    TRY(read_parameter(in, f, &p));
    if (is(&p, "timeout")) return take_count(&p, &r->timeout_us);
    if (is(&p, "priority")) return take_count(&p, &r->priority);
    if (is(&p, "timing")) return take_bool(&p, &r->timing);
    return ERR_OK;
}

// Parameters of an input are ignored, except those that ask for shared memory; of an output,
// `classification` counts too.
static Err tensor_parameter(const WireReader *in, const WireField *f, InferRequestedOutput *to) {
    Parameter p;
    TRY(read_parameter(in, f, &p));
    if (is(&p, "shared_memory_region"))
        return err_set(ERR_INVALID, "shared memory is not supported; send the data");
    return to != NULL && is(&p, "classification") ? take_count(&p, &to->classes) : ERR_OK;
}

static Err add_dims(const WireReader *in, const WireField *f, Tensor *t) {
    WireReader packed = wire_inside(in, f);
    uint64_t   v = f->value;
    size_t     n;
    TRY(wire_count(in, f, WIRE_VARINT, &n));
    if (n > (size_t)(TENSOR_MAX_RANK - t->rank))
        return err_set(ERR_INVALID, "shape has more than %d dimensions", TENSOR_MAX_RANK);
    for (size_t i = 0; i < n; i++) {
        if (f->kind == WIRE_BYTES) TRY(wire_varint(&packed, &v));
        t->dims[t->rank++] = (int64_t)v;
    }
    if (f->kind == WIRE_BYTES && packed.at != packed.end)
        return err_set(ERR_PARSE, "message: truncated dimension in a shape");
    return ERR_OK;
}

static Err input_type(const WireReader *in, const WireField *f, InferTensor *to) {
    Str name;
    TRY(wire_text(in, f, &name));
    to->t.dtype = infer_dtype(name);
    if (to->t.dtype != DT_NONE) return ERR_OK;
    int shown = name.len < 16 ? (int)name.len : 16;
    return err_set(ERR_INVALID, "datatype '%.*s' is unknown", shown, name.at);
}

static Err input_field(const WireReader *in, const WireField *f, InferTensor *to) {
    switch (f->number) {
    case INPUT_NAME: return wire_text(in, f, &to->name);
    case INPUT_TYPE: return input_type(in, f, to);
    case INPUT_SHAPE: return add_dims(in, f, &to->t);
    case INPUT_PARAMETERS: return tensor_parameter(in, f, NULL);
    case INPUT_CONTENTS: return wire_want(in, f, WIRE_BYTES);
    default: return ERR_OK;
    }
}

static Err named(const InferTensor *in, Err e) {
    int shown = in->name.len < 64 ? (int)in->name.len : 64;
    return e == ERR_OK ? e : err_add(e, "input '%.*s'", shown, in->name.at);
}

// raw.at NULL: the elements are in the message itself.
static Err decode_input(WireReader message, Str raw, Arena *a, InferTensor *to) {
    WireReader walk = message;
    WireField  f;
    bool       more = true;
    size_t     n, bytes;
    *to = (InferTensor){.name = {"", 0}};
    while (more) {
        TRY(wire_next(&walk, &f, &more));
        if (more) TRY(named(to, input_field(&message, &f, to)));
    }
    if (to->t.dtype == DT_NONE) return named(to, err_set(ERR_INVALID, "datatype is missing"));
    TRY(named(to, tensor_measure(&to->t, &bytes)));
    TRY(named(to, count_typed(to, &message, &n)));
    if (raw.at == NULL) return named(to, take_typed(to, &message, n, a));
    if (n > 0) return named(to, err_set(ERR_INVALID, "both contents and raw contents are given"));
    return named(to, infer_read_binary(&to->t, (unsigned char *)(uintptr_t)raw.at, raw.len,
                                       TENSOR_ALIGN, a));
}

static Err decode_requested(WireReader message, InferRequestedOutput *to) {
    WireReader walk = message;
    WireField  f;
    bool       more = true;
    *to = (InferRequestedOutput){.name = {"", 0}};
    while (more) {
        TRY(wire_next(&walk, &f, &more));
        if (more && f.number == 1) TRY(wire_text(&message, &f, &to->name));
        if (more && f.number == 2) TRY(tensor_parameter(&message, &f, to));
    }
    return ERR_OK;
}

static Err top_field(const WireReader *in, const WireField *f, InferRequest *r, Counts *c) {
    switch (f->number) {
    case REQUEST_MODEL: return wire_text(in, f, &r->model);
    case REQUEST_VERSION: return wire_text(in, f, &r->version);
    case REQUEST_ID: return wire_text(in, f, &r->id);
    case REQUEST_PARAMETERS: return take_parameter(in, f, r);
    case REQUEST_INPUTS: c->inputs++; break;
    case REQUEST_OUTPUTS: c->requested++; break;
    case REQUEST_RAW: c->raw++; break;
    default: return ERR_OK;
    }
    return wire_want(in, f, WIRE_BYTES);
}

static Err read_top(WireReader in, InferRequest *r, Counts *c) {
    WireReader walk = in;
    WireField  f;
    bool       more = true;
    while (more) {
        TRY(wire_next(&walk, &f, &more));
        if (more) TRY(top_field(&in, &f, r, c));
    }
    if (c->inputs > INFER_TENSORS || c->requested > INFER_TENSORS)
        return err_set(ERR_LIMIT, "more than %d inputs or outputs", INFER_TENSORS);
    if (c->raw > 0 && c->raw != c->inputs)
        return err_set(ERR_INVALID, "%u inputs but %u raw contents; give one each, or none",
                       c->inputs, c->raw);
    return ERR_OK;
}

static Err decode_tensors(WireReader in, const Str *raw, Arena *a, InferRequest *r) {
    WireReader walk = in;
    WireField  f;
    bool       more = true;
    for (;;) {
        TRY(wire_next(&walk, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == REQUEST_INPUTS) {
            TRY(decode_input(wire_inside(&in, &f), raw[r->n_inputs], a, &r->inputs[r->n_inputs]));
            r->n_inputs++;
        } else if (f.number == REQUEST_OUTPUTS) {
            TRY(decode_requested(wire_inside(&in, &f), &r->requested[r->n_requested]));
            r->n_requested++;
        }
    }
}

static Err find_raw(WireReader in, Str *raw) {
    WireField f;
    bool      more = true;
    uint32_t  n = 0;
    while (more) {
        TRY(wire_next(&in, &f, &more));
        if (more && f.number == REQUEST_RAW) raw[n++] = (Str){(const char *)f.at, f.len};
    }
    return ERR_OK;
}

Err infer_proto_decode(const unsigned char *message, size_t len, Arena *a, InferRequest *out) {
    WireReader   in = wire_reader(message, len);
    InferRequest r = {.model = {"", 0}, .version = {"", 0}, .id = {"", 0}, .timeout_us = -1};
    Counts       c = {0};
    Str          raw[INFER_TENSORS] = {0};
    TRY(read_top(in, &r, &c));
    r.raw = c.raw > 0;
    r.inputs = arena_try_new(a, InferTensor, c.inputs);
    r.requested = arena_try_new(a, InferRequestedOutput, c.requested);
    if (r.inputs == NULL || r.requested == NULL)
        return err_set(ERR_LIMIT, "out of memory for %u inputs", c.inputs);
    if (r.raw) TRY(find_raw(in, raw));
    TRY(decode_tensors(in, raw, a, &r));
    *out = r;
    return ERR_OK;
}

size_t infer_proto_raw_bytes(Str message, uint32_t fields) {
    WireReader in = wire_reader(message.at, message.len);
    WireField  f = {0};
    bool       more = true;
    in.no_groups = true;
    size_t bytes = 0;
    for (uint32_t i = 0; i < fields && more && wire_next(&in, &f, &more) == ERR_OK; i++)
        if (more && f.number == REQUEST_RAW && f.kind == WIRE_BYTES) bytes += f.len;
    return bytes;
}

void infer_proto_names(Str message, uint32_t fields, InferRequest *out) {
    WireReader in = wire_reader(message.at, message.len);
    WireField  f = {0};
    bool       more = true;
    Str       *to[] = {NULL, &out->model, &out->version, &out->id};
    in.no_groups = true;
    out->model = out->version = out->id = (Str){"", 0};
    for (uint32_t i = 0; i < fields && more && wire_next(&in, &f, &more) == ERR_OK; i++) {
        if (!more || f.number > REQUEST_ID || f.kind != WIRE_BYTES) continue;
        if (wire_text(&in, &f, to[f.number]) != ERR_OK) return;
    }
}

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "serve/infer_proto_int.h"

// Fields of ModelInferRequest and of what it holds
enum { REQUEST_MODEL = 1, REQUEST_VERSION, REQUEST_ID, REQUEST_PARAMETERS, REQUEST_INPUTS };
enum { REQUEST_OUTPUTS = 6, REQUEST_RAW };
enum { INPUT_NAME = 1, INPUT_TYPE, INPUT_SHAPE, INPUT_PARAMETERS, INPUT_CONTENTS };
enum { PARAMETER_BOOL = 1, PARAMETER_INT, PARAMETER_TEXT, PARAMETER_DOUBLE, PARAMETER_UINT };

typedef struct Parameter {
    Str      key;
    uint32_t which;  // the field that was set last; 0: none
    uint64_t bits;
    double   real;
} Parameter;

typedef struct Counts {
    uint32_t inputs, wanted, raw;
} Counts;

static Err read_value(const WireIn *in, const WireField *f, Parameter *p) {
    WireIn    inside = wire_inside(in, f);
    WireField v;
    bool      more;
    Str       text;
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

static Err read_parameter(const WireIn *in, const WireField *f, Parameter *p) {
    TRY(wire_want(in, f, WIRE_BYTES));
    WireIn    inside = wire_inside(in, f);
    WireField v;
    bool      more;
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

// A number that counts something: not negative; what is beyond 2^63 is as good as 2^63.
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
        return err_set(ERR_INVALID, "parameter '%.*s' is no number from 0 on", (int)p->key.len,
                       p->key.at);
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

static Err take_parameter(const WireIn *in, const WireField *f, InferRequest *r) {
    Parameter p;
    TRY(read_parameter(in, f, &p));
    if (is(&p, "timeout")) return take_count(&p, &r->timeout_us);
    if (is(&p, "priority")) return take_count(&p, &r->priority);
    if (is(&p, "timing")) return take_bool(&p, &r->timing);
    return ERR_OK;
}

// Of an input or an output: one that names shared memory would be answered wrongly without it.
static Err check_parameter(const WireIn *in, const WireField *f) {
    Parameter p;
    TRY(read_parameter(in, f, &p));
    if (is(&p, "shared_memory_region"))
        return err_set(ERR_INVALID, "shared memory is not offered here; send the numbers");
    return ERR_OK;
}

static Err add_dims(const WireIn *in, const WireField *f, Tensor *t) {
    WireIn   packed = wire_inside(in, f);
    uint64_t v = f->value;
    size_t   n;
    TRY(wire_count(in, f, WIRE_VARINT, &n));
    if (n > (size_t)(TENSOR_MAX_RANK - t->rank))
        return err_set(ERR_INVALID, "a shape has over %d dimensions", TENSOR_MAX_RANK);
    for (size_t i = 0; i < n; i++) {
        if (f->kind == WIRE_BYTES) TRY(wire_varint(&packed, &v));
        t->dims[t->rank++] = (int64_t)v;
    }
    if (f->kind == WIRE_BYTES && packed.at != packed.end)
        return err_set(ERR_PARSE, "message: the last number of a shape does not end");
    return ERR_OK;
}

static Err input_type(const WireIn *in, const WireField *f, InferTensor *to) {
    Str name;
    TRY(wire_text(in, f, &name));
    to->t.dtype = infer_dtype(name);
    if (to->t.dtype != DT_NONE) return ERR_OK;
    int shown = name.len < 16 ? (int)name.len : 16;
    return err_set(ERR_INVALID, "datatype '%.*s' is unknown", shown, name.at);
}

static Err input_field(const WireIn *in, const WireField *f, InferTensor *to) {
    switch (f->number) {
    case INPUT_NAME: return wire_text(in, f, &to->name);
    case INPUT_TYPE: return input_type(in, f, to);
    case INPUT_SHAPE: return add_dims(in, f, &to->t);
    case INPUT_PARAMETERS: return check_parameter(in, f);
    case INPUT_CONTENTS: return wire_want(in, f, WIRE_BYTES);
    default: return ERR_OK;
    }
}

static Err named(const InferTensor *in, Err e) {
    int shown = in->name.len < 64 ? (int)in->name.len : 64;
    return e == ERR_OK ? e : err_add(e, "input '%.*s'", shown, in->name.at);
}

// raw.at NULL: its numbers are in the message itself.
static Err decode_input(WireIn message, Str raw, Arena *a, InferTensor *to) {
    WireIn    walk = message;
    WireField f;
    bool      more = true;
    size_t    n, bytes;
    *to = (InferTensor){.name = {"", 0}};
    while (more) {
        TRY(wire_next(&walk, &f, &more));
        if (more) TRY(named(to, input_field(&message, &f, to)));
    }
    if (to->t.dtype == DT_NONE) return named(to, err_set(ERR_INVALID, "it has no datatype"));
    TRY(named(to, tensor_measure(&to->t, &bytes)));
    TRY(named(to, proto_count_typed(to, &message, &n)));
    if (raw.at == NULL) return named(to, proto_take_typed(to, &message, n, a));
    if (n > 0) return named(to, err_set(ERR_INVALID, "it has contents, and raw contents besides"));
    return named(to, proto_take_raw(to, raw, a));
}

static Err decode_wanted(WireIn message, InferWanted *to) {
    WireIn    walk = message;
    WireField f;
    bool      more = true;
    *to = (InferWanted){.name = {"", 0}};
    while (more) {
        TRY(wire_next(&walk, &f, &more));
        if (more && f.number == 1) TRY(wire_text(&message, &f, &to->name));
        if (more && f.number == 2) TRY(check_parameter(&message, &f));
    }
    return ERR_OK;
}

static Err top_field(const WireIn *in, const WireField *f, InferRequest *r, Counts *c) {
    switch (f->number) {
    case REQUEST_MODEL: return wire_text(in, f, &r->model);
    case REQUEST_VERSION: return wire_text(in, f, &r->version);
    case REQUEST_ID: return wire_text(in, f, &r->id);
    case REQUEST_PARAMETERS: return take_parameter(in, f, r);
    case REQUEST_INPUTS: c->inputs++; break;
    case REQUEST_OUTPUTS: c->wanted++; break;
    case REQUEST_RAW: c->raw++; break;
    default: return ERR_OK;
    }
    return wire_want(in, f, WIRE_BYTES);
}

static Err look(WireIn in, InferRequest *r, Counts *c) {
    WireIn    walk = in;
    WireField f;
    bool      more = true;
    while (more) {
        TRY(wire_next(&walk, &f, &more));
        if (more) TRY(top_field(&in, &f, r, c));
    }
    if (c->inputs > INFER_TENSORS || c->wanted > INFER_TENSORS)
        return err_set(ERR_LIMIT, "a request has at most %d inputs, and as many outputs",
                       INFER_TENSORS);
    if (c->raw > 0 && c->raw != c->inputs)
        return err_set(ERR_INVALID, "%u inputs have %u raw contents; give one for each, or none",
                       c->inputs, c->raw);
    return ERR_OK;
}

static Err take(WireIn in, const Str *raw, Arena *a, InferRequest *r) {
    WireIn    walk = in;
    WireField f;
    bool      more = true;
    for (;;) {
        TRY(wire_next(&walk, &f, &more));
        if (!more) return ERR_OK;
        if (f.number == REQUEST_INPUTS) {
            TRY(decode_input(wire_inside(&in, &f), raw[r->n_inputs], a, &r->inputs[r->n_inputs]));
            r->n_inputs++;
        } else if (f.number == REQUEST_OUTPUTS) {
            TRY(decode_wanted(wire_inside(&in, &f), &r->wanted[r->n_wanted]));
            r->n_wanted++;
        }
    }
}

static Err find_raw(WireIn in, Str *raw) {
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
    WireIn       in = wire_in(message, len);
    InferRequest r = {.model = {"", 0}, .version = {"", 0}, .id = {"", 0}, .timeout_us = -1};
    Counts       c = {0};
    Str          raw[INFER_TENSORS] = {0};
    TRY(look(in, &r, &c));
    r.raw = c.raw > 0;
    r.inputs = arena_try_new(a, InferTensor, c.inputs);
    r.wanted = arena_try_new(a, InferWanted, c.wanted);
    if (r.inputs == NULL || r.wanted == NULL)
        return err_set(ERR_LIMIT, "no memory for %u inputs", c.inputs);
    if (r.raw) TRY(find_raw(in, raw));
    TRY(take(in, raw, a, &r));
    *out = r;
    return ERR_OK;
}

void infer_proto_names(Str message, Str *model, Str *version) {
    WireIn    in = wire_in(message.at, message.len);
    WireField f = {0};
    bool      more = true;
    *model = *version = (Str){"", 0};
    while (more && wire_next(&in, &f, &more) == ERR_OK) {
        Str *to = f.number == REQUEST_MODEL ? model : version;
        if (!more || f.number > REQUEST_VERSION || f.kind != WIRE_BYTES) continue;
        if (wire_text(&in, &f, to) != ERR_OK) return;
    }
}

// Reads a tensor's elements from JSON arrays, flat or nested as its shape.
#include "serve/rest/json_reader.h"

#include <inttypes.h>

#include "serve/tensor/infer_request.h"

typedef struct Data {
    JsonReader *s;
    uint32_t    index;  // number of the input
    Tensor     *t;
    int32_t     levels;                 // nesting depth of brackets
    int64_t     size[TENSOR_MAX_RANK];  // [levels] elements per bracket
    int64_t     done;                   // elements read so far
} Data;

static const char *wanted(DType t) {
    return t == DT_STR ? "a string" : t == DT_BOOL ? "true or false" : "a number";
}

static Err fail_element(const Data *d, JsonFault f) {
    const char *type = infer_type_name(d->t->dtype);
    uint32_t    i = d->index;
    switch (f) {
    case JSON_FAULT_KIND:
        return err_set(ERR_INVALID, "inputs[%u].data: element %" PRId64 " is not %s", i, d->done,
                       wanted(d->t->dtype));
    case JSON_FAULT_RANGE:
        return err_set(ERR_INVALID,
                       "inputs[%u].data: element %" PRId64 " is out of the range of %s", i, d->done,
                       type);
    case JSON_FAULT_FRACTION:
        return err_set(ERR_INVALID,
                       "inputs[%u].data: element %" PRId64 " of %s is not a whole number", i,
                       d->done, type);
    case JSON_FAULT_COMMA:
        return err_set(ERR_PARSE, "inputs[%u].data: missing comma after element %" PRId64, i,
                       d->done - 1);
    default: return err_add(ERR_PARSE, "inputs[%u].data: element %" PRId64, i, d->done);
    }
}

static Err fail_count(const Data *d, int32_t level, bool more) {
    char shape[160];
    tensor_shape_text(d->t, shape, sizeof shape);
    if (d->levels > 1)
        return err_set(ERR_INVALID,
                       "inputs[%u].data: before element %" PRId64 ", dimension %" PRId32
                       " has %s elements than the %" PRId64 " of shape %s",
                       d->index, d->done, level, more ? "more" : "fewer", d->size[level], shape);
    return err_set(ERR_INVALID, "inputs[%u].data: %s elements than the %" PRId64 " of shape %s",
                   d->index, more ? "more" : "fewer", d->size[0], shape);
}

// Reads the elements of an innermost array and its closing bracket.
static Err read_row(Data *d) {
    int32_t   level = d->levels - 1;
    int64_t   got = 0, n = d->size[level];
    char     *out = (char *)d->t->data + (size_t)d->done * dtype_size(d->t->dtype);
    JsonFault f = json_reader_row(d->s, d->t->dtype, out, n, &got);
    d->done += got;
    if (f == JSON_FAULT_SHORT) return fail_count(d, level, false);
    if (f != JSON_FAULT_NONE) return fail_element(d, f);
    unsigned char c = json_reader_peek(d->s);
    if (c != ']' && c != ',' && n > 0) return fail_element(d, JSON_FAULT_COMMA);
    if (c != ']') return fail_count(d, level, true);
    d->s->at++;
    return ERR_OK;
}

// After an element of *level: moves to the next one, closing finished levels. *level -1: all done.
static Err next_row(Data *d, int64_t *at, int32_t *level) {
    while (--*level >= 0) {
        unsigned char c = json_reader_peek(d->s);
        if (c != ',' && c != ']') return json_reader_fail(d->s, "expected a comma or a bracket");
        d->s->at++;
        if (++at[*level] < d->size[*level]) return c == ',' ? ERR_OK : fail_count(d, *level, false);
        if (c == ',') return fail_count(d, *level, true);
    }
    return ERR_OK;
}

static Err open_row(Data *d, int32_t level) {
    if (json_reader_peek(d->s) == '[') {
        d->s->at++;
        return ERR_OK;
    }
    if (json_reader_peek(d->s) == ']') return fail_count(d, level - 1, false);
    return err_set(ERR_INVALID,
                   "inputs[%u].data: element %" PRId64 " is not nested like the others", d->index,
                   d->done);
}

static Err read_rows(Data *d) {
    int64_t at[TENSOR_MAX_RANK] = {0};
    int32_t level = 0;
    d->s->at++;
    while (level >= 0) {
        if (level == d->levels - 1) {
            TRY(read_row(d));
            TRY(next_row(d, at, &level));
        } else if (d->size[level] == 0) {
            if (json_reader_peek(d->s) != ']') return fail_count(d, level, true);
            d->s->at++;
            TRY(next_row(d, at, &level));
        } else {
            TRY(open_row(d, ++level));
            at[level] = 0;
        }
    }
    return ERR_OK;
}

// Whether the array begins with another array.
static bool nested(const JsonReader *s) {
    JsonReader look = *s;
    look.at++;
    return json_reader_peek(&look) == '[';
}

static Err allocate(const Data *d, Arena *a) {
    int64_t count = tensor_count(d->t), most = (d->s->end - d->s->at) / 2;
    if (count > most)  // each takes at least a byte and a comma
        return err_set(ERR_INVALID,
                       "inputs[%u].data: fewer elements than the %" PRId64 " that its shape needs",
                       d->index, count);
    return tensor_alloc(d->t, a);
}

Err json_reader_tensor(JsonReader *s, uint32_t index, Arena *a, Tensor *t) {
    Data d = {.s = s, .index = index, .t = t, .levels = 1, .size = {tensor_count(t)}};
    if (t->dtype == DT_F16 || t->dtype == DT_BF16)
        return err_set(ERR_INVALID, "inputs[%u]: %s cannot be sent as JSON; use binary data", index,
                       infer_type_name(t->dtype));
    const bool array = json_reader_peek(s) == '[';
    if (!array && t->rank > 0)
        return err_set(ERR_INVALID, "inputs[%u].data: expected an array", index);
    TRY(allocate(&d, a));
    if (!array) {
        JsonFault f = json_reader_row(s, t->dtype, t->data, 1, &d.done);
        return f == JSON_FAULT_NONE ? ERR_OK : fail_element(&d, f);
    }
    if (t->rank > 1 && nested(s)) {
        d.levels = t->rank;
        for (int32_t i = 0; i < t->rank; i++) d.size[i] = t->dims[i];
    }
    return read_rows(&d);
}

// Decodes a REST inference request: JSON, binary tensor data behind it, or a raw body.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "serve/tensor/infer_request.h"
#include "serve/rest/json_reader.h"

enum { SKIPPED_MOST = 1 << 20 };  // bytes of unknown members, in total

typedef struct Reader {
    JsonReader     s;
    Arena         *a;
    unsigned char *raw, *raw_end;  // binary data not consumed yet; NULL: none
    InferRequest  *r;
    uint32_t       room_inputs, room_requested;
    size_t         skipped;  // bytes of unknown members
} Reader;

typedef struct InputReader {  // one input while it is read
    uint32_t    index;
    InferTensor in;
    bool        named, shaped, read, postponed;
    bool        names_input;  // the error already names the input
    JsonReader  data;         // position of `data`, if it precedes datatype or shape
    int64_t     binary;       // binary_data_size; -1: not given
} InputReader;

typedef struct JsonMember {  // a known member of an object
    const char *key;
    Err (*read)(Reader *r, void *self);
} JsonMember;

static const JsonMember *find(const JsonMember *fields, Str key, uint32_t *which) {
    for (*which = 0; fields[*which].key != NULL; (*which)++)
        if (text_equal(key, text_of(fields[*which].key))) return &fields[*which];
    return NULL;
}

// Skips an unknown member. Their total size is limited, since they cost time for nothing.
static Err skip_member(Reader *r, Str key) {
    const unsigned char *from = r->s.at;
    Err                  e = json_reader_skip(&r->s, SKIPPED_MOST - r->skipped);
    r->skipped += key.len + sizeof "\"\":," + (size_t)(r->s.at - from);
    if (e == ERR_OK && r->skipped > SKIPPED_MOST) e = ERR_LIMIT;
    return e != ERR_LIMIT ? e
                          : err_set(ERR_LIMIT, "more than %d KiB of unknown members in the request",
                                    SKIPPED_MOST >> 10);
}

// Reads an object: each known field at most once; unknown ones are skipped.
static Err read_object(Reader *r, const JsonMember *fields, void *self) {
    uint32_t seen = 0, which;
    bool     more = true;
    Str      key;
    TRY(json_reader_open(&r->s, '{'));
    for (bool first = true;; first = false) {
        TRY(json_reader_member(&r->s, first, &key, &more));
        if (!more) return ERR_OK;
        const JsonMember *f = find(fields, key, &which);
        if (f == NULL) {
            TRY(skip_member(r, key));
            continue;
        }
        if ((seen >> which & 1) != 0) return err_set(ERR_INVALID, "%s occurs twice", f->key);
        seen |= 1u << which;
        if (json_reader_peek(&r->s) == 'n' && json_reader_literal(&r->s, "null")) continue;
        TRY(f->read(r, self));
    }
}

static Err read_text(Reader *r, const char *what, Str *out) {
    if (json_reader_peek(&r->s) != '"') return err_set(ERR_INVALID, "%s is not a string", what);
    TRY(json_reader_string(&r->s, out));
    if (memchr(out->at, '\0', out->len) != NULL)
        return err_set(ERR_INVALID, "%s contains a NUL byte", what);
    return ERR_OK;
}

static Err read_bool(Reader *r, const char *what, bool *out) {
    (void)json_reader_peek(&r->s);
    *out = json_reader_literal(&r->s, "true");
    if (*out || json_reader_literal(&r->s, "false")) return ERR_OK;
    return err_set(ERR_INVALID, "%s is neither true nor false", what);
}

// A whole number of at least 0; above INT64_MAX it becomes INT64_MAX.
static Err read_amount(Reader *r, const char *what, int64_t *out) {
    int64_t v = 0;
    if (json_reader_integer(&r->s, 0, UINT64_MAX, &v) != JSON_FAULT_NONE)
        return err_set(ERR_INVALID, "%s is not a whole number of at least 0", what);
    *out = (uint64_t)v > INT64_MAX ? INT64_MAX : v;
    return ERR_OK;
}

static Err read_dim(Reader *r, Tensor *t) {
    if (t->rank == TENSOR_MAX_RANK)
        return err_set(ERR_INVALID, "shape has more than %d dimensions", TENSOR_MAX_RANK);
    if (json_reader_integer(&r->s, 0, INT64_MAX, &t->dims[t->rank]) != JSON_FAULT_NONE)
        return err_set(ERR_INVALID, "shape[%" PRId32 "] is not a whole number of at least 0",
                       t->rank);
    t->rank++;
    return ERR_OK;
}

static Err read_shape(Reader *r, void *self) {
    InputReader *d = self;
    bool         more = true;
    if (json_reader_peek(&r->s) != '[') return err_set(ERR_INVALID, "shape is not an array");
    TRY(json_reader_open(&r->s, '['));
    for (bool first = true;; first = false) {
        TRY(json_reader_element(&r->s, first, &more));
        if (!more) break;
        TRY(read_dim(r, &d->in.t));
    }
    d->shaped = true;
    return ERR_OK;
}

static Err read_input_name(Reader *r, void *self) {
    InputReader *d = self;
    d->named = true;
    return read_text(r, "name", &d->in.name);
}

static Err read_datatype(Reader *r, void *self) {
    InputReader *d = self;
    Str          name;
    char         shown[INFER_PRINTABLE];
    TRY(read_text(r, "datatype", &name));
    d->in.t.dtype = infer_dtype(name);
    if (d->in.t.dtype != DT_NONE) return ERR_OK;
    return err_set(ERR_INVALID, "datatype '%s' is not known", infer_printable(name, shown));
}

static Err read_binary_size(Reader *r, void *self) {
    return read_amount(r, "parameters.binary_data_size", &((InputReader *)self)->binary);
}

static Err reject_shared_memory(Reader *r, void *self) {
    (void)r;
    (void)self;
    return err_set(ERR_UNSUPPORTED, "shared memory is not supported");
}

static Err read_input_parameters(Reader *r, void *self) {
    static const JsonMember fields[] = {{"binary_data_size", read_binary_size},
                                        {"shared_memory_region", reject_shared_memory},
                                        {NULL, NULL}};
    return read_object(r, fields, self);
}

static Err check_size(const Tensor *t) {
    size_t bytes = 0;
    return tensor_measure(t, &bytes) == ERR_OK ? ERR_OK
                                               : err_set(ERR_INVALID, "shape is too large");
}

static Err read_elements(Reader *r, InputReader *d, JsonReader *at) {
    d->read = true;
    Err e = json_reader_tensor(at, d->index, r->a, &d->in.t);
    d->names_input = e != ERR_OK;
    return e;
}

static Err read_data(Reader *r, void *self) {
    InputReader *d = self;
    if (d->shaped && d->in.t.dtype != DT_NONE) {
        TRY(check_size(&d->in.t));
        return read_elements(r, d, &r->s);
    }
    d->postponed = true;
    d->data = r->s;
    return json_reader_skip(&r->s, SIZE_MAX);
}

// Takes the input's bytes from the binary part of the body.
static Err take_binary(Reader *r, InputReader *d) {
    if (d->read || d->postponed) return err_set(ERR_INVALID, "both data and binary data are given");
    if (r->raw == NULL)
        return err_set(ERR_INVALID, "binary data needs the header Inference-Header-Content-Length");
    if (d->binary > r->raw_end - r->raw)
        return err_set(ERR_INVALID,
                       "binary_data_size is %" PRId64 ", %td bytes are left in the body", d->binary,
                       r->raw_end - r->raw);
    TRY(infer_read_binary(&d->in.t, r->raw, (size_t)d->binary, dtype_size(d->in.t.dtype), r->a));
    r->raw += d->binary;
    return ERR_OK;
}

static Err finish_input(Reader *r, InputReader *d) {
    if (!d->named) return err_set(ERR_INVALID, "name is missing");
    if (d->in.t.dtype == DT_NONE) return err_set(ERR_INVALID, "datatype is missing");
    if (!d->shaped) return err_set(ERR_INVALID, "shape is missing");
    TRY(check_size(&d->in.t));
    if (d->binary >= 0) return take_binary(r, d);
    if (d->read) return ERR_OK;
    if (!d->postponed) return err_set(ERR_INVALID, "data is missing");
    return read_elements(r, d, &d->data);
}

// Makes room for one more element; the list doubles.
static Err grow(Arena *a, const char *what, uint32_t n, uint32_t *room, size_t size, void **list) {
    if (n < *room) return ERR_OK;
    if (n == INFER_TENSORS)
        return err_set(ERR_INVALID, "there are more than %d %s", INFER_TENSORS, what);
    uint32_t more = n == 0 ? 4 : 2 * n;
    void    *wider = arena_try(a, more, size, _Alignof(max_align_t));
    if (wider == NULL) return err_set(ERR_LIMIT, "out of memory for %u %s", more, what);
    if (n > 0) memcpy(wider, *list, n * size);
    *list = wider;
    *room = more;
    return ERR_OK;
}

static Err read_input(Reader *r, InputReader *d) {
    static const JsonMember fields[] = {
        {"name", read_input_name}, {"datatype", read_datatype},           {"shape", read_shape},
        {"data", read_data},       {"parameters", read_input_parameters}, {NULL, NULL}};
    TRY(read_object(r, fields, d));
    return finish_input(r, d);
}

static Err add_input(Reader *r) {
    InferRequest *q = r->r;
    InputReader   d = {.index = q->n_inputs, .binary = -1};
    void         *list = q->inputs;
    TRY(grow(r->a, "inputs", q->n_inputs, &r->room_inputs, sizeof *q->inputs, &list));
    q->inputs = list;
    Err e = read_input(r, &d);
    if (e != ERR_OK) return d.names_input ? e : err_add(e, "inputs[%u]", d.index);
    q->inputs[q->n_inputs++] = d.in;
    return ERR_OK;
}

static Err read_requested_name(Reader *r, void *self) {
    InferRequestedOutput *w = self;
    return read_text(r, "name", &w->name);
}

static Err read_requested_binary(Reader *r, void *self) {
    InferRequestedOutput *w = self;
    w->has_binary = true;
    return read_bool(r, "parameters.binary_data", &w->binary);
}

static Err read_classification(Reader *r, void *self) {
    return read_amount(r, "parameters.classification", &((InferRequestedOutput *)self)->classes);
}

static Err read_requested_parameters(Reader *r, void *self) {
    static const JsonMember fields[] = {{"binary_data", read_requested_binary},
                                        {"shared_memory_region", reject_shared_memory},
                                        {"classification", read_classification},
                                        {NULL, NULL}};
    return read_object(r, fields, self);
}

static Err read_requested(Reader *r, InferRequestedOutput *w) {
    static const JsonMember fields[] = {
        {"name", read_requested_name}, {"parameters", read_requested_parameters}, {NULL, NULL}};
    TRY(read_object(r, fields, w));
    return w->name.at != NULL ? ERR_OK : err_set(ERR_INVALID, "name is missing");
}

static Err add_requested(Reader *r) {
    InferRequest        *q = r->r;
    InferRequestedOutput w = {0};
    void                *list = q->requested;
    TRY(grow(r->a, "outputs", q->n_requested, &r->room_requested, sizeof *q->requested, &list));
    q->requested = list;
    Err e = read_requested(r, &w);
    if (e != ERR_OK) return err_add(e, "outputs[%u]", q->n_requested);
    q->requested[q->n_requested++] = w;
    return ERR_OK;
}

static Err read_list(Reader *r, const char *what, Err (*add)(Reader *r)) {
    bool more = true;
    if (json_reader_peek(&r->s) != '[') return err_set(ERR_INVALID, "%s is not an array", what);
    TRY(json_reader_open(&r->s, '['));
    for (bool first = true;; first = false) {
        TRY(json_reader_element(&r->s, first, &more));
        if (!more) return ERR_OK;
        TRY(add(r));
    }
}

static Err read_inputs(Reader *r, void *self) {
    (void)self;
    return read_list(r, "inputs", add_input);
}

static Err read_outputs(Reader *r, void *self) {
    (void)self;
    return read_list(r, "outputs", add_requested);
}

static Err read_id(Reader *r, void *self) {
    (void)self;
    return read_text(r, "id", &r->r->id);
}

static Err read_timeout(Reader *r, void *self) {
    (void)self;
    return read_amount(r, "parameters.timeout", &r->r->timeout_us);
}

static Err read_priority(Reader *r, void *self) {
    (void)self;
    return read_amount(r, "parameters.priority", &r->r->priority);
}

static Err read_timing(Reader *r, void *self) {
    (void)self;
    return read_bool(r, "parameters.timing", &r->r->timing);
}

static Err read_binary_output(Reader *r, void *self) {
    (void)self;
    return read_bool(r, "parameters.binary_data_output", &r->r->binary);
}

static Err read_parameters(Reader *r, void *self) {
    static const JsonMember fields[] = {{"timeout", read_timeout},
                                        {"priority", read_priority},
                                        {"timing", read_timing},
                                        {"binary_data_output", read_binary_output},
                                        {NULL, NULL}};
    return read_object(r, fields, self);
}

static Err read_request(Reader *r) {
    static const JsonMember fields[] = {{"id", read_id},
                                        {"parameters", read_parameters},
                                        {"inputs", read_inputs},
                                        {"outputs", read_outputs},
                                        {NULL, NULL}};
    TRY(read_object(r, fields, NULL));
    TRY(json_reader_finish(&r->s));
    if (r->raw != r->raw_end)
        return err_set(ERR_INVALID, "%td bytes of the body belong to no input",
                       r->raw_end - r->raw);
    return ERR_OK;
}

// The whole body is the data of the only input.
static Err read_raw(unsigned char *body, size_t len, Arena *a, InferRequest *q) {
    q->inputs = arena_try_new(a, InferTensor, 1);
    if (q->inputs == NULL) return err_set(ERR_LIMIT, "out of memory for an input");
    q->inputs[0].t = (Tensor){.rank = 1, .dims = {(int64_t)len}, .data = body};
    q->n_inputs = 1;
    q->raw_body = q->binary = true;
    return ERR_OK;
}

Err infer_json_decode(unsigned char *body, size_t len, size_t header, Arena *a, InferRequest *out) {
    InferRequest q = {.timeout_us = -1};
    Reader       r = {.a = a, .r = &q};
    if (header == 0) {
        TRY(read_raw(body, len, a, &q));
        *out = q;
        return ERR_OK;
    }
    if (header != SIZE_MAX) {
        if (header > len)
            return err_set(ERR_INVALID,
                           "Inference-Header-Content-Length is %zu, the body has %zu bytes", header,
                           len);
        r.raw = body + header;
        r.raw_end = body + len;
    }
    TRY(json_reader_begin(&r.s, body, header != SIZE_MAX ? header : len));
    TRY(read_request(&r));
    *out = q;
    return ERR_OK;
}

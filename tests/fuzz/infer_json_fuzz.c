// Feeds bytes to the decoder of inference requests. What it accepts is valid JSON with tensors that
// are where they claim to be, and comes back the same by way of an answer.
//
// The first byte says how the length of the JSON is given: 0 not at all, 1 it is none (a raw body),
// otherwise by the next two bytes.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "net/exchange.h"
#include "serve/tensor/infer_request.h"
#include "tests/fuzz/fuzz.h"

static void demand(bool holds) {
    if (!holds) abort();
}

static bool within(const void *p, size_t len, const void *begin, size_t size) {
    return (const char *)p >= (const char *)begin &&
           (size_t)((const char *)p - (const char *)begin) <= size &&
           len <= size - (size_t)((const char *)p - (const char *)begin);
}

static void check_tensor(const Tensor *t, const Arena *a, const unsigned char *body, size_t len) {
    size_t bytes = 0;
    demand(tensor_measure(t, &bytes) == ERR_OK && infer_type_name(t->dtype) != NULL);
    demand(within(t->data, bytes, a->base, a->used) || within(t->data, bytes, body, len));
    demand((uintptr_t)t->data % (t->dtype == DT_STR ? 8 : dtype_size(t->dtype)) == 0);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (t->dtype == DT_BOOL) demand(((const uint8_t *)t->data)[i] <= 1);
        if (t->dtype != DT_STR) continue;
        Str s = ((const Str *)t->data)[i];
        demand(within(s.at, s.len, body, len));
    }
}

// The JSON is JSON to others too, numbers aside that they cannot hold and we pass over.
static void check_json(const uint8_t *text, size_t len) {
    json_error_t why;
    json_t      *doc = json_loadb((const char *)text, len, JSON_ALLOW_NUL, &why);
    demand(doc != NULL || json_error_code(&why) == json_error_numeric_overflow);
    json_decref(doc);
}

// Out as an answer, and in again.
static void check_round(const InferRequest *r, Arena *a) {
    static unsigned char body[1 << 21];
    static struct iovec  pieces[EXCHANGE_PIECES];
    static TensorSpec    specs[INFER_TENSORS];
    static Tensor        tensors[INFER_TENSORS];
    static bool          binary[INFER_TENSORS];
    InferResponse        answer = {.model = "m",
                                   .id = r->id,
                                   .specs = specs,
                                   .tensors = tensors,
                                   .binary = binary,
                                   .n = r->n_inputs};
    InferRequest         again;
    uint32_t             n = 0;
    size_t               header = 0, len = 0;
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        specs[i].name = "x";
        tensors[i] = r->inputs[i].t;
        binary[i] = r->inputs[i].t.dtype == DT_F16 || r->inputs[i].t.dtype == DT_BF16 || i % 2 == 1;
    }
    Err e = infer_json_encode(&answer, sizeof body, a, pieces, &n, &header);
    if (e == ERR_LIMIT || e == ERR_UNSUPPORTED)
        return;  // BYTES and binary numbers that JSON cannot say
    demand(e == ERR_OK);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(body + len, pieces[i].iov_base, pieces[i].iov_len);
        len += pieces[i].iov_len;
    }
    check_json(body, pieces[0].iov_len);
    char *outputs = memmem(body, len, "\"outputs\":[", 11);
    demand(outputs != NULL);
    memcpy(outputs, " \"inputs\":[", 11);
    demand(infer_json_decode(body, len, header, a, &again) == ERR_OK);
    demand(again.n_inputs == r->n_inputs);
    for (uint32_t i = 0; i < again.n_inputs; i++)
        demand(tensor_equal(&again.inputs[i].t, &tensors[i]));
}

static void check_request(const InferRequest *r, Arena *a, const unsigned char *body, size_t len) {
    static TensorSpec specs[INFER_TENSORS];
    static Tensor     bound[INFER_TENSORS];
    static uint32_t   index[INFER_TENSORS];
    static bool       binary[INFER_TENSORS];
    uint32_t          n = 0;
    demand(r->n_inputs <= INFER_TENSORS && r->n_requested <= INFER_TENSORS);
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        specs[i] = (TensorSpec){.name = "x", .type = r->inputs[i].t};
        if (!r->raw_body) check_tensor(&r->inputs[i].t, a, body, len);
    }
    if (r->raw_body)
        specs[0].type = (Tensor){.dtype = (DType)(1 + len % 16), .rank = 2, .dims = {-1, 2}};
    ModelSignature port = {specs, specs, r->n_inputs, r->n_inputs};
    Err            e = infer_bind_inputs(&port, r, a, bound);
    if (e == ERR_OK && r->raw_body) check_tensor(&bound[0], a, body, len);
    (void)!infer_select_outputs(&port, r, index, binary, &n);
    if (!r->raw_body) check_round(r, a);
}

FUZZ_TARGET(data, size) {
    static unsigned char
                *body;  // of exactly the size, so that the sanitizer sees every step beyond it
    static Arena a;
    InferRequest r;
    if (size < 3 || size > 1 << 16) return 0;
    if (a.base == NULL) demand(arena_init(&a, 1 << 24) == ERR_OK);
    arena_rewind(&a, 0);
    size_t header = data[0] == 0   ? SIZE_MAX
                    : data[0] == 1 ? 0
                                   : (size_t)data[1] | (size_t)data[2] << 8;
    size_t len = size - 3;
    free(body);
    body = malloc(len > 0 ? len : 1);
    demand(body != NULL);
    memcpy(body, data + 3, len);
    Err e = infer_json_decode(body, len, header, &a, &r);
    demand(e == ERR_OK || e == ERR_PARSE || e == ERR_INVALID || e == ERR_LIMIT ||
           e == ERR_UNSUPPORTED);
    if (e != ERR_OK) return 0;
    if (header != 0) check_json(data + 3, header == SIZE_MAX ? len : header);
    check_request(&r, &a, body, len);
    return 0;
}

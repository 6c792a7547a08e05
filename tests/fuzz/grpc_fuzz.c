// Feeds bytes to the reader of inference messages; what it accepts holds what it promises, and is
// written again as an answer.
#include <stdint.h>
#include <stdlib.h>

#include "net/exchange.h"
#include "serve/tensor/classification.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t *from;
static size_t         from_len;
static Arena          arena;

static void within(const void *at, size_t len) {
    uintptr_t p = (uintptr_t)at, a = (uintptr_t)arena.base, b = (uintptr_t)from;
    bool      ours = p >= a && p + len <= a + arena.used;
    bool      theirs = p >= b && p + len <= b + from_len;
    if (len > 0 && !ours && !theirs) abort();
}

static void check_input(const InferTensor *in) {
    size_t bytes;
    within(in->name.at, in->name.len);
    if (tensor_measure(&in->t, &bytes) != ERR_OK) abort();
    within(in->t.data, bytes);
    if (bytes > 0 && in->t.dtype != DT_STR && (uintptr_t)in->t.data % TENSOR_ALIGN != 0) abort();
    const Str *s = in->t.data;
    for (int64_t i = 0; in->t.dtype == DT_STR && i < tensor_count(&in->t); i++)
        within(s[i].at, s[i].len);
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < bytes; i++) sum = (uint8_t)(sum + ((const uint8_t *)in->t.data)[i]);
}

static void check_requested(const InferRequestedOutput *r) {
    within(r->name.at, r->name.len);
    if (r->classes < 0) abort();
}

// The highest values of an input, as if it were an output with `classification`.
static void classify(const InferTensor *in) {
    TensorSpec spec = {.name = "y"};
    Tensor     t = in->t;
    size_t     left = 1 << 20;
    Err e = classification_apply(&spec, in->name.len % 2 == 0, (int64_t)in->name.len, &left, &arena,
                                 &t);
    if (e == ERR_OK && t.dtype != DT_STR) abort();
}

static void answer(const InferRequest *r) {
    static Tensor     tensors[INFER_TENSORS];
    static TensorSpec specs[INFER_TENSORS];
    struct iovec      pieces[EXCHANGE_PIECES];
    uint32_t          n = 0;
    InferResponse     a = {.model = "m", .version = "1", .id = r->id, .specs = specs};
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        tensors[i] = r->inputs[i].t;
        specs[i] = (TensorSpec){.name = "y"};
    }
    a.tensors = tensors, a.n = r->n_inputs;
    if (infer_proto_encode(&a, 1 << 20, &arena, pieces, &n) == ERR_OK && n == 0) abort();
    if (n >= EXCHANGE_PIECES) abort();
}

FUZZ_TARGET(data, size) {
    InferRequest r;
    from = data, from_len = size;
    if (arena_init(&arena, 1 << 24) != ERR_OK) abort();
    if (infer_proto_decode(data, size, &arena, &r) == ERR_OK) {
        within(r.model.at, r.model.len);
        within(r.version.at, r.version.len);
        if (r.timeout_us < -1 || r.priority < 0 || r.n_inputs > INFER_TENSORS) abort();
        for (uint32_t i = 0; i < r.n_inputs; i++) {
            check_input(&r.inputs[i]);
            classify(&r.inputs[i]);
        }
        for (uint32_t i = 0; i < r.n_requested; i++) check_requested(&r.requested[i]);
        answer(&r);
    }
    arena_finish(&arena);
    return 0;
}

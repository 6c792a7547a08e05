// Call: one operator with attributes and inputs, built by hand, for tests of inference and running.
#pragma once

#include <string.h>

#include "base/err.h"
#include "model/attr.h"
#include "model/graph.h"
#include "model/infer/infer.h"
#include "model/op.h"

enum { CALL_IN = 16, CALL_OUT = 4, CALL_ATTR = 16 };

typedef struct Call {
    Node          node;
    OpCall        op;
    Arena         arena;
    uint32_t      n_in, ids[CALL_IN];
    Attr          attrs[CALL_ATTR];
    Tensor        tensors[CALL_IN], out[CALL_OUT];
    const Tensor *in[CALL_IN];
} Call;

static inline void call_begin(Call *c, OpId op, int32_t version) {
    *c = (Call){.node = {.name = "test", .op = op, .version = version, .n_out = 1}};
    CHECK(arena_init(&c->arena, (size_t)1 << 28) == ERR_OK);
    c->node.attrs = c->attrs;
    c->node.in = c->node.out = c->ids;
    c->op = (OpCall){.node = &c->node, .in = c->in, .scratch = &c->arena, .keep = &c->arena};
}

static inline void call_finish(Call *c) { arena_finish(&c->arena); }

static inline void call_skip(Call *c) { c->ids[c->node.n_in++] = NO_VALUE; }

// Shape as 2, {3, 4}; data may be NULL.
static inline void call_in(Call *c, DType t, int32_t rank, const int64_t *dims, const void *data) {
    uint32_t i = c->node.n_in++;
    c->tensors[i] = tensor_of(t, rank, dims, NULL);
    c->tensors[i].data = (void *)(uintptr_t)data;
    c->in[i] = &c->tensors[i];
}
#define SHAPE(...)                                                                                 \
    (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {       \
        __VA_ARGS__                                                                                \
    }
#define SCALAR 0, NULL

static inline Attr *call_attr(Call *c, const char *name, AttrKind kind) {
    CHECK(c->node.n_attr < CALL_ATTR);
    Attr *a = &c->attrs[c->node.n_attr++];
    *a = (Attr){.name = name, .kind = kind};
    return a;
}

static inline void call_int(Call *c, const char *name, int64_t v) {
    call_attr(c, name, ATTR_INT)->v.i = v;
}

static inline void call_float(Call *c, const char *name, float v) {
    call_attr(c, name, ATTR_FLOAT)->v.f = v;
}

static inline void call_str(Call *c, const char *name, const char *v) {
    call_attr(c, name, ATTR_STRING)->v.s = (Str){v, strlen(v)};
}

static inline void call_ints(Call *c, const char *name, int32_t n, const int64_t *v) {
    Attr *a = call_attr(c, name, ATTR_INTS);
    a->n = (uint32_t)n;
    a->v.ints = v;
}

static inline void call_floats(Call *c, const char *name, int32_t n, const float *v) {
    Attr *a = call_attr(c, name, ATTR_FLOATS);
    a->n = (uint32_t)n;
    a->v.floats = v;
}

static inline void call_strings(Call *c, const char *name, int32_t n, const Str *v) {
    Attr *a = call_attr(c, name, ATTR_STRINGS);
    a->n = (uint32_t)n;
    a->v.strings = v;
}

static inline Err call_infer(Call *c) { return op_info(c->node.op)->infer(&c->op, c->out); }

static inline bool call_shape_is(const Tensor *t, int32_t rank, const int64_t *dims) {
    Tensor want = tensor_of(t->dtype, rank, dims, NULL);
    return tensor_same_shape(t, &want);
}

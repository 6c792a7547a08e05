// InferCase: shape inference of one operator, given inputs and attributes, for tests.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/infer/infer.h"

enum { INFER_MAX = 8 };

typedef struct InferCase {
    OpId     op;
    int32_t  version;
    Tensor   in[INFER_MAX];     // up to the first of DT_NONE; RANK_UNKNOWN: absent
    Attr     attrs[INFER_MAX];  // up to the first without a name
    uint32_t n_out;             // 0: one
} InferCase;

#define SHAPE(dtype, ...)                                                                          \
    tensor_of(dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
              (const int64_t[]){__VA_ARGS__}, NULL)
#define SCALAR(t) ((Tensor){.dtype = (t)})
#define LEFT_OUT  ((Tensor){.dtype = DT_F32, .rank = RANK_UNKNOWN})
#define INT(key, v_)                                                                               \
    { .name = (key), .kind = ATTR_INT, .v.i = (v_) }
#define REAL(key, v_)                                                                              \
    { .name = (key), .kind = ATTR_FLOAT, .v.f = (v_) }
#define TEXT(key, v_)                                                                              \
    {                                                                                              \
        .name = (key), .kind = ATTR_STRING, .v.s = {(v_), sizeof(v_) - 1 }                         \
    }
#define INTS(key, ...)                                                                             \
    {                                                                                              \
        .name = (key), .kind = ATTR_INTS, .n = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
        .v.ints = (const int64_t[]) {                                                              \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static inline Err infer_case(const InferCase *a, Tensor out[INFER_MAX]) {
    const Tensor *in[INFER_MAX] = {NULL};
    Node          n = {.name = "n", .op = a->op, .version = a->version, .attrs = a->attrs};
    for (; n.n_in < INFER_MAX && a->in[n.n_in].dtype != DT_NONE; n.n_in++)
        in[n.n_in] = a->in[n.n_in].rank == RANK_UNKNOWN ? NULL : &a->in[n.n_in];
    while (n.n_attr < INFER_MAX && a->attrs[n.n_attr].name != NULL) n.n_attr++;
    n.n_out = a->n_out > 0 ? a->n_out : 1;
    for (int i = 0; i < INFER_MAX; i++) out[i] = (Tensor){0};
    Arena scratch;
    if (arena_init(&scratch, (size_t)1 << 24) != ERR_OK) return ERR_LIMIT;
    OpCall c = {.node = &n, .in = in, .scratch = &scratch};
    Err    e = op_info(a->op)->infer(&c, out);
    arena_finish(&scratch);
    return e;
}

// Asserts the type and shape of the first output.
static inline void infer_case_gives(const InferCase *a, Tensor want) {
    Tensor out[INFER_MAX];
    if (infer_case(a, out) != ERR_OK) fail_msg("%s: %s", op_info(a->op)->name, err_why());
    assert_int_equal(out[0].dtype, want.dtype);
    assert_true(tensor_same_shape(&out[0], &want));
}

static inline void infer_case_fails(const InferCase *a, Err want) {
    Tensor out[INFER_MAX];
    assert_int_equal(infer_case(a, out), want);
}

// INFER_GIVES(SHAPE(...), OP, VERSION, .in = {...}, .attrs = {...}) in one line.
#define INFER_GIVES(want, op_, version_, ...)                                                      \
    infer_case_gives(&(InferCase){.op = (op_), .version = (version_), __VA_ARGS__}, want)
#define INFER_FAILS(want, op_, version_, ...)                                                      \
    infer_case_fails(&(InferCase){.op = (op_), .version = (version_), __VA_ARGS__}, want)

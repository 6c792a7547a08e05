// Onnx build: small ONNX files built field by field, valid or not.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/onnx/onnx.h"

#define BUILD static __attribute__((unused))

// A message under construction. Adding it to another, or reading it, frees it.
typedef struct Msg {
    uint8_t *at;
    size_t   n, cap;
} Msg;

BUILD void msg_raw(Msg *m, const void *from, size_t n) {
    if (m->n + n > m->cap) {
        m->cap = 2 * (m->n + n) + 64;
        m->at = realloc(m->at, m->cap);
        assert_non_null(m->at);
    }
    if (n > 0) memcpy(m->at + m->n, from, n);
    m->n += n;
}

BUILD void msg_varint(Msg *m, uint64_t v) {
    for (; v >= 0x80; v >>= 7) msg_raw(m, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
    msg_raw(m, &(uint8_t){(uint8_t)v}, 1);
}

BUILD void msg_int(Msg *m, uint32_t field, int64_t v) {
    msg_varint(m, field << 3);
    msg_varint(m, (uint64_t)v);
}

BUILD void msg_float(Msg *m, uint32_t field, float v) {
    msg_varint(m, field << 3 | 5);
    msg_raw(m, &v, sizeof v);
}

BUILD void msg_bytes(Msg *m, uint32_t field, const void *at, size_t n) {
    msg_varint(m, field << 3 | 2);
    msg_varint(m, n);
    msg_raw(m, at, n);
}

BUILD void msg_text(Msg *m, uint32_t field, const char *s) { msg_bytes(m, field, s, strlen(s)); }

BUILD void msg_sub(Msg *m, uint32_t field, Msg sub) {
    msg_bytes(m, field, sub.at, sub.n);
    free(sub.at);
}

// Adds space-separated names; "-" is the empty one.
BUILD void msg_names(Msg *m, uint32_t field, const char *names) {
    for (size_t n; *names != '\0'; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        msg_bytes(m, field, names, n == 1 && *names == '-' ? 0 : n);
    }
}

BUILD Msg node_of(const char *op, const char *in, const char *out) {
    Msg m = {0};
    msg_names(&m, 1, in);
    msg_names(&m, 2, out);
    msg_text(&m, 4, op);
    return m;
}

BUILD Msg attr_of(const char *name, int64_t kind) {
    Msg m = {0};
    msg_text(&m, 1, name);
    if (kind != 0) msg_int(&m, 20, kind);
    return m;
}

BUILD Msg int_attr(const char *name, int64_t v) {
    Msg m = attr_of(name, 2);
    msg_int(&m, 3, v);
    return m;
}

BUILD Msg graph_attr(const char *name, Msg graph) {
    Msg m = attr_of(name, 5);
    msg_sub(&m, 6, graph);
    return m;
}

BUILD Msg tensor_attr(const char *name, Msg tensor) {
    Msg m = attr_of(name, 4);
    msg_sub(&m, 5, tensor);
    return m;
}

BUILD Msg tensor_head(const char *name, int64_t dtype, int32_t rank, const int64_t *dims) {
    Msg m = {0};
    for (int32_t i = 0; i < rank; i++) msg_int(&m, 1, dims[i]);
    msg_int(&m, 2, dtype);
    msg_text(&m, 8, name);
    return m;
}

// A float tensor with one dimension.
BUILD Msg floats_of(const char *name, int64_t n, const float *v) {
    Msg m = tensor_head(name, 1, 1, &n);
    msg_bytes(&m, 9, v, (size_t)n * sizeof *v);
    return m;
}

BUILD Msg info_of(const char *name, int64_t dtype, int32_t rank, const int64_t *dims) {
    Msg shape = {0}, tensor = {0}, type = {0}, m = {0};
    for (int32_t i = 0; i < rank; i++) {
        Msg dim = {0};
        if (dims[i] >= 0) msg_int(&dim, 1, dims[i]);
        msg_sub(&shape, 1, dim);
    }
    msg_int(&tensor, 1, dtype);
    msg_sub(&tensor, 2, shape);
    msg_sub(&type, 1, tensor);
    msg_text(&m, 1, name);
    msg_sub(&m, 2, type);
    return m;
}

// Inputs and outputs are float lists; names are space-separated.
BUILD void graph_ends(Msg *graph, const char *in, const char *out) {
    static const int64_t dim = 2;
    const char          *lists[] = {in, out};
    for (int k = 0; k < 2; k++)
        for (size_t n; *lists[k] != '\0'; lists[k] += n + (lists[k][n] == ' ')) {
            char name[64] = "";
            n = strcspn(lists[k], " ");
            assert_true(n < sizeof name);
            memcpy(name, lists[k], n);
            msg_sub(graph, k == 0 ? 11 : 12, info_of(name, 1, 1, &dim));
        }
}

BUILD Msg import_of(const char *domain, int64_t version) {
    Msg m = {0};
    msg_text(&m, 1, domain);
    msg_int(&m, 2, version);
    return m;
}

BUILD Msg model_of(Msg graph, int64_t opset) {
    Msg m = {0};
    msg_int(&m, 1, 8);
    msg_sub(&m, 7, graph);
    if (opset != 0) msg_sub(&m, 8, import_of("", opset));
    return m;
}

BUILD Err read_msg(Msg m, const char *dir, Model *out) {
    char      path[256];
    OnnxPlace place = {.path = path};
    (void)snprintf(path, sizeof path, "%s/model.onnx", dir != NULL ? dir : "");
    Err e = onnx_read_bytes(m.at, m.n, "test", dir != NULL ? &place : NULL, out);
    free(m.at);
    return e;
}

// Asserts that reading fails with e and that the reason contains why.
BUILD void rejected(Msg m, Err e, const char *why) {
    Model out;
    Err   got = read_msg(m, NULL, &out);
    if (got != e) fail_msg("wanted '%s', got %s: %s", why, err_text(got), err_why());
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' is not in: %s", why, err_why());
    assert_null(out.arena.base);
    assert_null(out.graph);
}

BUILD void accepted(Msg m, Model *out) {
    if (read_msg(m, NULL, out) != ERR_OK) fail_msg("%s", err_why());
}

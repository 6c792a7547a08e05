// Small ONNX models written to disk.
#pragma once

#include "tests/model/onnx_build.h"

#include <stdio.h>

BUILD void write_bytes(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

// The path is valid until the sixteenth call after this one.
BUILD const char *write_model(const char *dir, const char *name, Msg m) {
    static char path[16][128];
    static int  next;
    char       *to = path[next++ % 16];
    (void)snprintf(to, sizeof path[0], "%s/%s.onnx", dir, name);
    write_bytes(to, m.at, m.n);
    free(m.at);
    return to;
}

// y = x + add, over float matrices of ? by `second`.
BUILD const char *write_adder(const char *dir, const char *name, float add, int64_t second) {
    Msg     graph = {0};
    int64_t dims[] = {-1, second};
    msg_sub(&graph, 1, node_of("Add", "x a", "y"));
    msg_sub(&graph, 5, floats_of("a", 1, &add));
    msg_sub(&graph, 11, info_of("x", 1, 2, dims));
    msg_sub(&graph, 12, info_of("y", 1, 2, dims));
    return write_model(dir, name, model_of(graph, 13));
}

BUILD Tensor matrix(int64_t rows, int64_t columns, float *data) {
    return tensor_of(DT_F32, 2, (int64_t[]){rows, columns}, data);
}

#include "kernel/ref_sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

typedef struct Entry {
    uint64_t key;
    int64_t  at;
} Entry;

static int compare(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

Err ref_topk(const Tensor *x, int32_t axis, bool largest, Arena *scratch, Tensor *values,
             Tensor *indices) {
    int64_t n = x->dims[axis], k = values->dims[axis], outer = 1, inner = 1;
    int64_t size = (int64_t)dtype_size(x->dtype);
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis) *(i < axis ? &outer : &inner) *= x->dims[i];
    Entry *line = arena_try_new(scratch, Entry, (size_t)n);
    if (line == NULL) return err_set(ERR_LIMIT, "no room to sort %lld elements", (long long)n);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            for (int64_t j = 0; j < n; j++) {
                uint64_t key = number_key(x, (o * n + j) * inner + i);
                line[j] = (Entry){largest ? ~key : key, j};
            }
            qsort(line, (size_t)n, sizeof *line, compare);
            for (int64_t j = 0; j < k; j++) {
                int64_t to = (o * k + j) * inner + i, from = (o * n + line[j].at) * inner + i;
                memcpy((char *)values->data + to * size, (const char *)x->data + from * size,
                       (size_t)size);
                if (indices != NULL) ((int64_t *)indices->data)[to] = line[j].at;
            }
        }
    return ERR_OK;
}

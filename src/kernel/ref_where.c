#include "kernel/ref_where.h"

#include <string.h>

#include "kernel/walk.h"

void ref_where(const Tensor *condition, const Tensor *a, const Tensor *b, Tensor *y) {
    const uint8_t *pick = condition->data;
    const size_t   size = dtype_size(y->dtype);
    Walk           w = walk_begin(y->rank, y->dims);
    walk_broadcast(&w, condition);
    walk_broadcast(&w, a);
    walk_broadcast(&w, b);
    for (; walk_more(&w); walk_next(&w)) {
        const bool  first = pick[w.off[0]] != 0;
        const char *from = first ? a->data : b->data;
        memcpy((char *)y->data + (size_t)w.at * size,
               from + (size_t)(first ? w.off[1] : w.off[2]) * size, size);
    }
}

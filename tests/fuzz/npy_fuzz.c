// Feeds bytes to the .npy reader; what it accepts must have room for what it promises.
#include <stdint.h>
#include <stdlib.h>

#include "base/npy.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena  a;
    Tensor t;
    size_t bytes;
    if (arena_init(&a, 1 << 22) != ERR_OK) abort();
    if (npy_read_bytes(data, size, &a, &t) == ERR_OK) {
        if (tensor_measure(&t, &bytes) != ERR_OK || !tensor_equal(&t, &t)) abort();
        if ((char *)t.data < a.base || bytes > (size_t)(a.base + a.used - (char *)t.data)) abort();
        for (int64_t i = 0; t.dtype == DT_STR && i < tensor_count(&t); i++) {
            const Str *s = (const Str *)t.data + i;
            if (s->at < a.base || s->len > (size_t)(a.base + a.used - s->at)) abort();
        }
    } else if (a.used != 0) {
        abort();
    }
    arena_finish(&a);
    return 0;
}

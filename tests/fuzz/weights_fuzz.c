// Feeds bytes to the reader of weights; what it accepts is sound, and reads the same once saved.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "learn/weights.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena   a;
    Weights w;
    if (arena_init(&a, (size_t)1 << 24) != ERR_OK) abort();
    if (weights_parse("fuzz", data, size, "", 0, &a, &w) == ERR_OK) {
        if (!block_finite(w.block) || w.block.n > size / 4) abort();
        if (strlen(w.facts) + 4 * w.block.n >= size) abort();
        const char *value = weights_fact(&w, "network", &a);
        if (value != NULL && strstr(w.facts, "network=") == NULL) abort();
        if (weights_parse("fuzz", data, size, "", w.block.n, &a, &w) != ERR_OK) abort();
    }
    arena_finish(&a);
    return 0;
}

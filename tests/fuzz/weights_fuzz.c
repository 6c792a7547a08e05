// Feeds bytes to the reader of weights; what it accepts is sound, and reads the same once saved.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "learn/weights_file.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena       a;
    WeightsFile w;
    if (arena_init(&a, (size_t)1 << 24) != ERR_OK) abort();
    if (weights_parse("fuzz", data, size, "", 0, &a, &w) == ERR_OK) {
        if (!float_vec_finite(w.params) || w.params.n > size / 4) abort();
        if (strlen(w.facts) + 4 * w.params.n >= size) abort();
        const char *value = weights_metadata(&w, "network", &a);
        if (value != NULL && strstr(w.facts, "network=") == NULL) abort();
        if (weights_parse("fuzz", data, size, "", w.params.n, &a, &w) != ERR_OK) abort();
    }
    arena_finish(&a);
    return 0;
}

// Feeds JSON to the reader of models; what it accepts must come back the same when written.
#include <stdint.h>
#include <stdlib.h>

#include "node/node_model.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    json_t   *doc = NULL;
    Arena     a;
    NodeModel m, again;
    if (json_parse("fuzz", (const char *)data, size, &doc) != ERR_OK) return 0;
    if (arena_init(&a, (size_t)1 << 32) != ERR_OK) abort();
    if (model_from_json(doc, &a, &m) == ERR_OK) {
        json_t *first = model_to_json(&m), *second;
        if (first == NULL || model_from_json(first, &a, &again) != ERR_OK) abort();
        second = model_to_json(&again);
        if (second == NULL || !json_equal(first, second)) abort();
        json_decref(first);
        json_decref(second);
    }
    arena_finish(&a);
    json_decref(doc);
    return 0;
}

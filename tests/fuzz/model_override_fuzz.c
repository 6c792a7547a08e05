// Feeds text to the reader of the configuration that a client gives when it loads a model; what it
// accepts is in range and accepted again, what it refuses is explained.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "serve/models/model_override.h"
#include "tests/fuzz/fuzz.h"

static void inspect(const ModelOverride *o) {
    char          text[64];
    ModelOverride again = {0};
    CHECK(o->max_batch >= 0 && o->max_batch <= 65536);
    CHECK(o->has_max_batch || o->max_batch == 0);
    CHECK(o->has_weights || o->weights == WEIGHTS_FP32);
    CHECK(o->weights < WEIGHT_WIDTHS);
    if (!o->has_max_batch) return;
    int n = snprintf(text, sizeof text, "{\"max_batch_size\":%d}", o->max_batch);
    CHECK(model_override_parse((Str){text, (size_t)n}, &again) == ERR_OK);
    CHECK(again.has_max_batch && again.max_batch == o->max_batch);
}

FUZZ_TARGET(data, size) {
    ModelOverride o = {0};
    if (model_override_parse((Str){(const char *)data, size}, &o) == ERR_OK)
        inspect(&o);
    else
        CHECK(strstr(err_why(), "config") != NULL);
    return 0;
}

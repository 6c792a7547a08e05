// Feeds text to the reader of Alibaba's pods.
#include "trace_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    trace_fuzz_one("openb", data, size);
    return 0;
}

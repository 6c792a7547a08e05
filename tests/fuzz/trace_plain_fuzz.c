// Feeds text to the reader of our own format, and to the one that guesses.
#include "trace_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    trace_fuzz_one("plain", data, size);
    trace_fuzz_one("auto", data, size);
    return 0;
}

// Feeds text to the readers of logs with dates.
#include "trace_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    trace_fuzz_one("philly", data, size);
    trace_fuzz_one("helios", data, size);
    return 0;
}

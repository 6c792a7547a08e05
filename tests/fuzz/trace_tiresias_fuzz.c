// Feeds text to the readers of Tiresias' table of jobs and its kin.
#include "trace_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    trace_fuzz_one("tiresias", data, size);
    trace_fuzz_one("muri", data, size);
    trace_fuzz_one("chronus", data, size);
    trace_fuzz_one("lucid", data, size);
    return 0;
}

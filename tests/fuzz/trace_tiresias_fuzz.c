// Feeds text to the readers of Tiresias' table of jobs and its kin.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("tiresias", data, size);
    trace_fuzz_one("muri", data, size);
    trace_fuzz_one("chronus", data, size);
    trace_fuzz_one("lucid", data, size);
    return 0;
}

// Feeds text to the readers of logs with dates.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("philly", data, size);
    trace_fuzz_one("helios", data, size);
    return 0;
}

// Feeds text to the readers of traces that count iterations.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("gavel", data, size);
    trace_fuzz_one("synergy", data, size);
    trace_fuzz_one("pollux", data, size);
    return 0;
}

// Feeds JSON lines to the reader of the scheduler's records as a trace.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("kube-records", data, size);
    return 0;
}

// Feeds text to the reader of Alibaba's pods.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("openb", data, size);
    return 0;
}

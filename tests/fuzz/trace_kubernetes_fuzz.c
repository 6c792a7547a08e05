// Feeds JSON to the reader of Kubernetes' pods and events.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("kubernetes", data, size);
    return 0;
}

// Feeds text to the reader of our own format, and to the one that guesses.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("plain", data, size);
    trace_fuzz_one("auto", data, size);
    return 0;
}

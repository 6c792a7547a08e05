// Feeds text to the reader of Slurm's accounting.
#include "trace_fuzz.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    trace_fuzz_one("sacct", data, size);
    return 0;
}

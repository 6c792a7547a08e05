// Fuzz target: in the fuzz build, libFuzzer's entry point; elsewhere an entry of the program that
// replays corpora.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int FuzzTarget(const uint8_t *data, size_t size);

#ifdef FUZZ_BUILD
FuzzTarget LLVMFuzzerTestOneInput;
#define FUZZ_TARGET(data, size) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#else
// Called before main() by every FUZZ_TARGET; file is its __FILE__.
void fuzz_register(const char *file, FuzzTarget *run);
#define FUZZ_TARGET(data, size)                                                                    \
    static FuzzTarget                        fuzz_target;                                          \
    __attribute__((constructor)) static void fuzz_target_register(void) {                          \
        fuzz_register(__FILE__, fuzz_target);                                                      \
    }                                                                                              \
    static int fuzz_target(const uint8_t *data, size_t size)
#endif

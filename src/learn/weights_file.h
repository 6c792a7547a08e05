// WeightsFile: the numbers of a network in a file, with facts about it, and refused when anything
// is amiss.
//
// "cotenant weights 1\n", the length of the facts (4 bytes), how many floats (8), the facts as
// lines "key=value\n", the floats, CRC-32 of all before (4): little-endian throughout.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "learn/float_vec.h"

typedef struct WeightsFile {
    const char *facts;  // ends with '\0'
    FloatVec    params;
} WeightsFile;

// `facts`: lines "key=value\n"; keys are of letters, digits, - and _. The file is replaced at once.
MUST_USE Err weights_save(const char *path, const char *facts, FloatVec params);

// `expect`: lines "key=value\n" that the file must have, among others. n: how many floats; 0: any.
MUST_USE Err weights_load(const char *path, const char *expect, size_t n, Arena *a,
                          WeightsFile *out);
MUST_USE Err weights_parse(const char *name, const void *bytes, size_t len, const char *expect,
                           size_t n, Arena *a, WeightsFile *out);

// The value of a fact, copied into the arena; NULL: there is none.
const char *weights_metadata(const WeightsFile *w, const char *key, Arena *a);

// WeightsFile: network parameters with metadata in a checksummed file.
//
// Format, little-endian: "cotenant weights 1\n", bytes of metadata (4), number of floats (8),
// metadata as lines "key=value\n", the floats, CRC-32 of everything before (4).
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "learn/float_vec.h"

typedef struct WeightsFile {
    const char *facts;  // metadata, '\0'-terminated
    FloatVec    params;
} WeightsFile;

// `facts`: metadata lines "key=value\n"; keys of letters, digits, - and _. Replaces path
// atomically.
MUST_USE Err weights_save(const char *path, const char *facts, FloatVec params);
// Whether weights_save may replace path: it does not exist, is empty or a weights file.
MUST_USE Err weights_check_target(const char *path);

// `expect`: metadata lines that the file must contain. n: expected floats; 0: any.
MUST_USE Err weights_load(const char *path, const char *expect, size_t n, Arena *a,
                          WeightsFile *out);
MUST_USE Err weights_parse(const char *name, const void *bytes, size_t len, const char *expect,
                           size_t n, Arena *a, WeightsFile *out);

// A metadata value, copied into the arena; NULL if absent.
const char *weights_metadata(const WeightsFile *w, const char *key, Arena *a);

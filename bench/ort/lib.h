// Lib: functions of ONNX Runtime's shared library, by their slots in its API table.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct Lib {
    const char *version;  // the library's
#define X(name, place, result, ...) result (*name)(__VA_ARGS__);
#include "bench/ort/slot.def"
#undef X
} Lib;

MUST_USE Err lib_open(const char *path, Lib *lib);  // stays loaded until the process ends

// Converts and releases the status of a call; NULL is success.
MUST_USE Err lib_check(const Lib *lib, void *status, const char *doing);

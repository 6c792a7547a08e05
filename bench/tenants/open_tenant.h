// OpenTenant: a network with an open length in the live engine, as the server runs it: a tenant for
// each rounded length and a program for each length, all with the same packed weights.
#pragma once

#include "bench/ort/network.h"
#include "node/prepared_shape.h"

enum { OPEN_LENGTHS = 512, OPEN_ROUNDED = 20 };  // at most

typedef struct OpenLength {
    uint32_t      rounded;   // its tenant: an index into OpenTenant.rounded
    bool          own;       // has a program of its own
    PreparedShape prepared;  // if it has
    Tensor       *inputs;
} OpenLength;

typedef struct OpenTenant {
    PreparedModel rounded[OPEN_ROUNDED];  // the first, for length 1, is measured; others are scaled
    uint32_t      n_rounded;
    OpenLength   *lengths;  // [longest + 1]
    Arena         scratch;  // of compilation
} OpenTenant;

// Compiles all lengths up to the longest; inputs lie in the arena.
MUST_USE Err open_tenant_make(OpenTenant *t, const char *file, int64_t longest, Host *h,
                              const PrepareOptions *o, Arena *a);

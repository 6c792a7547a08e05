// Shipped: weights that are part of the program, data/policies, or of a file in their place.
#pragma once

#include "learn/weights.h"

typedef struct ShippedFile {
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} ShippedFile;

extern const ShippedFile shipped_files[];  // ends with an entry of zeros

// what: a path, or "" for those that came along under the policy's name. tier: chip or cluster, for
// the remedy when it fails. expect: see weights_load.
MUST_USE Err shipped_load(const char *what, const char *policy, const char *tier,
                          const char *expect, Arena *a, Weights *out);

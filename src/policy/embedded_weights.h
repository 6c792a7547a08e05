// Shipped: weights that are part of the program, data/policies, or of a file in their place.
#pragma once

#include "learn/weights_file.h"

typedef struct EmbeddedWeights {
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} EmbeddedWeights;

extern const EmbeddedWeights embedded_weights[];  // ends with an entry of zeros

// what: a path, or "" for those that came along under the policy's name. tier: chip or cluster, for
// the remedy when it fails. expect: see weights_load.
MUST_USE Err embedded_weights_load(const char *what, const char *policy, const char *tier,
                                   const char *expect, Arena *a, WeightsFile *out);

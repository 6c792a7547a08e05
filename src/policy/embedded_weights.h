// EmbeddedWeights: the trained weights in data/policies, compiled into the program.
#pragma once

#include "learn/weights_file.h"

typedef struct EmbeddedWeights {
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} EmbeddedWeights;

extern const EmbeddedWeights embedded_weights[];  // terminated by a zeroed entry

// Loads weights from a path, or the embedded ones of the policy if path is "". tier: "chip" or
// "cluster", for error messages. expect: see weights_load.
MUST_USE Err embedded_weights_load(const char *path, const char *policy, const char *tier,
                                   const char *expect, Arena *a, WeightsFile *out);

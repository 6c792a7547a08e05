// PackedWeights: the weights of a model in the forms that kernels read, shared by all programs that
// are compiled from it, whatever their input shapes.
//
// A form is made once, by the first program that needs it, and lives as long as the model. Programs
// may be compiled on several threads at a time.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/arena.h"

enum { PACK_SOURCES = 4, PACK_SIZES = 16, PACK_CHAINS = 256 };

// Values that are part of a key, such as a scale per channel.
typedef struct PackFactors {
    const float *at;
    uint32_t     n;
} PackFactors;

typedef struct PackKey {
    const void *sources[PACK_SOURCES];  // data of the constants it is made from
    const char *form;                   // what it is: "gemm", "conv", ...
    uint32_t    sizes[PACK_SIZES];      // all that the form depends on beside them
    float       alpha;
    PackFactors factors[2];  // compared by value; at NULL: none
} PackKey;

typedef struct PackEntry PackEntry;

typedef struct PackedWeights {
    const Arena    *model;  // of the model: only constants in it are shared
    pthread_mutex_t lock;
    Arena           arena;  // holds the entries and their data
    PackEntry      *chains[PACK_CHAINS];
    uint32_t        n;
} PackedWeights;

// The model's arena must outlive it.
MUST_USE Err packed_weights_create(PackedWeights **out, const Arena *model);
void         packed_weights_destroy(PackedWeights *p);  // accepts NULL; no program uses it any more

// Whether constants of that address are the model's, and so the same for all shapes.
bool packed_weights_shares(const PackedWeights *p, const void *source);
// Whether kernels may read these bytes, and `slack` bytes beyond, where the model has them.
bool packed_weights_in_place(const PackedWeights *p, const void *source, size_t bytes,
                             size_t slack);

// Finds a form. If it is new (*made false), *out is zeroed memory for it, which the caller fills
// before packed_weights_made(); other threads wait meanwhile. All sources are shared.
MUST_USE Err packed_weights_find(PackedWeights *p, const PackKey *key, size_t bytes, void **out,
                                 bool *made);
void         packed_weights_made(PackedWeights *p);

size_t packed_weights_bytes(PackedWeights *p);  // of all forms

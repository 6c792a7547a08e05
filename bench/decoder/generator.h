// Generator: an engine that generates tokens from a decoder's file, greedily, with caches of fixed
// capacity.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "model/model.h"

enum { GENERATOR_MAX_IO = 128 };

// Inputs and outputs of a decoder as onnxruntime-genai names them.
typedef struct DecoderFile {
    const char *path;
    Model       model;
    uint32_t    ids, mask, logits;  // positions among inputs and outputs
    uint32_t    n_caches;
    uint32_t    past[GENERATOR_MAX_IO], present[GENERATOR_MAX_IO];
    int64_t     words, capacity;
} DecoderFile;

MUST_USE Err decoder_file_read(DecoderFile *f, const char *path);

typedef struct Generator {
    const char *name;
    Err (*open)(const DecoderFile *f, const char *lib, int threads, Arena *a, void **state);
    // Logits of the token at a position; the caches keep it.
    Err (*step)(void *state, int64_t token, int64_t position, const float **logits);
    void (*close)(void *state);
} Generator;

extern const Generator generator_ours, generator_ort;

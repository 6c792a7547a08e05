// Pbtxt: the fields of a model's config.pbtxt that have an effect here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

typedef enum PbtxtPolicy {
    PBTXT_LATEST_VERSIONS,
    PBTXT_ALL_VERSIONS,
    PBTXT_SPECIFIC_VERSIONS
} PbtxtPolicy;

typedef enum PbtxtFormat { PBTXT_FORMAT_NONE, PBTXT_FORMAT_NHWC, PBTXT_FORMAT_NCHW } PbtxtFormat;

typedef struct PbtxtTensor {
    const char *name;
    DType       dtype;              // DT_NONE: not given
    int32_t     rank;               // RANK_UNKNOWN: not given
    int64_t dims[TENSOR_MAX_RANK];  // -1: open; without the batch dimension if max_batch_size > 0
    bool    optional;
    bool    reshaped;  // clients see dims, the model has shape
    int32_t shape_rank;
    int64_t shape[TENSOR_MAX_RANK];
    PbtxtFormat format;  // of an input: order of an image's dimensions, for clients
    const char *labels;  // of an output: file of class names beside config.pbtxt; NULL: none
    uint32_t    line;
} PbtxtTensor;

typedef struct PbtxtSet {  // a value for one of TENANT_SETTINGS
    const char *key, *value;
    uint32_t    line;
} PbtxtSet;

typedef struct Pbtxt {
    const char  *name, *platform, *backend;  // "": not given
    const char  *filename;                   // default_model_filename; "": not given
    int64_t      max_batch_size;             // 0: not given
    PbtxtTensor *inputs, *outputs;
    uint32_t     n_inputs, n_outputs;
    PbtxtPolicy  policy;
    uint64_t    *versions;  // of PBTXT_SPECIFIC_VERSIONS
    uint32_t     n_versions;
    PbtxtSet    *sets;
    uint32_t     n_sets;
    const char **warnings;  // with file and line
    uint32_t     n_warnings;
} Pbtxt;

enum { PBTXT_BYTES = 1 << 20 };  // largest file

// ERR_CONFIG names file, line and column. strict: unknown fields are errors, not warnings.
MUST_USE Err pbtxt_read(const char *path, bool strict, Arena *a, Pbtxt *out);
MUST_USE Err pbtxt_parse(const char *name, const char *text, size_t len, bool strict, Arena *a,
                         Pbtxt *out);

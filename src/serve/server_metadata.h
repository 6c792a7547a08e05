// Card: what a server says of itself and of its models, the same in every protocol.
#pragma once

#include "serve/models/registry.h"

enum { METADATA_ROWS = 6, METADATA_VALUE = 64 };

typedef struct MetadataRow {
    const char *key;
    char        value[METADATA_VALUE];
} MetadataRow;

extern const char *const metadata_extensions[];  // NULL-terminated
extern const char *const metadata_platform;      // of metadata
extern const char *const metadata_config_platform, *const metadata_backend;

const char *metadata_state(ModelState s);  // the protocol's word
// Largest batch that Triton's configuration tells; 0: the first dimension is no batch, and shapes
// are told whole.
int32_t metadata_max_batch(const ModelInfo *s);
// The word of Triton's configuration for a type: "TYPE_FP32", and its number.
const char *metadata_triton_type(DType t, uint32_t *number);
void        metadata_qos(const ModelInfo *s, MetadataRow rows[METADATA_ROWS]);

// Server metadata: what server and models report about themselves, the same over REST and gRPC.
#pragma once

#include "serve/models/registry.h"

#define UPLOAD_REJECTED "models and settings cannot be uploaded: they come from the server's files"

enum { METADATA_ROWS = 6, METADATA_VALUE = 64 };

typedef struct MetadataRow {
    const char *key;
    char        value[METADATA_VALUE];
} MetadataRow;

extern const char *const metadata_extensions[];  // NULL-terminated
extern const char *const metadata_platform;      // in model metadata
extern const char *const metadata_config_platform, *const metadata_backend;

const char *metadata_state(ModelState s);  // the protocol's name of a state
// max_batch_size of Triton's configuration; 0: the first dimension is not a batch, and dims include
// it.
int32_t metadata_max_batch(const ModelInfo *s);
// Triton's name of a data type, such as "TYPE_FP32", and its number.
const char *metadata_triton_type(DType t, uint32_t *number);
void        metadata_qos(const ModelInfo *s, MetadataRow rows[METADATA_ROWS]);

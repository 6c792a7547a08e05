// Server metadata: what server and models report about themselves, the same over REST and gRPC.
#pragma once

#include "serve/models/pbtxt.h"
#include "serve/models/registry.h"

#define UPLOAD_REJECTED        "model files cannot be uploaded: they come from the server's folders"
#define SHARED_MEMORY_REJECTED "shared memory is not supported: send tensors in requests"

enum { METADATA_ROWS = 7, METADATA_VALUE = 64, METADATA_UNKNOWN = 256 };

typedef struct MetadataRow {
    const char *key;
    char        value[METADATA_VALUE];
} MetadataRow;

extern const char *const metadata_extensions[];  // NULL-terminated
extern const char *const metadata_platform;      // in model metadata
extern const char *const metadata_config_platform, *const metadata_backend;

// Message for a model or version that the server does not have, in the words that NVIDIA's clients
// look for. version.len 0: none. Returns out.
const char *metadata_unknown(Str name, Str version, char out[METADATA_UNKNOWN]);

const char *metadata_state(ModelState s);  // the protocol's name of a state
// max_batch_size of Triton's configuration; 0: the first dimension is not a batch, and dims include
// it.
int32_t metadata_max_batch(const ModelInfo *s);
// Triton's name of a data type, such as "TYPE_FP32", and its number.
const char *metadata_triton_type(DType t, uint32_t *number);
// What config.pbtxt declares of an input or output, by its name; NULL: nothing.
const PbtxtTensor *metadata_declared(const ModelInfo *s, bool input, const char *name);
// Triton's name of the order of an input's dimensions, such as "FORMAT_NCHW", and its number.
const char *metadata_format(const ModelInfo *s, const char *input, uint32_t *number);
// The policy that selected the served versions; false: the model is a file without versions.
bool        metadata_version_policy(const ModelInfo *s, PbtxtPolicy *out);
const char *metadata_model_file(const ModelInfo *s);  // its name, without a folder

typedef struct MetadataSetting {  // of Triton's trace and log extensions, which are read-only here
    const char *key, *text;       // text NULL: number
    uint32_t    number;
    bool        is_flag;  // number is 0 or 1 and means false or true
} MetadataSetting;

enum { METADATA_TRACE = 6, METADATA_LOG = 6 };
#define SETTINGS_READ_ONLY                                                                         \
    "settings cannot be changed by clients: they come from the server's files"

void metadata_trace_settings(MetadataSetting rows[METADATA_TRACE]);
void metadata_log_settings(const ServeSettings *set, MetadataSetting rows[METADATA_LOG]);
void metadata_qos(const ModelInfo *s, MetadataRow rows[METADATA_ROWS]);

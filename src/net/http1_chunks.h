// Http1Chunks: the body of a request that comes in chunks, found piece by piece.
#pragma once

#include "base/tensor.h"

typedef enum Http1ChunkState {
    HTTP1_SIZE,
    HTTP1_EXTENSION,  // ;name or ;name=value
    HTTP1_EXTENSION_VALUE,
    HTTP1_SIZE_LF,
    HTTP1_DATA,
    HTTP1_DATA_CR,
    HTTP1_DATA_LF,
    HTTP1_TRAILER,
    HTTP1_TRAILER_LF,
    HTTP1_LAST_LF,
    HTTP1_CHUNKS_END,
} Http1ChunkState;

typedef struct Http1Chunks {  // zeroed: at the first chunk
    Http1ChunkState state;
    uint64_t        left;    // bytes of this chunk
    uint32_t        digits;  // of its size
    uint32_t        column;  // of an extension's word, of a trailer's line
    bool            value;   // past a trailer's colon
    size_t          extra;   // bytes that are no data, since there was some
} Http1Chunks;

// Goes on until data was found, at the end, or through all of it. Bytes that were used, of which
// *data is the last part; false: this is no body in chunks, or it has more than 16 KiB besides.
bool http1_chunks(Http1Chunks *c, const char *at, size_t len, size_t *used, Str *data);

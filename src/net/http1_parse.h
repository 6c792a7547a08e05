// Http1Head: a strict parser of HTTP/1.1 request heads: ambiguous heads are
// rejected.
#pragma once

#include "base/tensor.h"
#include "net/exchange.h"
#include "net/inflate.h"

// State of the search for the end of a head. Zeroed: at the beginning.
typedef struct Http1Scan {
    size_t   at, line;  // next byte; start of its line
    size_t   first;     // end of the request line
    uint32_t lines;     // complete lines, the request line included
    uint32_t spaces;    // in the request line
    bool     value;     // after the colon
} Http1Scan;

typedef struct Http1Head {
    Str             method, path, query;
    ExchangeHeader *headers;  // [most_headers], by the caller
    uint32_t        n_headers, most_headers;
    uint64_t        length;  // of the body; UINT64_MAX: not given
    bool            chunked, keep_alive, expects;
    bool            old;  // HTTP/1.0
    InflateKind     packing;
} Http1Head;

bool http1_token(unsigned char c);  // a byte allowed in tokens

// The status to reject with, or 0; then *end is the end of the head, 0 if it is incomplete.
// *why is the message for the client.
uint32_t http1_scan(Http1Scan *s, const char *at, size_t len, size_t *end, const char **why);

// Parses the head that http1_scan found. Header names become lower case in place.
uint32_t http1_head_read(Http1Head *h, char *at, size_t len, const char **why);

// Http1Chunks: an incremental parser of chunked request bodies.

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
    bool            value;   // after a trailer's colon
    size_t          extra;   // bytes other than data since the last data
} Http1Chunks;

// Stops at data, at the end of the body, or at the end of the input. Returns bytes consumed, of
// which *data is the last part; false: malformed, or more than 16 KiB that are no data.
bool http1_chunks(Http1Chunks *c, const char *at, size_t len, size_t *used, Str *data);

// ClientReading: an answer of HTTP/1.1, taken in pieces as they come, strictly and within bounds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum ClientReadingStep {
    READING_HEAD,
    READING_LENGTH,  // a body of known length
    READING_CLOSE,   // a body that ends with the connection
    READING_SIZE,    // of a chunk: digits
    READING_EXTRA,   // of a chunk: what follows the digits
    READING_SIZE_END,
    READING_CHUNK,
    READING_CHUNK_CR,
    READING_CHUNK_LF,
    READING_TRAILER,
    READING_DONE
} ClientReadingStep;

typedef struct ClientBody {  // bytes from malloc, kept for the next answer
    unsigned char *at;
    size_t         kept, room, keep;
    size_t         len, most;  // bytes that came; more than most are refused
} ClientBody;

typedef struct ClientReading {  // zeroed, then client_reading_begin for each answer
    ClientReadingStep step;
    uint32_t          status;
    bool              close;     // the connection ends with this answer
    bool              begun;     // a byte of it came
    size_t            json_len;  // Inference-Header-Content-Length; SIZE_MAX: none
    ClientBody        body;
    uint64_t          left;  // of the body or chunk; digits of a size so far
    uint32_t          digits;
    char             *head;  // from malloc
    size_t            head_len, head_most;
} ClientReading;

void client_reading_begin(ClientReading *r, size_t keep);
void client_reading_finish(ClientReading *r);  // accepts a zeroed one
// Takes bytes up to the end of the answer: step is READING_DONE then. ERR_PARSE, ERR_LIMIT.
MUST_USE Err client_reading_take(ClientReading *r, const char *bytes, size_t len, size_t *used);
// The server has closed the connection. ERR_PARSE unless that ends the answer.
MUST_USE Err client_reading_end(ClientReading *r);

void         client_body_begin(ClientBody *b, size_t keep);
MUST_USE Err client_body_add(ClientBody *b, const void *bytes, size_t len);

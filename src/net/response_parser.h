// ResponseParser: an incremental, strict, bounded parser of HTTP/1.1 responses.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum ClientReadingStep {
    RESPONSE_HEAD,
    RESPONSE_LENGTH,  // a body of known length
    RESPONSE_CLOSE,   // a body that ends with the connection
    RESPONSE_SIZE,    // chunk size: digits
    RESPONSE_EXTRA,   // chunk size: extensions
    RESPONSE_SIZE_END,
    RESPONSE_CHUNK,
    RESPONSE_CHUNK_CR,
    RESPONSE_CHUNK_LF,
    RESPONSE_TRAILER,
    RESPONSE_DONE
} ClientReadingStep;

typedef struct ResponseBody {  // bytes from malloc, kept for the next answer
    unsigned char *at;
    size_t         kept, room, keep;
    size_t         len, most;  // bytes received; more than most is an error
} ResponseBody;

typedef struct ResponseParser {  // zeroed, then response_parser_begin for each response
    ClientReadingStep step;
    uint32_t          status;
    bool              close;     // the connection closes after this response
    bool              begun;     // a byte was received
    size_t            json_len;  // Inference-Header-Content-Length; SIZE_MAX: none
    ResponseBody      body;
    uint64_t          left;  // bytes left of the body or chunk; chunk size read so far
    uint32_t          digits;
    char             *head;  // from malloc
    size_t            head_len, head_most;
} ResponseParser;

void response_parser_begin(ResponseParser *r, size_t keep);
void response_parser_finish(ResponseParser *r);  // accepts a zeroed one
// Consumes bytes up to the end of the response: step is RESPONSE_DONE then. ERR_PARSE, ERR_LIMIT.
MUST_USE Err response_parser_take(ResponseParser *r, const char *bytes, size_t len, size_t *used);
// The server closed the connection: ERR_PARSE unless that ends the response.
MUST_USE Err response_parser_end(ResponseParser *r);

void         response_body_begin(ResponseBody *b, size_t keep);
MUST_USE Err response_body_add(ResponseBody *b, const void *bytes, size_t len);

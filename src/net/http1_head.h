// Http1Head: the head of a request over HTTP/1.1, read strictly: what can be read in two ways is
// refused.
#pragma once

#include "net/exchange.h"
#include "net/inflate.h"

// How far the search for a head's end has got. Zeroed: at the beginning.
typedef struct Http1Scan {
    size_t   at, line;  // the next byte; where its line began
    size_t   first;     // where the request line ended
    uint32_t lines;     // complete ones, the request line among them
    uint32_t spaces;    // in the request line
    bool     value;     // past the colon
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

bool http1_token(unsigned char c);  // a byte that words may have

// A status to refuse with, or 0, and then *end is where the head ends, 0: not there yet.
// *why is what to tell the client.
uint32_t http1_scan(Http1Scan *s, const char *at, size_t len, size_t *end, const char **why);

// The head that http1_scan found. Names of headers are put in lower case where they stand.
uint32_t http1_head_read(Http1Head *h, char *at, size_t len, const char **why);

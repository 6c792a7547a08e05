// Http2Filter: takes RST_STREAM frames for streams that were never opened out of what a client
// sends.
//
// Some gRPC clients (grpcio 1.51) cancel a call before they have sent its headers. nghttp2 ends the
// whole connection then, with all other calls on it, as RFC 9113 allows; there is nothing to
// cancel.
#pragma once

#include <stdint.h>
#include <stddef.h>

enum { HTTP2_FILTER_HELD = 13 };  // bytes of a frame that may be one of these

typedef struct Http2Filter {  // zeroed: before the preface
    uint32_t preface;         // bytes of it seen
    uint32_t skip;            // bytes of the present frame's payload still to pass
    uint32_t newest;          // highest stream that the client opened
    uint32_t n_held;
    uint32_t dropped;  // frames
    uint8_t  held[HTTP2_FILTER_HELD];
} Http2Filter;

// Filters n bytes into out, which has room for HTTP2_FILTER_HELD more; returns how many there are.
size_t http2_filter(Http2Filter *f, const uint8_t *at, size_t n, uint8_t *out);

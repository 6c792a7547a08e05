// Http2 internals: an HTTP/2 connection and its streams.
#pragma once

#include <nghttp2/nghttp2.h>

#include "net/http2_filter.h"
#include "net/stream.h"

enum {
    HTTP2_HEADERS = 64,  // of a call
    HTTP2_TEXT = 960,    // bytes of headers that need no memory of their own
    HTTP2_TRAIL = 192,   // the same for trailers
    HTTP2_PIECES = 64,   // written at once
    HTTP2_SMALL = 2048,  // bytes of frames' heads among them
    HTTP2_TRAILERS = 4
};

typedef struct Http2 Http2;

typedef struct Http2Call {
    Exchange          x;
    Http2            *h;
    Slab             *own;  // the slab that holds this record
    struct Http2Call *next,
        *prev;  // in the connection's list, or in the list of calls being flushed
    int32_t id;
    bool    open;      // between head() and ended()
    bool    complete;  // the request is complete
    bool    grpc;
    bool    refused;  // rejected: the body is discarded
    bool    bad;      // more headers than allowed
    bool    done;     // the whole response was queued
    bool    lent;     // its body outlives it
    bool    begun;    // the response head was sent, and parts of the body
    bool    last;     // this part is the last
    bool    part;     // a whole part is queued, until `leaves`
    bool    asked;    // request() was called and has not answered
    bool    waits;    // complete, but the client has to read earlier responses first
    bool    doomed;   // to be reset
    size_t  owed;     // consumed bytes not yet credited to the client's window

    ExchangeHeader headers[HTTP2_HEADERS];
    char           small_text[HTTP2_TEXT];
    char          *text;
    size_t         text_len, text_room, list_bytes;
    Slab          *more_text;

    ExchangeBody body;
    SlabPool    *slabs, *pages;
    Slab        *slab;
    size_t       from;  // start of the body
    uint32_t     tiny;  // tiny DATA frames

    struct iovec  *pieces, fault;
    uint32_t       n_pieces, piece;  // piece: the next to go
    size_t         offset;           // in that one
    ExchangeHeader trailers[HTTP2_TRAILERS];
    uint32_t       n_trailers;
    char           small_trail[HTTP2_TRAIL];
    Slab          *more_trail;
    TimeNs         moved;   // when a byte of the response was last written
    TimeNs         answer;  // when the response, or its part, was made
    uint64_t       mark;    // bytes that the connection had written then
    size_t         held;    // bytes of the response
    size_t         sent;    // of these
    uint64_t       leaves;  // ends once the connection has written so many bytes
} Http2Call;

typedef struct Http2Bucket {  // token bucket: burst, and refill per second
    double left;
    TimeNs at;
} Http2Bucket;

typedef struct Http2List {
    Http2Call *first, *last;
} Http2List;

struct Http2 {
    Stream           stream;
    nghttp2_session *session;
    Http2List        calls, leaving;
    uint32_t         n_calls, n_parts, n_asked, n_waiting, n_flows;
    size_t           unread;   // bytes of responses that are not wholly sent
    size_t           largest;  // response
    int32_t          heading_id;
    bool             inside;   // inside a session callback or http2_pump
    bool             greeted;  // the client's first SETTINGS was received
    bool             over;     // to be closed
    bool             calm;     // GOAWAY(ENHANCE_YOUR_CALM) was queued: close once it is written
    bool             parting;  // the final GOAWAY was queued: close after the open calls
    bool             parted;   // the open calls have ended: only GOAWAY is left to write
    bool             stuck;    // the last piece is the session's memory
    bool             yields;   // more could be written: other connections come first
    TimeNs           opened, heading, active, flushed, notice;
    uint64_t         quiet;  // bytes read since the last frame was complete
    Http2Bucket      resets, chatter;
    Http2Filter      filter;

    struct iovec  pieces[HTTP2_PIECES];
    uint32_t      n_pieces, piece;
    unsigned char small[HTTP2_SMALL];
    size_t        small_len;
    uint64_t      queued, written;
};

// http2.c
void http2_calm(Http2 *h);                                              // GOAWAY(ENHANCE_YOUR_CALM)
void http2_part(Http2 *h);                                              // GOAWAY: no new streams
bool http2_spend(Http2 *h, Http2Bucket *b, double most, double per_s);  // false: bucket is empty
void http2_tick(Http2 *h);                                              // rearms the timer
void http2_account(Http2 *h);  // tells the listener what it holds and waits for

// http2_call.c
Http2Call *http2_call_open(Http2 *h, int32_t id);                 // NULL: no memory
bool       http2_call_header(Http2Call *c, Str name, Str value);  // false: abusive
void       http2_call_head(Http2Call *c);                         // the headers are complete
void       http2_call_data(Http2Call *c, const uint8_t *at, size_t len);
void       http2_call_complete(Http2Call *c);
void       http2_call_more(Http2Call *c);                   // a part was written
bool       http2_call_next(Http2 *h);                       // hands over a call that waits
void       http2_call_closed(Http2Call *c, uint32_t code);  // its stream was closed
void       http2_call_ended(Http2Call *c, bool sent);       // c is invalid afterwards
void       http2_call_reject(Http2Call *c, uint32_t status, const char *why);
void       http2_list_add(Http2List *l, Http2Call *c);
void       http2_list_remove(Http2List *l, Http2Call *c);

// http2_session.c
MUST_USE Err http2_session(Http2 *h);

// http2_answer.c
void http2_send(Exchange *x, const Answer *a);
void http2_push(Exchange *x, const Answer *a);
void http2_release(Http2Call *c);  // the memory of its response is no longer held
// Queues the response body; 0 or an nghttp2 error.
int  http2_send_data(Http2 *h, Http2Call *c, const uint8_t *head, size_t len);
void http2_pump(Http2 *h);

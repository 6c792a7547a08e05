// Http2, inside: a connection that speaks HTTP/2, and the calls on it.
#pragma once

#include <nghttp2/nghttp2.h>

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
    Slab             *own;          // what this record lies in
    struct Http2Call *next, *prev;  // among the connection's, or among those that leave
    int32_t           id;
    bool              open;      // between head() and ended()
    bool              complete;  // all of the request is there
    bool              grpc;
    bool              refused;  // by us: the body is of no use
    bool              bad;      // more headers than allowed
    bool              done;     // the whole answer was handed over
    bool              lent;     // its body outlives it
    bool              begun;    // the answer's head was sent, and parts of it
    bool              last;     // there are no parts after this one
    bool              part;     // all of a part is among the pieces, until `leaves`
    size_t            owed;     // bytes that the client was not yet told we took

    ExchangeHeader headers[HTTP2_HEADERS];
    char           small_text[HTTP2_TEXT];
    char          *text;
    size_t         text_len, text_room, list_bytes;
    Slab          *more_text;

    ExchangeBody body;
    SlabPool    *slabs, *pages;
    Slab        *slab;
    size_t       from;  // the body begins there
    uint32_t     tiny;  // DATA frames that hardly carry anything

    struct iovec  *pieces, fault;
    uint32_t       n_pieces, piece;  // piece: the next to go
    size_t         offset;           // in that one
    ExchangeHeader trailers[HTTP2_TRAILERS];
    uint32_t       n_trailers;
    char           small_trail[HTTP2_TRAIL];
    Slab          *more_trail;
    TimeNs         moved;   // when some of the answer went last
    uint64_t       leaves;  // it is ended when so many bytes were written
} Http2Call;

typedef struct Http2Bucket {  // so many at once, and so many a second
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
    uint32_t         n_calls, n_parts;
    int32_t          heading_id;
    bool             inside;   // a session's callback or http2_pump is on the stack
    bool             greeted;  // the client's first SETTINGS came
    bool             over;     // to be closed
    bool             calm;     // GOAWAY for bad behaviour was queued: closed once it is out
    bool             parting;  // the last GOAWAY was queued: closed after the calls that are open
    bool             parted;   // and they are, too: only the goodbye is left
    bool             stuck;    // the last piece is the session's memory
    TimeNs           opened, heading, active, flushed, notice;
    uint64_t         quiet;  // bytes read since the last frame was complete
    Http2Bucket      resets, chatter;

    struct iovec  pieces[HTTP2_PIECES];
    uint32_t      n_pieces, piece;
    unsigned char small[HTTP2_SMALL];
    size_t        small_len;
    uint64_t      queued, written;
};

// http2.c
void http2_calm(Http2 *h);                                              // GOAWAY: this is too much
void http2_part(Http2 *h);                                              // GOAWAY: no new calls
bool http2_spend(Http2 *h, Http2Bucket *b, double most, double per_s);  // false: too many
void http2_tick(Http2 *h);  // look at the time again soon

// http2_call.c
Http2Call *http2_call_open(Http2 *h, int32_t id);                 // NULL: no memory
bool       http2_call_header(Http2Call *c, Str name, Str value);  // false: it is an attack
void       http2_call_head(Http2Call *c);                         // all headers are there
void       http2_call_data(Http2Call *c, const uint8_t *at, size_t len);
void       http2_call_complete(Http2Call *c);
void       http2_call_more(Http2Call *c);                   // a part is out
void       http2_call_closed(Http2Call *c, uint32_t code);  // its stream is
void       http2_call_ended(Http2Call *c, bool sent);       // c is gone after that
void       http2_call_refuse(Http2Call *c, uint32_t status, const char *why);
void       http2_list_add(Http2List *l, Http2Call *c);
void       http2_list_remove(Http2List *l, Http2Call *c);

// http2_session.c
MUST_USE Err http2_session(Http2 *h);

// http2_answer.c
void http2_send(Exchange *x, const Answer *a);
void http2_push(Exchange *x, const Answer *a);
// Body of an answer into the pieces to be written; 0 or an error of nghttp2.
int  http2_send_data(Http2 *h, Http2Call *c, const uint8_t *head, size_t len);
void http2_pump(Http2 *h);

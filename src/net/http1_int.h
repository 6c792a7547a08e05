// Http1 internals: an HTTP/1.1 connection, one request after the other.
#pragma once

#include "net/http1_parse.h"
#include "net/stream.h"

typedef enum Http1Input {
    HTTP1_HEAD,    // of the next request
    HTTP1_BODY,    // of a known length
    HTTP1_CHUNKS,  // a body in chunks
    HTTP1_UNPACK,  // complete, to be decompressed
    HTTP1_DONE,    // the request is complete; the next one waits for its response
    HTTP1_LINGER,  // the last response was sent: further input is discarded, so that the client
                   // receives it
} Http1Input;

typedef struct Http1 {
    Stream      stream;
    Exchange    x;
    Http1Head   head;
    Http1Scan   scan;
    Http1Chunks chunks;
    Http1Input  input;
    bool        open;    // between head() and ended()
    bool        asked;   // request() was called
    bool        drop;    // already answered: the rest of the body is discarded
    bool        eof;     // the client closed its side, and all that it sent was read
    bool        leaves;  // the client closed its side: it may be gone
    bool        last;    // close after this response
    bool        inside;  // http1_advance is on the stack
    bool        resume;  // it yielded to other connections

    uint32_t probes;  // sent during this exchange: bytes of its response's head
    TimeNs   probe;   // time of the next one

    Slab  *in;     // headers, then bytes
    char  *bytes;  // in it
    size_t room;   // of these
    size_t at, n;  // unconsumed bytes: from at up to n
    size_t floor;  // end of the open exchange's head: bytes before it stay
    TimeNs began;

    Slab    *body;
    size_t   body_from, body_len;  // in it
    uint64_t left;                 // bytes of body still to come
    Inflate *inflate;
    size_t   state;  // bytes charged for it
    Slab    *unpacked;

    Slab         *out;  // response heads and small responses
    size_t        out_at, out_len;
    struct iovec *pieces;  // rest of the response being written
    uint32_t      n_pieces;
    struct iovec  fault[3];
    bool          stalled;      // the socket is full, or its turn is over,
    TimeNs        write_began;  // since when,
    uint64_t      sent;         // and bytes that it took since
} Http1;

// http1.c
void http1_advance(Http1 *c);  // advances as far as the input allows
void http1_ended(Http1 *c, bool sent);
bool http1_take_in(Http1 *c);  // false: no memory

// http1_body.c. False: the request was rejected.
bool           http1_body_begin(Http1 *c);
bool           http1_body_take(Http1 *c);    // from the input buffer
bool           http1_body_unpack(Http1 *c);  // one step
unsigned char *http1_body_room(Http1 *c, size_t *size);
bool           http1_body_came(Http1 *c, size_t n);  // bytes read into that buffer
void           http1_body_free(Http1 *c);
ExchangeBody  *http1_lend(Exchange *x);  // the body outlives the exchange

// http1_answer.c
void http1_send(Exchange *x, const Answer *a);
void http1_reject(Http1 *c, uint32_t status, const char *why);  // and closes the connection
void http1_continue(Http1 *c);                                  // 100
void http1_flush(Http1 *c);                                     // may close the connection
bool http1_unsent(const Http1 *c);
// Sends the first byte of the response in advance: a client that has closed both sides answers with
// a reset.
void http1_probe(Http1 *c);
void http1_drop(Http1 *c);  // discards input after the last response

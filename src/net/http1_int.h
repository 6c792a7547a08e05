// Http1, inside: a connection that speaks HTTP/1.1, one request after the other.
#pragma once

#include "net/http1_chunks.h"
#include "net/http1_head.h"
#include "net/stream.h"

typedef enum Http1Input {
    HTTP1_HEAD,    // of the next request
    HTTP1_BODY,    // of a known length
    HTTP1_CHUNKS,  // a body in chunks
    HTTP1_UNPACK,  // all of it is there, compressed
    HTTP1_DONE,    // the request is complete; the next one waits for its answer
    HTTP1_LINGER,  // the last answer was sent: what still comes is dropped, so that it arrives
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
    bool        drop;    // answered already: the rest of the body is of no use
    bool        eof;     // the client will send no more
    bool        last;    // to be closed after this answer
    bool        inside;  // http1_advance is on the stack
    bool        resume;  // it stopped, for others' sake

    Slab  *in;     // headers, then bytes
    char  *bytes;  // in it
    size_t room;   // of these
    size_t at, n;  // those not yet used begin at, and end before n
    size_t floor;  // the end of the head of the open exchange: what is before that stays
    TimeNs began;

    Slab    *body;
    size_t   body_from, body_len;  // in it
    uint64_t left;                 // bytes of body still to come
    Inflate *inflate;
    Slab    *unpacked;

    Slab         *out;  // heads of answers, and answers that are small
    size_t        out_at, out_len;
    struct iovec *pieces;  // of the answer under way, after that
    uint32_t      n_pieces;
    struct iovec  fault[3];
    bool          stalled;      // the socket is full,
    TimeNs        write_began;  // since when,
    uint64_t      sent;         // and bytes that it took since
} Http1;

// http1.c
void http1_advance(Http1 *c);  // goes as far as it can
void http1_ended(Http1 *c, bool sent);
bool http1_take_in(Http1 *c);  // false: no memory

// http1_body.c. False: the request was refused.
bool           http1_body_begin(Http1 *c);
bool           http1_body_take(Http1 *c);    // from the bytes that were read
bool           http1_body_unpack(Http1 *c);  // a step of it
unsigned char *http1_body_room(Http1 *c, size_t *size);
bool           http1_body_came(Http1 *c, size_t n);  // into that room
void           http1_body_free(Http1 *c);
ExchangeBody  *http1_lend(Exchange *x);  // what is computed on after the exchange

// http1_answer.c
void http1_send(Exchange *x, const Answer *a);
void http1_refuse(Http1 *c, uint32_t status, const char *why);  // the last answer
void http1_continue(Http1 *c);                                  // 100
void http1_flush(Http1 *c);                                     // may close it
bool http1_unsent(const Http1 *c);
void http1_drop(Http1 *c);  // what comes after the last answer

// Exchange: one HTTP request and its response, over HTTP/1.1 or HTTP/2.
//
// Everything runs on the loop's thread. The connection owns the exchange from head() to ended();
// the buffers of the handler's response must stay valid until then.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/tensor.h"
#include "base/clock.h"
#include "net/inflate.h"

enum { EXCHANGE_EXTRA = 12, EXCHANGE_PIECES = 272 };

typedef struct ExchangeHeader {
    Str name, value;  // names are in lower case
} ExchangeHeader;

typedef struct Answer {
    uint32_t       status;  // 0: 200
    const char    *type;    // content type; NULL: there is no body
    ExchangeHeader extra[EXCHANGE_EXTRA];
    uint32_t       n_extra;
    struct iovec  *body;  // [n_body], at most EXCHANGE_PIECES; borrowed until ended()
    uint32_t       n_body;
    ExchangeHeader trailers[4];  // HTTP/2 only
    uint32_t       n_trailers;
    bool           close;  // close the connection after the response
} Answer;

typedef struct Exchange Exchange;

typedef struct ExchangeBody {  // a body buffer that outlives its exchange
    void (*give)(struct ExchangeBody *b);
} ExchangeBody;

struct Exchange {
    Str                   method, path, query;  // path as sent, not decoded, without the query
    const ExchangeHeader *headers;
    uint32_t              n_headers;
    unsigned char        *body;  // decompressed, unless keep_packed; the handler may overwrite it
    size_t                body_len;
    uint64_t              declared;  // Content-Length; UINT64_MAX: not given
    InflateKind           packing;   // Content-Encoding, known at head()
    bool                  http2;
    bool                  answered;
    TimeNs                began, arrived;  // when its first and its last byte arrived
    // Owned by the handler.
    void          *user;     // NULL at head()
    struct Budget *budget;   // that its response is charged to; NULL: unknown
    size_t         aligned;  // set in head(): body + aligned is placed at a multiple of 64
    size_t         most;     // set in head(): body limit in bytes, if below the listener's
    // Set in head(): a body with a packing is delivered compressed, on a multiple of 64, for the
    // handler to decompress (inflate.h) off the loop's thread; `most` limits its compressed bytes.
    bool keep_packed;
    void (*send)(Exchange *x, const Answer *a);  // set by the connection, as is the next
    ExchangeBody *(*take)(Exchange *x);
    // Streaming bodies: HTTP/2 only.
    bool flows;    // set in head(): more() is called as data arrives, instead of request()
    bool hold;     // set by the handler: flow control is withheld until it is cleared
    bool whole;    // END_STREAM was received
    bool pushing;  // a part of the response is being written
    void (*eat)(Exchange *x, size_t n);
    ExchangeBody *(*cut)(Exchange *x, size_t n);
    void (*push)(Exchange *x, const Answer *a);
};

typedef struct ExchangeHandler {
    // The headers are complete. May respond at once: the body is then discarded. May be NULL.
    void (*head)(void *self, Exchange *x);
    // The request is complete. The response may be sent now or later.
    void (*request)(void *self, Exchange *x);
    // Once for each head(): the response was sent, or the client disconnected, possibly before the
    // response. The exchange is invalid afterwards.
    void (*ended)(void *self, Exchange *x, bool sent);
    void *self;
    // A streaming body has grown or ended, or the pushed part of the response was written.
    void (*more)(void *self, Exchange *x);
} ExchangeHandler;

// Call once; headers are copied.
static inline void exchange_answer(Exchange *x, const Answer *a) {
    x->answered = true;
    x->send(x, a);
}

// Sends a part of a response; its body is borrowed until more() is called and x->pushing is false.
// The status and headers are the first part's. exchange_answer sends the last part and the
// trailers.
static inline void exchange_push(Exchange *x, const Answer *a) { x->push(x, a); }
// Consumes the first n bytes of a streaming body; 0: re-evaluates hold.
static inline void exchange_eat(Exchange *x, size_t n) { x->eat(x, n); }

// The same, but these bytes stay valid where they are until body->give(body), on the loop's thread.
// NULL: out of memory, nothing was consumed.
static inline ExchangeBody *exchange_cut(Exchange *x, size_t n) { return x->cut(x, n); }

// In ended(): keeps the body until body->give(body), on the loop's thread. NULL: there is
// none.
static inline ExchangeBody *exchange_take(Exchange *x) { return x->take(x); }

// Value of a header, by its lower-case name; at is NULL when it is missing.
Str exchange_header(const Exchange *x, const char *name);

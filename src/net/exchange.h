// Exchange: one request over HTTP and its answer, whichever version carries it.
//
// Everything happens on the loop's thread. The connection owns the exchange from head() to ended();
// what the handler gives for an answer stays where it is until then.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/tensor.h"
#include "base/clock.h"

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
    bool           close;  // the connection, once it was sent
} Answer;

typedef struct Exchange Exchange;

typedef struct ExchangeBody {  // memory of a body that outlives its exchange
    void (*give)(struct ExchangeBody *b);
} ExchangeBody;

struct Exchange {
    Str                   method, path, query;  // path as sent, not decoded, without the query
    const ExchangeHeader *headers;
    uint32_t              n_headers;
    unsigned char        *body;  // decompressed; writable, and the handler may spoil it
    size_t                body_len;
    uint64_t              declared;  // Content-Length; UINT64_MAX: not given
    bool                  http2;
    bool                  answered;
    TimeNs                began, arrived;  // its first and its last byte
    // The handler's.
    void  *user;     // NULL at head()
    size_t aligned;  // set in head(): the address of body + aligned shall be a multiple of 64
    size_t most;     // set in head(): bytes of body that are accepted, if less than the listener's
    void (*send)(Exchange *x, const Answer *a);  // the connection's, as the next
    ExchangeBody *(*take)(Exchange *x);
    // A body that flows: HTTP/2 only.
    bool flows;    // set in head(): more() is called as it comes, request() is not
    bool hold;     // set by the handler: the client is to wait before it sends more
    bool whole;    // its end is there
    bool pushing;  // a part of the answer is on its way
    void (*eat)(Exchange *x, size_t n);
    void (*push)(Exchange *x, const Answer *a);
};

typedef struct ExchangeHandler {
    // The headers are there. May answer already: the body is then dropped. NULL: nothing to say.
    void (*head)(void *self, Exchange *x);
    // All of it is there. The answer may come now or later.
    void (*request)(void *self, Exchange *x);
    // Once for each head(): the answer was sent, or the client has gone, maybe before it was
    // answered. The exchange must not be touched after that.
    void (*ended)(void *self, Exchange *x, bool sent);
    void *self;
    // A body that flows has grown or has come to its end, or the part that was pushed is out.
    void (*more)(void *self, Exchange *x);
} ExchangeHandler;

// Once; headers are copied.
static inline void exchange_answer(Exchange *x, const Answer *a) {
    x->answered = true;
    x->send(x, a);
}

// A part of an answer; its body is borrowed until more() is called and x->pushing is false. The
// head is the first part's. The last part and the trailers go by exchange_answer.
static inline void exchange_push(Exchange *x, const Answer *a) { x->push(x, a); }
// The first n bytes of a body that flows are done with; 0: look at hold again.
static inline void exchange_eat(Exchange *x, size_t n) { x->eat(x, n); }

// In ended(): the body stays where it is until body->give(body), on the loop's thread. NULL: it has
// none.
static inline ExchangeBody *exchange_take(Exchange *x) { return x->take(x); }

// The value of a header, its name in lower case; at NULL when it is missing.
Str exchange_header(const Exchange *x, const char *name);

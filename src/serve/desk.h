// Desk: requests between decoding and answering: deadlines, admission, the engine, receipts.
//
// A front (REST, gRPC) opens an Ask, decodes into it, submits it, and is called back on the loop's
// thread with what to answer. Asks are kept and used again: nothing is allocated on the way.
#pragma once

#include "base/log.h"
#include "net/exchange.h"
#include "serve/fleet.h"
#include "serve/infer.h"
#include "serve/ledger.h"
#include "serve/metrics.h"
#include "serve/receipt.h"

typedef struct Desk Desk;

typedef struct Ask {
    Arena        arena;  // of the request and of the answer, until desk_close
    InferRequest request;
    Receipt      receipt;     // receipt.end says how it ended
    Served      *served;      // NULL: no model was found
    InferAnswer  answer;      // when receipt.end is OK
    char         error[512];  // otherwise, a sentence for the client; no paths, no addresses
    uint32_t     retry_s;     // Retry-After; 0: none
    void (*done)(void *self, struct Ask *a);  // the front's, set by desk_submit
    void *self;
} Ask;

typedef struct DeskOptions {
    Loop                *loop;
    NodeLive            *engine;
    Fleet               *fleet;
    Metrics             *metrics;
    Ledger              *ledger;
    const Log           *log;
    const ServeSettings *set;
} DeskOptions;

MUST_USE Err desk_create(Desk **out, const DeskOptions *o);
void         desk_destroy(Desk *d);  // accepts NULL; when desk_busy is 0

// NULL: as many as may be are on their way; answer 503. began and arrived are of the exchange.
Ask *desk_open(Desk *d, ReceiptProtocol protocol, TimeNs began, TimeNs arrived, size_t bytes);
// The request is decoded. model and version as the client names them; timeout_ns: of a header, 0:
// none. done is called once, maybe before this returns, unless desk_cancel comes first.
void desk_submit(Desk *d, Ask *a, Str model, Str version, TimeNs timeout_ns,
                 void (*done)(void *self, Ask *a), void *self);
// The request could not be decoded: notes it and fills error from err_why. Then answer it.
void desk_refuse(Desk *d, Ask *a, Str model, Str version, Err e);
// The client has gone before done was called: done will not be, and a is no longer the front's.
// body (or NULL) is given back when nobody computes on it any more.
void desk_cancel(Desk *d, Ask *a, ExchangeBody *body);
// The answer was sent, or cannot be any more.
void     desk_close(Desk *d, Ask *a, size_t bytes);
uint32_t desk_busy(const Desk *d);  // asks that are open or still in the engine
void     desk_expel(Desk *d);       // all that wait are refused: we stop
// Names of the engine's tenants by number, NULL where none was seen. Live as long as the desk.
const char *const *desk_names(const Desk *d, uint32_t *n);

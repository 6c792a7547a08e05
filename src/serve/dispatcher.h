// Dispatcher: requests between decoding and answering: deadlines, admission, the engine, receipts.
//
// A front (REST, gRPC) opens an InferCall, decodes into it, submits it, and is called back on the
// loop's thread with what to answer. Asks are kept and used again: nothing is allocated on the way.
#pragma once

#include "base/log.h"
#include "net/exchange.h"
#include "serve/models/registry.h"
#include "serve/tensor/infer_request.h"
#include "serve/observe/request_history.h"
#include "serve/observe/metrics.h"
#include "serve/observe/receipt.h"

typedef struct Dispatcher Dispatcher;

typedef struct InferCall {
    Arena         arena;  // of the request and of the answer, until dispatcher_close
    InferRequest  request;
    Receipt       receipt;     // receipt.end says how it ended
    ModelInfo    *served;      // NULL: no model was found
    InferResponse response;    // when receipt.end is OK
    char          error[512];  // otherwise, a sentence for the client; no paths, no addresses
    uint32_t      retry_s;     // Retry-After; 0: none
    void (*done)(void *self, struct InferCall *a);  // the front's, set by dispatcher_submit
    void *self;
} InferCall;

typedef struct DispatcherOptions {
    Loop                *loop;
    NodeLive            *engine;
    ModelRegistry       *registry;
    Metrics             *metrics;
    RequestHistory      *history;
    const Log           *log;
    const ServeSettings *set;
} DispatcherOptions;

MUST_USE Err dispatcher_create(Dispatcher **out, const DispatcherOptions *o);
void         dispatcher_destroy(Dispatcher *d);  // accepts NULL; when dispatcher_in_flight is 0

// NULL: as many as may be are on their way; answer 503. began and arrived are of the exchange.
InferCall *dispatcher_open(Dispatcher *d, ReceiptProtocol protocol, TimeNs began, TimeNs arrived,
                           size_t bytes);
// The request is decoded. model and version as the client names them; timeout_ns: of a header, 0:
// none. done is called once, maybe before this returns, unless dispatcher_cancel comes first.
void dispatcher_submit(Dispatcher *d, InferCall *a, Str model, Str version, TimeNs timeout_ns,
                       void (*done)(void *self, InferCall *a), void *self);
// The request could not be decoded: parameters it and fills error from err_why. Then answer it.
void dispatcher_reject(Dispatcher *d, InferCall *a, Str model, Str version, Err e);
// The client has gone before done was called: done will not be, and a is no longer the front's.
// body (or NULL) is given back when nobody computes on it any more.
void dispatcher_cancel(Dispatcher *d, InferCall *a, ExchangeBody *body);
// The answer was sent, or cannot be any more.
void     dispatcher_close(Dispatcher *d, InferCall *a, size_t bytes);
uint32_t dispatcher_in_flight(const Dispatcher *d);  // asks that are open or still in the engine
void     dispatcher_reject_all(Dispatcher *d);       // all that wait are refused: we stop
// Names of the engine's tenants by number, NULL where none was seen. Live as long as the
// dispatcher.
const char *const *dispatcher_tenant_names(const Dispatcher *d, uint32_t *n);

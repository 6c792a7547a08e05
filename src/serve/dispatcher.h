// Dispatcher: takes decoded inference requests through deadline, compiled shape and engine to a
// response, and records a Receipt of each.
//
// A front end (REST, gRPC) opens an InferCall, sets its body, submits it and is called back on the
// loop's thread. What takes long is done on the engine's workers: decoding, computing, encoding.
// Calls and their arenas are pooled: nothing is allocated per request.
#pragma once

#include "base/log.h"
#include "net/exchange.h"
#include "net/inflate.h"
#include "serve/models/registry.h"
#include "serve/tensor/infer_request.h"
#include "serve/observe/request_history.h"
#include "serve/observe/metrics.h"
#include "serve/observe/receipt.h"

typedef struct Dispatcher Dispatcher;

#define DISPATCHER_LIMIT   "server at its request limit (`requests`); retry later"
#define DISPATCHER_CROWDED "other requests use the memory that `buffered_mb` allows; retry later"

typedef struct InferCall InferCall;

// How a front end reads a request and writes its response. The functions run on the loop's thread
// or, if they take long, as a job on a worker: they use the call and nothing else, and call
// coroutine_point() often.
typedef struct InferCodec {
    Err (*decode)(InferCall *call);              // body -> request
    Err (*encode)(InferCall *call);              // response -> pieces
    TimeNs (*decode_ns)(const InferCall *call);  // estimated time
    TimeNs (*encode_ns)(const InferCall *call);
} InferCodec;

typedef struct InferBody {  // a request as it was received; valid until done, or until given back
    unsigned char *at;
    size_t         len;
    size_t         header;   // REST: bytes of JSON; SIZE_MAX: all, and in gRPC
    InflateKind    packing;  // compression
} InferBody;

// For codecs: decompresses a packed body into the arena, its part behind the header on a multiple
// of TENSOR_ALIGN. ERR_LIMIT beyond max_body; ERR_PARSE when it is damaged.
MUST_USE Err infer_body_unpack(InferCall *call);

struct InferCall {
    Arena             arena;  // of request and response, until dispatcher_close
    const InferCodec *codec;
    InferBody         body;
    Inflate          *inflate;       // while it is decompressed
    size_t            max_body;      // limit of its decompressed size
    size_t            max_response;  // limit of the encoded response
    InferRequest      request;
    Receipt           receipt;   // receipt.end says how it ended
    ModelInfo        *model;     // NULL: not found
    InferResponse     response;  // encoded when receipt.end is RECEIPT_OK:
    struct iovec     *pieces;    // [n_pieces] in memory of the arena; the first entry of the array
                                 // is left for the front end
    uint32_t n_pieces;
    size_t   header;      // REST: bytes of JSON in front of binary outputs; SIZE_MAX: all is JSON
    bool     timing;      // asked for by a header: report timing in the response
    char     error[512];  // otherwise: message for the client, without paths or addresses
    uint32_t retry_s;     // Retry-After [s]; 0: none
    void (*done)(void *self, InferCall *call);  // of the front end, set by dispatcher_submit
    void *self;
};

typedef struct DispatcherOptions {
    Loop                *loop;
    NodeLive            *engine;
    ModelRegistry       *registry;
    Metrics             *metrics;
    RequestHistory      *history;
    Budget              *memory;  // of all requests
    const Log           *log;
    const ServeSettings *set;
} DispatcherOptions;

MUST_USE Err dispatcher_create(Dispatcher **out, const DispatcherOptions *o);
void dispatcher_destroy(Dispatcher *d);  // accepts NULL; requires dispatcher_in_flight() == 0

// NULL: the limit `requests` is reached, answer 503. began and arrived: of the exchange.
InferCall *dispatcher_open(Dispatcher *d, ReceiptProtocol protocol, TimeNs began, TimeNs arrived,
                           size_t bytes);
// Submits a request with its codec and body set. model, version: as the client names them;
// timeout_ns: from a header, 0: none. done is called once, maybe before this returns, unless
// dispatcher_cancel comes first.
void dispatcher_submit(Dispatcher *d, InferCall *call, Str model, Str version, TimeNs timeout_ns,
                       void (*done)(void *self, InferCall *call), void *self);
// The client disconnected before done was called: done is not called any more and the call belongs
// to the dispatcher. body (or NULL) is given back once the engine no longer reads it.
void dispatcher_cancel(Dispatcher *d, InferCall *call, ExchangeBody *body);
// The response was sent, or cannot be sent any more.
void     dispatcher_close(Dispatcher *d, InferCall *call, size_t bytes);
uint32_t dispatcher_in_flight(const Dispatcher *d);  // calls open or in the engine
void     dispatcher_reject_all(Dispatcher *d);       // waiting and new requests: the server stops
// Model name of each engine tenant by number, NULL where there was none. Valid as long as d.
const char *const *dispatcher_tenant_names(const Dispatcher *d, uint32_t *n);

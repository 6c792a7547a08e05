// Client: requests to one server over HTTP/1.1 or HTTP/2, many at once, on a Loop.
//
// Everything runs on the loop's thread. done() of a call is never called from client_submit, and
// may submit further calls, this one too.
#pragma once

#include <sys/uio.h>

#include "net/exchange.h"
#include "net/loop.h"

typedef enum ClientProtocol { CLIENT_HTTP1, CLIENT_HTTP2 } ClientProtocol;

typedef struct ClientOptions {  // 0: the default
    const char    *host, *port;
    ClientProtocol protocol;
    uint32_t       connections;   // at most: 64
    uint32_t       streams;       // of an HTTP/2 connection at once: 32
    TimeNs         timeout_ns;    // from client_submit to the end of the response: 30 s
    size_t         header_bytes;  // of an answer: 64 KiB
    size_t         body_bytes;    // of an answer: 256 MiB
} ClientOptions;

typedef struct ClientRequest {  // borrowed while calls use it
    const char           *method, *path;
    const ExchangeHeader *headers;  // without host and content-length; names in lower case
    uint32_t              n_headers;
    struct iovec          body;
    struct iovec          head;  // client_prepare's, for HTTP/1.1
} ClientRequest;

typedef struct ClientReply {
    const char          *fault;  // NULL: a response, whatever its status; else why there is none
    uint32_t             status, grpc;  // of HTTP; grpc-status, UINT32_MAX: none
    size_t               json_len;      // Inference-Header-Content-Length; SIZE_MAX: none
    const unsigned char *body;          // valid while done() runs
    size_t               kept, len;     // bytes at body, bytes received
    const char          *message;       // grpc-message, not decoded; "" without
} ClientReply;

typedef struct ClientCall ClientCall;

struct ClientCall {  // the caller's, from client_submit until done
    const ClientRequest *request;
    size_t               keep;  // bytes of the response body to keep
    void (*done)(void *self, ClientCall *c, const ClientReply *r);
    void  *self;
    TimeNs submitted, sent;  // sent: when its first byte was written; 0: never
    // Private to the client.
    struct ClientCall *next, *prev, *next_waiting, *prev_waiting;
    void              *on;  // connection or stream; NULL: waiting for one
    const char        *fault;
    bool               waiting;
    uint32_t           again;  // number of retries
};

typedef struct ClientCounts {
    uint64_t connects, retries;  // connections opened; requests retried on a new one
    uint64_t waited;             // calls that found no free connection
    uint32_t open, live;         // connections; calls
} ClientCounts;

typedef struct Client Client;

// Resolves the address; connects at the first request.
MUST_USE Err client_create(Client **out, Loop *l, const ClientOptions *o);
void         client_destroy(Client *c);  // accepts NULL; open calls are dropped without done()
ClientCounts client_counts(const Client *c);
// Fills r->head; memory is in a.
MUST_USE Err client_prepare(const Client *c, ClientRequest *r, Arena *a);
void         client_submit(Client *c, ClientCall *call);

typedef struct ClientUrl {
    const char    *host, *port;  // "::1" without the brackets
    const char    *path;         // "" or begins with a slash, without one at its end
    ClientProtocol protocol;
} ClientUrl;

// http://HOST[:PORT][/PATH], grpc://HOST[:PORT] and HOST:PORT, in a. ERR_ARG: https or nonsense.
MUST_USE Err client_url(const char *text, Arena *a, ClientUrl *out);

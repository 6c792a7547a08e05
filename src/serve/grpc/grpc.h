// Grpc: the Open Inference Protocol (KServe v2) over gRPC, with Triton's extensions and
// grpc.health.
#pragma once

#include "net/exchange.h"
#include "serve/dispatcher.h"

enum { GRPC_LISTENERS = 2 };

typedef struct Grpc Grpc;

typedef struct GrpcOptions {
    Dispatcher          *dispatcher;
    ModelRegistry       *registry;
    Metrics             *metrics;
    const ServeSettings *set;
    bool (*ready)(const void *self);  // whether the server is ready for requests
    const void *self;
} GrpcOptions;

MUST_USE Err grpc_create(Grpc **out, const GrpcOptions *o);
void         grpc_destroy(Grpc *g);  // accepts NULL; its listeners are closed

// Handler for an HTTP/2 listener at an address; at most GRPC_LISTENERS times. admin: it may list,
// load and unload models. Valid as long as g.
ExchangeHandler grpc_handler(Grpc *g, bool admin, const char *address);

// Grpc: the Open Inference Protocol over gRPC, with Triton's calls and the health check.
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
    bool (*ready)(const void *self);  // the server takes requests
    const void *self;
} GrpcOptions;

MUST_USE Err grpc_create(Grpc **out, const GrpcOptions *o);
void         grpc_destroy(Grpc *g);  // accepts NULL; after its listeners were closed

// For a listener that speaks HTTP/2, GRPC_LISTENERS times. admin: models may be listed, loaded and
// unloaded there. Lives as long as g.
ExchangeHandler grpc_handler(Grpc *g, bool admin);

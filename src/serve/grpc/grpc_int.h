// gRPC inside: a call is an exchange with what its answer needs until it was sent.
#pragma once

#include "serve/grpc/grpc.h"
#include "serve/grpc/wire.h"

typedef enum GrpcKind {
#define X(id, path, admin) GRPC_##id,
#include "serve/grpc/grpc.def"
#undef X
    GRPC_KINDS
} GrpcKind;

enum {
    GRPC_OK = 0,
    GRPC_INVALID = 3,
    GRPC_DEADLINE = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_FORBIDDEN = 7,
    GRPC_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14
};

enum { GRPC_PREFIX = 5, GRPC_NAME = 160 };

typedef struct GrpcListener {  // an address
    Grpc *grpc;
    bool  admin;
} GrpcListener;

typedef struct GrpcCall {
    Grpc          *g;
    Exchange      *x;  // NULL: the client has gone
    GrpcKind       kind;
    InferCall     *call;   // of an inference; the call lies in its arena
    unsigned char *bytes;  // of any other: the answer, from malloc
    struct iovec   pieces[2];
    unsigned char  prefix[GRPC_PREFIX];
    size_t         sent;     // bytes of the answer
    bool           waiting;  // somebody else will answer it
    Str            message;  // of the request, in the body
    char           name[GRPC_NAME];
} GrpcCall;

struct Grpc {
    GrpcOptions  o;
    GrpcListener listeners[GRPC_LISTENERS];
    uint32_t     n_listeners;
    size_t       aligned;  // where the last inference had its numbers in the body
    Arena        scratch;  // within one call
};

// The one message of a body. GRPC_OK, or the status that says what is wrong with it.
uint32_t grpc_unframe(const unsigned char *body, size_t len, Str *message, const char **why);
void     grpc_frame(unsigned char prefix[GRPC_PREFIX], size_t len);
// The value of grpc-timeout; false: it is none.
bool grpc_timeout(Str s, TimeNs *out);
// Percent-encodes what may not stand in a header, as far as there is room; terminated.
void grpc_quote(const char *text, char *out, size_t room);

// Answers; x is the caller's no more. The first for exchanges that have no call yet.
void grpc_fail(Exchange *x, uint32_t status, uint32_t retry_s, const char *why);
void grpc_answer(GrpcCall *c, WireWriter *out);  // copies

void grpc_info(GrpcCall *c);   // server, models, readiness, config, statistics, health
void grpc_admin(GrpcCall *c);  // index, load, unload
void grpc_infer(Grpc *g, Exchange *x, Str message);
// A call with many messages, from its head to its end.
void grpc_stream_head(Grpc *g, Exchange *x);
void grpc_stream_more(GrpcCall *c, TimeNs now);
void grpc_stream_ended(GrpcCall *c);
void grpc_free(GrpcCall *c);

// Internals of gRPC: a GrpcCall is an exchange with what its response needs until it was sent.
#pragma once

#include <string.h>

#include "net/inflate.h"
#include "serve/grpc/grpc.h"
#include "serve/grpc/wire.h"
#include "serve/host_rule.h"

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

typedef struct GrpcListener {
    Grpc    *grpc;
    bool     admin;
    HostRule rule;
} GrpcListener;

typedef struct GrpcCall {
    Grpc          *g;
    Exchange      *x;  // NULL: the client has disconnected
    GrpcKind       kind;
    InferCall     *call;   // of an inference; the GrpcCall lies in its arena
    unsigned char *bytes;  // any other response, from malloc
    struct iovec   pieces[2];
    unsigned char  prefix[GRPC_PREFIX];
    size_t         sent;     // bytes of the response
    bool           waiting;  // answered by a callback of the registry
    bool           packed;   // its message was compressed
    Str            message;  // the request's message, within the body
    char           name[GRPC_NAME];
} GrpcCall;

struct Grpc {
    GrpcOptions  o;
    GrpcListener listeners[GRPC_LISTENERS];
    uint32_t     n_listeners;
    size_t       aligned;  // offset of the last raw input in its body, modulo TENSOR_ALIGN
    Arena        scratch;  // valid within one call
};

// grpc.c
// The only message of a body; otherwise a status and *why.
uint32_t grpc_unframe(const unsigned char *body, size_t len, bool *compressed, Str *message,
                      const char **why);
// Compression of an exchange's messages, by grpc-encoding; otherwise a status and *why.
uint32_t grpc_encoding(const Exchange *x, InflateKind *out, const char **why);
// Decompresses a message of at most `most` bytes into a, or returns it as it is. ERR_LIMIT: it is
// larger; ERR_PARSE: it is damaged.
MUST_USE Err grpc_expand(InflateKind kind, Str message, size_t most, Arena *a, Str *out);
void         grpc_frame(unsigned char prefix[GRPC_PREFIX], size_t len);
// Parses grpc-timeout, capped at a day; false: malformed.
bool grpc_timeout(Str s, TimeNs *out);
// Percent-encodes text for a header value, cut to fit; terminated.
void grpc_quote(const char *text, char *out, size_t room);

// Both answer the exchange, which must not be touched afterwards.
void grpc_fail(Exchange *x, uint32_t status, uint32_t retry_s, const char *why);
void grpc_answer(GrpcCall *c, WireWriter *out);  // copies the message

// grpc_endpoints.c
void grpc_info(GrpcCall *c);   // server, models, readiness, config, statistics, health
void grpc_admin(GrpcCall *c);  // index, load, unload

// grpc_config.c
void grpc_put_config(WireWriter *o, const ModelInfo *s);
void grpc_settings(GrpcCall *c);  // trace and log settings: read-only

// grpc_infer.c; grpc_stream_*: ModelStreamInfer from its headers to its end.
void grpc_infer(Grpc *g, Exchange *x, Str message, InflateKind packing);
void grpc_stream_head(Grpc *g, Exchange *x);
void grpc_stream_more(GrpcCall *c, TimeNs now);
void grpc_stream_ended(GrpcCall *c);
void grpc_free(GrpcCall *c);  // grpc.c

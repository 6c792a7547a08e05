// Listener: a listening socket with limits on connections, headers, bodies and times.
#pragma once

#include "base/budget.h"
#include "net/exchange.h"
#include "net/loop.h"

typedef enum ListenerProtocol { LISTENER_HTTP1, LISTENER_HTTP2 } ListenerProtocol;

typedef struct ListenerLimits {  // 0: the default
    uint32_t connections;        // open connections: 1024, and what the descriptor limit allows
    uint32_t streams;            // of an HTTP/2 connection at once: 128
    uint32_t headers;            // 64
    size_t   header_bytes;       // all of them with the request line: 16 KiB
    size_t   body_bytes;         // of one request, decompressed: 64 MiB
    size_t   held_bytes;  // of its bodies at once: 512 MiB, or as the budget allows; then 503
    TimeNs   header_ns;   // from a request's first byte to its last header: 10 s
    TimeNs   body_ns;     // to its last byte: 60 s
    TimeNs   idle_ns;     // between requests: 75 s
    TimeNs   write_ns;    // for a client to read a response, and 1 s per 64 KiB of it: 30 s
} ListenerLimits;

typedef struct ListenerOptions {
    const char      *address;  // "127.0.0.1:8000", "[::1]:0", "unix:/run/x.sock"; port 0: any
    ListenerProtocol protocol;
    ListenerLimits   limits;
    ExchangeHandler  handler;
    Budget          *budget;  // shared with other listeners, and longer-lived; NULL: none
    // The budget was refused: closes late responses of all that share it, and returns the bytes
    // freed. NULL: listener_relieve.
    size_t (*relieve)(void *self, size_t bytes);
    void *self;  // of relieve
} ListenerOptions;

typedef struct ListenerCounts {
    uint64_t accepted, refused;  // connections
    uint64_t requests, bad;      // bad: violated the protocol or a limit
    uint64_t evicted;            // connections and responses closed to make room
    uint32_t open;               // connections
    uint64_t body_bytes;         // of requests
    uint64_t held_bytes;         // all that the listener holds
} ListenerCounts;

typedef struct Listener Listener;

// ERR_IO when the address cannot be bound. A stale Unix socket file is replaced.
MUST_USE Err   listener_open(Listener **out, Loop *l, const ListenerOptions *o);
const char    *listener_address(const Listener *l);  // with the port that it got
ListenerCounts listener_counts(const Listener *l);
// No new connections; idle ones are closed, others after their pending responses (GOAWAY).
void listener_drain(Listener *l);
bool listener_drained(const Listener *l);  // no connection is open
// Memory is short: closes connections (HTTP/1) and resets streams (HTTP/2) that are read too
// slowly, those of the address with most unread bytes first, until so many bytes were
// freed. b: only responses charged to it (Exchange.budget); NULL: any. Returns the bytes freed.
size_t listener_relieve(Listener *l, const Budget *b, size_t bytes);
void   listener_close(Listener *l);  // at once, with ended() for every open exchange; accepts NULL

// Whether an address is loopback or a Unix socket: loopback or a Unix socket. Fails when it is
// none.
MUST_USE Err listener_is_local(const char *address, bool *out);

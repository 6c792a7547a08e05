// The server inside: its parts, and where in its life it is.
#pragma once

#include "net/listener.h"
#include "node/host.h"
#include "serve/desk.h"
#include "serve/grpc.h"
#include "serve/logger.h"
#include "serve/rest.h"
#include "serve/server.h"

typedef enum ServerState {
    SERVER_STARTING,  // models load
    SERVER_SERVING,
    SERVER_LINGERING,  // told to end: not ready, but all is answered
    SERVER_DRAINING,   // no new connections
    SERVER_ENDED,
} ServerState;

enum { SERVER_LISTENERS = 4 };

typedef struct Server {
    ServerOptions o;
    Config      **configs;  // [n_configs] that models are served by, the newest last
    uint32_t      n_configs;
    bool          reloading;
    Logger       *logger;
    const Log    *log;
    Loop         *loop;
    Host          host;
    NodeLive     *engine;
    Metrics      *metrics;
    Ledger       *ledger;
    Fleet        *fleet;
    Desk         *desk;
    Rest         *rest;
    Grpc         *grpc;
    Listener     *listeners[SERVER_LISTENERS];  // http, grpc, metrics, admin; NULL: off
    LoopFd        signals;
    LoopTimer     timer, pulse;
    TimeNs        until;  // draining: given up then
    ServerState   state;
    bool          expelled, again;  // again: a reload is wanted after the present one
    int           code, signal;
} Server;

extern const char *const server_names[SERVER_LISTENERS];

MUST_USE Err server_listen(Server *s);
MUST_USE Err server_signals(Server *s);  // from now on they are read by the loop
void         server_stop(Server *s, TimeNs delay_ns);
void         server_reload(Server *s);
MUST_USE Err server_keep(Server *s, Config *c);   // until nobody is served by it
void         server_forget(Server *s, bool all);  // those
bool         server_ready(const void *self);

// The server inside: its parts, and where in its life it is.
#pragma once

#include "base/clock.h"
#include "net/listener.h"
#include "node/host.h"
#include "serve/dispatcher.h"
#include "serve/grpc/grpc.h"
#include "serve/inference_server.h"
#include "serve/observe/logger.h"
#include "serve/rest/rest.h"

typedef enum ServerState {
    SERVER_STARTING,  // models load
    SERVER_SERVING,
    SERVER_STOPPING,  // told to end: not ready, but all is answered
    SERVER_DRAINING,  // no new connections
    SERVER_ENDED,
} ServerState;

enum { SERVER_LISTENERS = 4 };

typedef struct InferenceServer {
    ServerOptions   o;
    Config        **configs;  // [n_configs] that models are served by, the newest last
    uint32_t        n_configs;
    bool            reloading;
    Logger         *logger;
    const Log      *log;
    Loop           *loop;
    Host            host;
    NodeLive       *engine;
    Metrics        *metrics;
    RequestHistory *history;
    ModelRegistry  *registry;
    Dispatcher     *dispatcher;
    Rest           *rest;
    Grpc           *grpc;
    Listener       *listeners[SERVER_LISTENERS];  // http, grpc, metrics, admin; NULL: off
    LoopFd          signals;
    LoopTimer       timer, pulse;
    TimeNs          until;  // draining: given up then
    ServerState     state;
    bool            rejected_all, again;  // again: a reload is wanted after the present one
    int             code, signal;
} InferenceServer;

extern const char *const server_names[SERVER_LISTENERS];

MUST_USE Err server_listen(InferenceServer *s);
MUST_USE Err server_signals(InferenceServer *s);  // from now on they are read by the loop
void         server_stop(InferenceServer *s, TimeNs delay_ns);
void         server_reload(InferenceServer *s);
MUST_USE Err server_keep(InferenceServer *s, Config *c);   // until nobody is served by it
void         server_forget(InferenceServer *s, bool all);  // those
bool         server_ready(const void *self);

// Notify: tells the service manager that started us how we are. Without one nothing happens.

void   notify_send(const char *state);  // "READY=1", "STOPPING=1", "WATCHDOG=1"
TimeNs notify_period(void);             // in which it wants to hear WATCHDOG=1; 0: it does not

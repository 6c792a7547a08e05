// ScriptedServer: a server on the test's own loop that sends given bytes, valid HTTP or not.
#pragma once

#include <stddef.h>

#include "net/loop.h"

enum { SCRIPTED_CONNS = 64 };

typedef struct ScriptedServer ScriptedServer;

typedef struct ScriptedConn {
    ScriptedServer *server;
    LoopFd          fd;
    void           *session;  // of nghttp2
} ScriptedConn;

typedef enum ScriptedMode {
    SCRIPTED_RESPONDS,  // answers each request
    SCRIPTED_SILENT,    // reads and sends nothing
    SCRIPTED_CLOSES,    // closes on the first byte
    SCRIPTED_HTTP2,     // answers each stream as status and message say
} ScriptedMode;

struct ScriptedServer {
    Loop        *loop;
    LoopFd       listener;
    char         port[8];
    ScriptedConn lines[SCRIPTED_CONNS];
    ScriptedMode mode;
    const char  *response;
    size_t       len;          // of response; 0: its length as text
    bool         then_close;   // after each answer
    bool         unsolicited;  // sends the response before any request
    uint32_t     accepted, requests;
    bool         resets;  // HTTP/2: resets streams instead of answering
};

void scripted_server_open(ScriptedServer *p, Loop *l);  // *p is zeroed except for its behaviour
void scripted_server_close(ScriptedServer *p);
void scripted_server_hang_up(ScriptedServer *p);  // all connections

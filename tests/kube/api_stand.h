// ApiStand: an HTTP/1.1 server on the test's own loop whose answers, and their faults, are the
// test's: a function is called for each request and sends whatever bytes it likes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

enum { STAND_CONNS = 64, STAND_IN = 1 << 16, STAND_URL = 64 };

typedef struct ApiStand ApiStand;

typedef struct ApiConn {
    ApiStand *stand;
    LoopFd    fd;  // fd.fd < 0: free
    char      in[STAND_IN];
    size_t    len;
    uint32_t  requests;  // on this connection
} ApiConn;

typedef struct ApiRequest {     // texts are 0-terminated
    const char *method, *path;  // path with its query
    const char *head;           // all header lines
    const char *body;
} ApiRequest;

struct ApiStand {
    Loop    *loop;
    LoopFd   listener;
    ApiConn *conns;  // [STAND_CONNS]
    char     url[STAND_URL];
    bool     rejects;  // resets connections before reading
    uint32_t accepted, requests;
    void (*request)(void *self, ApiConn *c, const ApiRequest *r);
    void *self;
};

void api_stand_open(ApiStand *s, Loop *l, void (*request)(void *, ApiConn *, const ApiRequest *),
                    void *self);
void api_stand_close(ApiStand *s);
void api_conn_send(ApiConn *c, const char *bytes, size_t len);
void api_conn_say(ApiConn *c, const char *text);
// A whole response; extra: header lines, each with its end, or "".
void api_conn_answer(ApiConn *c, int status, const char *extra, const char *body);
void api_conn_begin_lines(ApiConn *c);              // of a watch, chunked
void api_conn_line(ApiConn *c, const char *text);   // with a newline added
void api_conn_chunk(ApiConn *c, const char *text);  // as it is
void api_conn_end_lines(ApiConn *c);
void api_conn_close(ApiConn *c);  // FIN
void api_conn_reset(ApiConn *c);  // RST

// Client internals: connections of either protocol behind one set of functions.
#pragma once

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "net/client.h"
#include "net/response_parser.h"

typedef struct ClientStream {  // a call on an HTTP/2 connection
    struct ClientConn   *line;
    struct ClientStream *next_free, *next_all;
    ClientCall          *call;  // NULL: cancelled
    int32_t              id;
    size_t               sent;  // of the request's body
    ResponseBody         body;
    uint32_t             status, grpc;
    size_t               json_len;
    char                 message[160];
} ClientStream;

typedef enum ClientLineState { LINE_CLOSED, LINE_CONNECTING, LINE_OPEN } ClientLineState;

typedef struct ClientConn {  // a connection; the record is reused after it was closed
    Client            *client;
    ClientLineState    state;
    LoopFd             fd;
    struct ClientConn *next_free;  // closed, or HTTP/1.1 and idle
    uint64_t           answers;    // since it was opened
    ClientCall        *call;       // HTTP/1.1
    size_t             written;    // of its head and body
    ResponseParser     reading;
    nghttp2_session   *session;  // HTTP/2
    uint32_t           streams;
    unsigned char     *out;  // [CLIENT_OUT] frames that are not written yet
    size_t             out_at, out_len;
    bool               taking;            // inside nghttp2's receive: nothing may be written
    bool               settled, leaving;  // SETTINGS received, GOAWAY received
} ClientConn;

enum { CLIENT_OUT = 256 * 1024, CLIENT_IN = 256 * 1024 };

struct Client {
    Loop                      *loop;
    ClientOptions              options;
    struct sockaddr_storage    address;
    socklen_t                  address_len;
    ClientConn                *conns;  // [options.connections]
    ClientConn                *closed, *idle;
    uint32_t                   n_used;                // connections ever opened
    ClientCall                *first, *last;          // all, in the order of client_submit
    ClientCall                *waits, *waits_last;    // waiting for a connection
    ClientCall                *faults, *faults_last;  // done() is pending
    LoopTimer                  sweep;
    nghttp2_session_callbacks *callbacks;
    ClientStream              *free_streams, *all_streams;
    ClientCounts               counts;
    char                       in[CLIENT_IN];
};

// client.c
void client_done(Client *c, ClientCall *call, const ClientReply *r);
void client_fail(Client *c, ClientCall *call, const char *fault);  // done() is called later
void client_again(Client *c, ClientCall *call);                    // on another connection
void client_next(Client *c);  // starts waiting calls while connections are free

// client_line.c
bool client_conn_open(ClientConn *l, const char **fault);
void client_conn_close(ClientConn *l, const char *fault);  // its calls fail
bool client_conn_connected(ClientConn *l, const char **fault);

// client_http1.c
void client_http1_send(ClientConn *l);  // sends the rest of its call
void client_http1_ready(ClientConn *l, uint32_t events);
// client_http2.c
bool client_http2_begin(ClientConn *l);
bool client_http2_takes(ClientConn *l);                     // one more stream
bool client_http2_submit(ClientConn *l, ClientCall *call);  // false: no memory
void client_http2_cancel(ClientStream *s);
void client_http2_ready(ClientConn *l, uint32_t events);
void client_http2_end(ClientConn *l, const char *fault);
bool client_http2_flush(ClientConn *l);
nghttp2_session_callbacks *client_http2_callbacks(void);  // NULL: no memory

// Http1Server: an HTTP/1.1 server for tests on its own thread, and a client that sends raw bytes.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "net/listener.h"

// Responses by path: /echo the body, /later?N the same after N ms (2), /early 503 from head(),
// /big?N N bytes, /hold none, /aligned?N (address of the body + N) mod 64, /close the body, then
// closes, /none 204, /packed the body as it was sent, /extra?N an invalid header and one of N
// bytes. Any other: 404. The query "most=N" limits the body on any path.
typedef struct Http1Server Http1Server;

Http1Server *http1_server_open(const ListenerLimits *limits);  // on a free port of the loopback
// The budget is the listener's, and /big is charged to it: 503 when it is used up.
Http1Server *http1_server_open_shared(const ListenerLimits *limits, const char *address, Budget *b);
Http1Server *http1_server_open_at(const ListenerLimits *limits, const char *address);
void         http1_server_close(Http1Server *h);  // asserts that every exchange has ended
const char  *http1_server_address(const Http1Server *h);
ListenerCounts http1_server_counts(Http1Server *h);  // as of now
void           http1_server_drain(Http1Server *h);
bool           http1_server_drained(Http1Server *h);
int http1_server_heads(const Http1Server *h), http1_server_requests(const Http1Server *h),
    http1_server_ended(const Http1Server *h);
int http1_server_lost(const Http1Server *h);  // exchanges that ended before their response was sent

int    http1_server_connect(const Http1Server *h);  // a blocking socket with a timeout of 5 s
void   http1_server_send(int fd, const char *bytes, size_t len);
void   http1_server_text(int fd, const char *text);
size_t http1_server_receive(int fd, char *out,
                            size_t size);  // until the end or an error; terminated
// Reads one response: returns its status, writes the body, terminated. 0: the connection ended.
int http1_server_answer(int fd, char *body, size_t size);
// Sends text on a new connection and returns the status of the first response; 0: none.
int http1_server_ask(const Http1Server *h, const char *text);

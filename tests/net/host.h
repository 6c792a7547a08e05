// Host: a listener with a simple handler on a thread of its own, and a client that speaks raw
// bytes.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "net/listener.h"

// What it answers, by path: /echo the body, /later the same after a moment, /early in head() with
// 503, /big?N N bytes, /hold nothing, /aligned?N the body's address + N modulo 64, /close the body
// and closes, /none 204, /extra?N a header that is no header, and one of N bytes. Any other: 404. A
// query "most=N" limits the body, at any path.
typedef struct Host Host;

Host          *host_open(const ListenerLimits *limits);  // on a free port of the loopback
Host          *host_open_at(const ListenerLimits *limits, const char *address);
void           host_close(Host *h);  // all that was begun must have ended
const char    *host_address(const Host *h);
ListenerCounts host_counts(Host *h);  // as of now
void           host_drain(Host *h);
bool           host_drained(Host *h);
int            host_heads(const Host *h), host_requests(const Host *h), host_ended(const Host *h);
int            host_lost(const Host *h);  // ended without an answer that was sent

int    host_connect(const Host *h);  // a socket that waits; gives up after 5 s
void   host_send(int fd, const char *bytes, size_t len);
void   host_text(int fd, const char *text);
size_t host_receive(int fd, char *out, size_t size);  // until the end or an error; terminated
// One answer: its status; the body to *body of size, terminated. 0: the connection ended.
int host_answer(int fd, char *body, size_t size);
// All at once on a connection of its own: the status of the first answer, 0: none.
int host_ask(const Host *h, const char *text);

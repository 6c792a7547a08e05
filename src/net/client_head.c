#include <stdio.h>
#include <string.h>

#include "net/client_int.h"

static size_t put(char *to, size_t room, size_t at, const char *text, size_t len) {
    if (len <= room - at) memcpy(to + at, text, len);
    return len <= room - at ? at + len : room;
}

static size_t put_text(char *to, size_t room, size_t at, const char *text) {
    return put(to, room, at, text, strlen(text));
}

static size_t put_authority(const Client *c, char *to, size_t room, size_t at) {
    bool v6 = strchr(c->options.host, ':') != NULL;
    at = put_text(to, room, at, v6 ? "[" : "");
    at = put_text(to, room, at, c->options.host);
    at = put_text(to, room, at, v6 ? "]:" : ":");
    return put_text(to, room, at, c->options.port);
}

static size_t put_head(const Client *c, const ClientRequest *r, char *to, size_t room) {
    char   length[64];
    size_t at = put_text(to, room, 0, r->method);
    at = put_text(to, room, at, " ");
    at = put_text(to, room, at, r->path);
    at = put_text(to, room, at, " HTTP/1.1\r\nHost: ");
    at = put_authority(c, to, room, at);
    for (uint32_t i = 0; i < r->n_headers; i++) {
        at = put_text(to, room, at, "\r\n");
        at = put(to, room, at, r->headers[i].name.at, r->headers[i].name.len);
        at = put_text(to, room, at, ": ");
        at = put(to, room, at, r->headers[i].value.at, r->headers[i].value.len);
    }
    (void)snprintf(length, sizeof length, "\r\nContent-Length: %zu", r->body.iov_len);
    if (r->body.iov_len > 0 || strcmp(r->method, "POST") == 0) at = put_text(to, room, at, length);
    return put_text(to, room, at, "\r\n\r\n");
}

Err client_prepare(const Client *c, ClientRequest *r, Arena *a) {
    enum { ROOM = 8192 };
    bool  http2 = c->options.protocol == CLIENT_HTTP2;
    char *head = arena_try(a, ROOM, 1, 1);
    if (head == NULL) return err_set(ERR_LIMIT, "no memory for a request's head");
    size_t len = http2 ? put_authority(c, head, ROOM, 0) : put_head(c, r, head, ROOM);
    if (len == ROOM) return err_set(ERR_LIMIT, "%s %.40s...: too long", r->method, r->path);
    r->head = (struct iovec){head, len};
    return ERR_OK;
}

#include "tests/net/h2_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(bool ok) {
    if (!ok) abort();
}

bool h2_client_write(H2Client *p, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len > 0) {
        struct pollfd w = {.fd = p->fd, .events = POLLOUT};
        if (poll(&w, 1, 10000) != 1) return false;
        ssize_t n = send(p->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n < 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool h2_client_frame(H2Client *p, uint8_t type, uint8_t flags, int32_t id, const void *payload,
                     size_t len) {
    unsigned char *f = malloc(9 + len);
    must(f != NULL);
    f[0] = (unsigned char)(len >> 16), f[1] = (unsigned char)(len >> 8), f[2] = (unsigned char)len;
    f[3] = type, f[4] = flags;
    for (int i = 0; i < 4; i++) f[5 + i] = (unsigned char)((uint32_t)id >> (24 - 8 * i));
    if (len > 0) memcpy(f + 9, payload, len);
    bool ok = h2_client_write(p, f, 9 + len);
    free(f);
    return ok;
}

void h2_client_close(H2Client *p) {
    close(p->fd);
    nghttp2_hd_inflate_del(p->inflater);
    free(p->body);
}

static size_t literal(unsigned char *to, const char *name, const char *value) {
    size_t n = strlen(name), v = strlen(value);
    must(n < 127 && v < 127 + 128);
    size_t at = 0;
    to[at++] = 0x00;
    to[at++] = (unsigned char)n;
    memcpy(to + at, name, n);
    at += n;
    to[at++] = (unsigned char)(v < 127 ? v : 127);
    if (v >= 127) to[at++] = (unsigned char)(v - 127);
    memcpy(to + at, value, v);
    return at + v;
}

size_t h2_client_block(unsigned char *to, const char *method, const char *path,
                       const char *const *more) {
    size_t n = literal(to, ":method", method);
    n += literal(to + n, ":scheme", "http");
    n += literal(to + n, ":path", path);
    n += literal(to + n, ":authority", "here");
    for (; more != NULL && more[0] != NULL; more += 2) n += literal(to + n, more[0], more[1]);
    return n;
}

bool h2_client_headers(H2Client *p, int32_t id, const char *path, bool end) {
    static const char *const grpc[] = {"content-type", "application/grpc", "te", "trailers", NULL};
    unsigned char            block[1024];
    size_t                   n = h2_client_block(block, "POST", path, grpc);
    uint8_t                  flags = NGHTTP2_FLAG_END_HEADERS | (end ? NGHTTP2_FLAG_END_STREAM : 0);
    return h2_client_frame(p, NGHTTP2_HEADERS, flags, id, block, n);
}

bool h2_client_data(H2Client *p, int32_t id, const void *bytes, size_t len, bool end) {
    const char *at = bytes;
    for (; len > 16384; at += 16384, len -= 16384)
        if (!h2_client_frame(p, NGHTTP2_DATA, 0, id, at, 16384)) return false;
    return h2_client_frame(p, NGHTTP2_DATA, end ? NGHTTP2_FLAG_END_STREAM : 0, id, at, len);
}

static void number(unsigned char to[4], uint32_t v) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(v >> (24 - 8 * i));
}

static uint32_t number_at(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool h2_client_reset(H2Client *p, int32_t id, uint32_t code) {
    unsigned char b[4];
    number(b, code);
    return h2_client_frame(p, NGHTTP2_RST_STREAM, 0, id, b, 4);
}

static bool read_all(H2Client *p, void *to, size_t len, int wait_ms) {
    char *at = to;
    while (len > 0) {
        struct pollfd w = {.fd = p->fd, .events = POLLIN};
        if (poll(&w, 1, wait_ms) != 1) return false;
        ssize_t n = recv(p->fd, at, len, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) {
            p->closed = true;
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool h2_client_read(H2Client *p, H2Frame *f, int wait_ms) {
    unsigned char head[9];
    if (!read_all(p, head, 9, wait_ms)) return false;
    f->len = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    f->type = head[3], f->flags = head[4];
    f->id = (int32_t)(number_at(head + 5) & 0x7fffffff);
    must(f->len <= sizeof f->payload);
    return read_all(p, f->payload, f->len, wait_ms);
}

H2Client h2_client_open(const char *address, bool raw) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    H2Client           p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int                one = 1;
    static H2Frame     f;
    const char        *colon = strrchr(address, ':');
    must(p.fd >= 0 && colon != NULL);
    a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    must(connect(p.fd, (struct sockaddr *)&a, sizeof a) == 0);
    must(setsockopt(p.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    must(nghttp2_hd_inflate_new(&p.inflater) == 0);
    if (!raw) {
        must(h2_client_write(&p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24));
        must(h2_client_frame(&p, NGHTTP2_SETTINGS, 0, 0, NULL, 0));
        must(h2_client_read(&p, &f, 10000) && f.type == NGHTTP2_SETTINGS);
        must(h2_client_frame(&p, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0));
    }
    return p;
}

static void read_block(H2Client *p, const H2Frame *f, bool mine) {
    const unsigned char *at = f->payload;
    size_t               left = f->len;
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
        nghttp2_nv nv;
        flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(p->inflater, &nv, &flags, at, left, 1);
        must(n >= 0);
        at += n;
        left -= (size_t)n;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 || !mine) continue;
        char name[64], value[512];
        (void)snprintf(name, sizeof name, "%.*s", (int)nv.namelen, (char *)nv.name);
        (void)snprintf(value, sizeof value, "%.*s", (int)nv.valuelen, (char *)nv.value);
        if (strcmp(name, ":status") == 0) p->status = (uint32_t)strtoul(value, NULL, 10);
        if (strcmp(name, "grpc-status") == 0) p->grpc = (uint32_t)strtoul(value, NULL, 10);
        if (strcmp(name, "grpc-message") == 0)
            (void)snprintf(p->message, sizeof p->message, "%s", value);
    }
    (void)nghttp2_hd_inflate_end_headers(p->inflater);
}

static void read_data(H2Client *p, const H2Frame *f, bool generous) {
    unsigned char b[4];
    p->body = realloc(p->body, p->body_len + f->len + 1);
    must(p->body != NULL);
    memcpy(p->body + p->body_len, f->payload, f->len);
    p->body_len += f->len;
    if (!generous || f->len == 0) return;
    number(b, f->len);
    (void)h2_client_frame(p, NGHTTP2_WINDOW_UPDATE, 0, 0, b, 4);
    (void)h2_client_frame(p, NGHTTP2_WINDOW_UPDATE, 0, f->id, b, 4);
}

void h2_client_answer(H2Client *p, int32_t id, bool generous, int wait_ms) {
    static H2Frame f;
    p->status = p->grpc = p->reset = p->goaway = UINT32_MAX;
    p->body_len = 0;
    p->ended = false;
    p->message[0] = '\0';
    while (!p->ended && h2_client_read(p, &f, wait_ms)) {
        bool mine = f.id == id;
        if (f.type == NGHTTP2_HEADERS) read_block(p, &f, mine);
        if (f.type == NGHTTP2_DATA && mine) read_data(p, &f, generous);
        if (f.type == NGHTTP2_PING && (f.flags & NGHTTP2_FLAG_ACK) == 0)
            (void)h2_client_frame(p, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, f.payload, 8);
        if (f.type == NGHTTP2_SETTINGS && (f.flags & NGHTTP2_FLAG_ACK) == 0)
            (void)h2_client_frame(p, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
        if (f.type == NGHTTP2_RST_STREAM && mine) p->reset = number_at(f.payload);
        if (f.type == NGHTTP2_GOAWAY) p->goaway = number_at(f.payload + 4);
        bool body = f.type == NGHTTP2_DATA || f.type == NGHTTP2_HEADERS;
        p->ended = mine && ((body && (f.flags & NGHTTP2_FLAG_END_STREAM) != 0) ||
                            f.type == NGHTTP2_RST_STREAM);
    }
}

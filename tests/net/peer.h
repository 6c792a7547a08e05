// Peer: a client of HTTP/2 that sends the frames it is told to, right or wrong. For tests.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

typedef struct PeerFrame {
    uint32_t      len;
    uint8_t       type, flags;
    int32_t       id;
    unsigned char payload[16384 + 256];
} PeerFrame;

typedef struct Peer {
    int                  fd;
    nghttp2_hd_inflater *inflater;
    // Of the stream that peer_answer looked at
    uint32_t       status, grpc;  // UINT32_MAX: none
    char           message[512];
    unsigned char *body;  // freed by peer_close
    size_t         body_len;
    uint32_t       reset;   // RST_STREAM's code; UINT32_MAX: none
    uint32_t       goaway;  // GOAWAY's code; UINT32_MAX: none
    bool           ended;   // END_STREAM
    bool           closed;  // the connection
} Peer;

// address: "127.0.0.1:PORT". Sends the preface and empty SETTINGS unless raw.
Peer peer_open(const char *address, bool raw);
void peer_close(Peer *p);
bool peer_write(Peer *p, const void *bytes, size_t len);  // false: the server has closed
bool peer_frame(Peer *p, uint8_t type, uint8_t flags, int32_t id, const void *payload, size_t len);
// A block of headers, literal; returns its length.
size_t peer_block(unsigned char *to, const char *method, const char *path, const char *const *more);
bool   peer_headers(Peer *p, int32_t id, const char *path, bool end);  // POST, as gRPC does
bool   peer_data(Peer *p, int32_t id, const void *bytes, size_t len, bool end);
bool   peer_reset(Peer *p, int32_t id, uint32_t code);
// The next frame; false: closed, or nothing within wait_ms.
bool peer_read(Peer *p, PeerFrame *f, int wait_ms);
// Reads until the stream ended or the connection closed; PINGs and SETTINGS are acknowledged.
// Windows are opened as data comes if `generous`.
void peer_answer(Peer *p, int32_t id, bool generous, int wait_ms);

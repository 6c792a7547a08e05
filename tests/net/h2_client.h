// H2Client: an HTTP/2 client for tests that sends any frames, valid or not.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

typedef struct H2Frame {
    uint32_t      len;
    uint8_t       type, flags;
    int32_t       id;
    unsigned char payload[16384 + 256];
} H2Frame;

typedef struct H2Client {
    int                  fd;
    nghttp2_hd_inflater *inflater;
    // Of the stream last given to h2_client_answer
    uint32_t       status, grpc;  // UINT32_MAX: none
    char           message[512];
    unsigned char *body;  // freed by h2_client_close
    size_t         body_len;
    uint32_t       reset;   // RST_STREAM's code; UINT32_MAX: none
    uint32_t       goaway;  // GOAWAY's code; UINT32_MAX: none
    bool           ended;   // END_STREAM
    bool           closed;  // the connection
} H2Client;

// address: "127.0.0.1:PORT". Sends the preface and empty SETTINGS unless raw.
H2Client h2_client_open(const char *address, bool raw);
void     h2_client_close(H2Client *p);
bool h2_client_write(H2Client *p, const void *bytes, size_t len);  // false: the server has closed
bool h2_client_frame(H2Client *p, uint8_t type, uint8_t flags, int32_t id, const void *payload,
                     size_t len);
// A block of headers, literal; returns its length.
size_t h2_client_block(unsigned char *to, const char *method, const char *path,
                       const char *const *more);
bool h2_client_headers(H2Client *p, int32_t id, const char *path, bool end);  // POST, as gRPC does
bool h2_client_data(H2Client *p, int32_t id, const void *bytes, size_t len, bool end);
bool h2_client_reset(H2Client *p, int32_t id, uint32_t code);
// The next frame; false: closed, or nothing within wait_ms.
bool h2_client_read(H2Client *p, H2Frame *f, int wait_ms);
// Reads until the stream ended or the connection closed; PINGs and SETTINGS are acknowledged.
// If `generous`, flow-control windows are reopened as data arrives.
void h2_client_answer(H2Client *p, int32_t id, bool generous, int wait_ms);

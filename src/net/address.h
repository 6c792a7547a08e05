// Address: where a listener listens: "127.0.0.1:8000", "[::1]:0", "localhost:80",
// "unix:/run/x.sock".
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"

enum { ADDRESS_TEXT = 128 };

typedef struct Address {
    union {
        struct sockaddr     any;
        struct sockaddr_in  v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un  local;
    };
    socklen_t len;
} Address;

MUST_USE Err address_read(const char *text, Address *out);  // names are not looked up
// The address of a loopback name (localhost, a name below it, ip6-localhost), which needs no
// resolver; NULL: it is none.
const char *address_loopback(const char *host);
bool        address_is_local(const Address *a);  // loopback or a Unix socket
void        address_text(const Address *a, char out[ADDRESS_TEXT]);

// Opens a non-blocking listening socket; port 0 becomes the port that was assigned.
MUST_USE Err address_listen(Address *a, int *fd);

#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESS_BACKLOG = 1024 };

static Err address_read_local(const char *path, Address *out) {
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof out->local.sun_path)
        return err_set(ERR_ARG, "unix:%s: the path must have 1 to %zu bytes", path,
                       sizeof out->local.sun_path - 1);
    *out = (Address){.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1)};
    out->local.sun_family = AF_UNIX;
    memcpy(out->local.sun_path, path, len + 1);
    return ERR_OK;
}

static bool address_port(const char *text, in_port_t *out) {
    unsigned port = 0;
    size_t   n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 5; n++)
        port = port * 10 + (unsigned)(text[n] - '0');
    *out = htons((uint16_t)port);
    return n > 0 && text[n] == '\0' && port <= 65535;
}

const char *address_loopback(const char *host) {
    static const char name[] = "localhost";
    size_t            n = strlen(host), len = sizeof name - 1;
    if (n > 1 && host[n - 1] == '.') n--;
    if (n == 13 && strncasecmp(host, "ip6-localhost", n) == 0) return "::1";
    if (n == 12 && strncasecmp(host, "ip6-loopback", n) == 0) return "::1";
    if (n < len || strncasecmp(host + n - len, name, len) != 0) return NULL;
    return n == len || (n > len + 1 && host[n - len - 1] == '.') ? "127.0.0.1" : NULL;
}

static bool address_host(const char *host, bool v6, in_port_t port, Address *out) {
    const char *loopback = v6 ? NULL : address_loopback(host);
    if (loopback) {
        host = loopback;
        v6 = strchr(host, ':') != NULL;
    }
    *out = (Address){.len = v6 ? sizeof out->v6 : sizeof out->v4};
    if (v6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = port;
        return inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1;
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = port;
    return inet_pton(AF_INET, host, &out->v4.sin_addr) == 1;
}

Err address_read(const char *text, Address *out) {
    if (strncmp(text, "unix:", 5) == 0) return address_read_local(text + 5, out);
    const char *colon = strrchr(text, ':');
    char        host[INET6_ADDRSTRLEN + 2];
    size_t      len = colon ? (size_t)(colon - text) : sizeof host;
    in_port_t   port = 0;
    bool        ok = len < sizeof host && address_port(colon + 1, &port);
    if (ok) {
        bool v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';
        memcpy(host, text + v6, len - 2 * v6);
        host[len - 2 * v6] = '\0';
        ok = address_host(host, v6, port, out);
    }
    if (ok) return ERR_OK;
    return err_set(ERR_ARG,
                   "%.200s is no address: write 127.0.0.1:8000, [::1]:8000 or unix:/path/name.sock",
                   text);
}

bool address_is_local(const Address *a) {
    if (a->any.sa_family == AF_UNIX) return true;
    if (a->any.sa_family == AF_INET) return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *v6 = &a->v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

void address_text(const Address *a, char out[ADDRESS_TEXT]) {
    char host[INET6_ADDRSTRLEN] = "";
    if (a->any.sa_family == AF_UNIX) {
        snprintf(out, ADDRESS_TEXT, "unix:%s", a->local.sun_path);
    } else if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
        snprintf(out, ADDRESS_TEXT, "%s:%u", host, ntohs(a->v4.sin_port));
    } else {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
        snprintf(out, ADDRESS_TEXT, "[%s]:%u", host, ntohs(a->v6.sin6_port));
    }
}

// A killed server leaves its socket file behind: it is replaced unless a connect succeeds.
static void address_clear(const Address *a) {
    struct stat st;
    if (lstat(a->local.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    if (connect(fd, &a->any, a->len) != 0 && errno == ECONNREFUSED) unlink(a->local.sun_path);
    close(fd);
}

static Err address_bind(Address *a, int fd) {
    int  one = 1;
    bool local = a->any.sa_family == AF_UNIX;
    char text[ADDRESS_TEXT];
    address_text(a, text);
    if (local) {
        address_clear(a);
        if (fchmod(fd, 0660) != 0) return err_set(ERR_IO, "%s: %s", text, strerror(errno));
    } else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0) {
        return err_set(ERR_IO, "%s: %s", text, strerror(errno));
    }
    if (bind(fd, &a->any, a->len) != 0)
        return err_set(ERR_IO, "cannot listen at %s: %s%s", text, strerror(errno),
                       errno == EADDRINUSE ? "; another server? choose another port" : "");
    if (listen(fd, ADDRESS_BACKLOG) != 0)
        return err_set(ERR_IO, "cannot listen at %s: %s", text, strerror(errno));
    socklen_t len = sizeof a->v6;
    if (!local && getsockname(fd, &a->any, &len) != 0)
        return err_set(ERR_IO, "%s: %s", text, strerror(errno));
    return ERR_OK;
}

Err address_listen(Address *a, int *out) {
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return err_set(ERR_IO, "cannot create a socket: %s", strerror(errno));
    Err e = address_bind(a, fd);
    if (e != ERR_OK) {
        close(fd);
        return e;
    }
    *out = fd;
    return ERR_OK;
}

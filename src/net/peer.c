#include "net/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static uint64_t peer_v4(uint32_t host) { return host >> 24 == 127 ? (uint64_t)127 << 24 : host; }

// The upper half of an IPv6 address is 0 only for loopback and mapped IPv4.
static uint64_t peer_v6(const struct in6_addr *a) {
    uint64_t network = 0;
    uint32_t mapped = 0;
    memcpy(&mapped, a->s6_addr + 12, sizeof mapped);
    memcpy(&network, a->s6_addr, sizeof network);
    return IN6_IS_ADDR_V4MAPPED(a) ? peer_v4(ntohl(mapped)) : network;
}

bool peer_key(int fd, uint64_t *out) {
    union {
        struct sockaddr         any;
        struct sockaddr_in      v4;
        struct sockaddr_in6     v6;
        struct sockaddr_storage room;
    } a = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t len = sizeof a;
    if (getpeername(fd, &a.any, &len) != 0) return false;
    if (a.any.sa_family == AF_INET)
        *out = peer_v4(ntohl(a.v4.sin_addr.s_addr));
    else if (a.any.sa_family == AF_INET6)
        *out = peer_v6(&a.v6.sin6_addr);
    else
        return false;
    return true;
}

static uint32_t peer_bucket(uint64_t key) {
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 56) % PEER_BUCKETS;
}

Peer *peer_find(const PeerTable *t, uint64_t key) {
    Peer *p = t->buckets[peer_bucket(key)];
    while (p && p->key != key) p = p->next;
    return p;
}

Peer *peer_open(PeerTable *t, uint64_t key) {
    Peer *p = peer_find(t, key);
    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p) return NULL;
        p->key = key;
        p->next = t->buckets[peer_bucket(key)];
        t->buckets[peer_bucket(key)] = p;
    }
    p->open++;
    return p;
}

void peer_close(PeerTable *t, Peer *p) {
    if (--p->open > 0) return;
    Peer **at = &t->buckets[peer_bucket(p->key)];
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    free(p);
}

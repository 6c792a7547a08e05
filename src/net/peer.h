// Peer: a client address, and what its connections hold.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Stream Stream;

// Eviction classes of connections.
typedef enum StreamUse {
    STREAM_BUSY,   // a request is complete and its response not made, or being written
    STREAM_STALL,  // a response waits for the client to read
    STREAM_PART,   // a request is incomplete
    STREAM_IDLE,   // between requests
    STREAM_NEW,    // no request was ever complete
    STREAM_USES
} StreamUse;

typedef struct StreamList {
    Stream *first, *last;
} StreamList;

typedef struct Peer {
    uint64_t     key;
    uint32_t     open;    // connections
    size_t       unread;  // bytes of responses that they have not read
    StreamList   uses[STREAM_USES];
    struct Peer *next;
} Peer;

enum { PEER_BUCKETS = 256 };

typedef struct PeerTable {  // zeroed: empty
    Peer *buckets[PEER_BUCKETS];
} PeerTable;

// The client of a socket. All of 127.0.0.0/8, and an IPv6 network of /64, are one. False: it has no
// address (a Unix socket).
bool  peer_key(int fd, uint64_t *out);
Peer *peer_find(const PeerTable *t, uint64_t key);  // NULL: it has no connection
Peer *peer_open(PeerTable *t, uint64_t key);        // counts a connection; NULL: no memory
void  peer_close(PeerTable *t, Peer *p);            // freed with its last connection

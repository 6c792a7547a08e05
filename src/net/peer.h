// Peer: a client address, and what its connections hold.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Stream Stream;

// Connections with requests that come in, or between requests, are told apart by how often
// they have waited for a response before the next request: at most 1, 2 or 3, 4 to 7, and so on; 64
// or more. Requests sent without waiting count once.
enum { STREAM_CLASSES = 7 };

// Uses of a connection. Their values are indices of lists.
typedef enum StreamUse {
    STREAM_BUSY,                                 // a request is complete, its response not sent
    STREAM_STALL,                                // a response waits for the client to read
    STREAM_NEW,                                  // no request was ever complete
    STREAM_PART,                                 // a request is incomplete
    STREAM_IDLE = STREAM_PART + STREAM_CLASSES,  // between requests
    STREAM_USES = STREAM_IDLE + STREAM_CLASSES
} StreamUse;

typedef struct StreamList {
    Stream  *first, *last;
    uint32_t n;
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

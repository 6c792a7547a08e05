// Listener internals, shared by listener.c and stream.c.
#pragma once

#include "net/address.h"
#include "net/stream.h"

enum { LISTENER_DATE = 40 };

struct Listener {
    Loop             *loop;
    ListenerOptions   options;  // limits are filled in
    const StreamKind *kind;
    Address           address;
    char              text[ADDRESS_TEXT];
    dev_t             file_dev;  // of the Unix socket's file, so that only this one is unlinked
    ino_t             file_ino;
    LoopFd            watch;
    LoopTimer         retry;            // accept again
    LoopTimer         reap;             // frees closed streams; trims the pools
    Stream           *oldest, *newest;  // open
    Stream           *dead;             // closed in this round
    StreamList        uses[STREAM_USES], unread;
    PeerTable         peers;
    Peer             *heaviest;  // with most connections, as far as known; NULL: unknown
    TimeNs            futile;    // when closing late responses last made no room
    uint32_t          room;      // connections that the descriptor limit allows, as known now
    SlabPool         *slabs, *pages;
    ListenerCounts    counts;
    TimeNs            trimmed;
    TimeNs            date_until;
    size_t            date_len;
    char              date[LISTENER_DATE];
    bool              draining;
};

void listener_reap_soon(Listener *l, TimeNs at);  // listener.c

// listener_evict.c
// The stream to close for a new connection from this peer (NULL: any, or none); NULL: all are busy.
Stream *listener_victim(const Listener *l, const Peer *newcomer);
bool listener_make_room(Listener *l, size_t bytes);  // closes late responses; false: there are none

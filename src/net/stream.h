// Stream: an accepted connection: socket, timer, and its place among the listener's connections.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include "net/listener.h"
#include "net/slab.h"

typedef struct Stream Stream;

// What a protocol does with connections. Any of these may call stream_close.
typedef struct StreamKind {
    size_t bytes;            // of a connection; a Stream is its first member, the rest is zeroed
    Err (*open)(Stream *s);  // fails: the listener closes it, without finish()
    void (*ready)(Stream *s, uint32_t events);  // EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR
    void (*expire)(Stream *s);                  // its timer
    void (*drain)(Stream *s);                   // answer what is due and close; called once
    void (*finish)(Stream *s);  // by stream_close: ended() for open exchanges, memory given back
} StreamKind;

extern const StreamKind stream_http1, stream_http2;

// How much is lost by closing it: when connections run out, the oldest of the last kind has to go.
typedef enum StreamUse {
    STREAM_BUSY,  // a request or its answer is under way
    STREAM_IDLE,  // between requests
    STREAM_NEW,   // no request was ever complete
} StreamUse;

struct Stream {
    LoopFd            watch;  // looks for EPOLLIN at first
    LoopTimer         timer;
    TimeNs            due;  // what the timer is for; it may go off before that, and is set again
    const StreamKind *kind;
    Listener         *listener;
    Stream           *next, *prev;  // oldest first
    StreamUse         use;          // STREAM_NEW at first; the protocol sets it
    bool              draining;
    bool              closed;  // the memory stays until the loop's next round
};

enum { STREAM_END = 0, STREAM_LATER = -1, STREAM_BROKEN = -2 };

// Bytes that were read or written, or one of the above.
ssize_t stream_read(Stream *s, void *to, size_t size);
ssize_t stream_write(Stream *s, struct iovec *pieces, size_t n);
void    stream_want(Stream *s, uint32_t events);  // EPOLLIN, EPOLLOUT; no system call if the same
void    stream_arm(Stream *s, TimeNs at);         // INT64_MAX: never; cannot fail
void    stream_close(Stream *s);                  // once; calls finish()
void    stream_leave(Stream *s);  // the same, but the client gets all that was written
TimeNs  stream_now(const Stream *s);

// The listener's, none of them 0.
const ListenerLimits  *stream_limits(const Stream *s);
const ExchangeHandler *stream_handler(const Stream *s);
ListenerCounts        *stream_counts(Stream *s);  // requests and bad: the protocol counts them
SlabPool              *stream_slabs(Stream *s);   // for bodies: within held_bytes
SlabPool              *stream_pages(Stream *s);   // for heads and buffers: connections are bounded
Str                    stream_date(Stream *s);    // "Date: ...\r\n", now

// Takes over a connected socket, whatever comes of it; NULL: it was closed.
Stream *stream_adopt(Listener *l, int fd);

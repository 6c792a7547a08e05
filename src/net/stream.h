// Stream: an accepted connection: socket, timer, and its entry in the listener's list.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include "net/listener.h"
#include "net/slab.h"

typedef struct Stream Stream;

// Callbacks of a protocol. Any of these may call stream_close.
typedef struct StreamKind {
    size_t bytes;            // of a connection; a Stream is its first member, the rest is zeroed
    Err (*open)(Stream *s);  // fails: the listener closes it, without finish()
    void (*ready)(Stream *s, uint32_t events);  // EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR
    void (*expire)(Stream *s);                  // its timer
    void (*drain)(Stream *s);                   // send pending responses and close; called once
    void (*finish)(Stream *s);  // by stream_close: calls ended() for open exchanges, frees memory
} StreamKind;

extern const StreamKind stream_http1, stream_http2;

// Eviction classes: when connections run out, the oldest stream of the last class is closed.
typedef enum StreamUse {
    STREAM_BUSY,  // a request or response is in progress
    STREAM_IDLE,  // between requests
    STREAM_NEW,   // no request was ever complete
} StreamUse;

struct Stream {
    LoopFd            watch;  // initially EPOLLIN
    LoopTimer         timer;
    TimeNs            due;  // deadline; the timer may fire earlier and is rearmed
    const StreamKind *kind;
    Listener         *listener;
    Stream           *next, *prev;  // oldest first
    StreamUse         use;          // STREAM_NEW at first; the protocol sets it
    bool              draining;
    bool              closed;  // freed in the loop's next iteration
};

enum { STREAM_END = 0, STREAM_LATER = -1, STREAM_BROKEN = -2 };

// Bytes read or written, or one of the above.
ssize_t stream_read(Stream *s, void *to, size_t size);
ssize_t stream_write(Stream *s, struct iovec *pieces, size_t n);
void    stream_want(Stream *s, uint32_t events);  // EPOLLIN, EPOLLOUT; no system call if the same
void    stream_arm(Stream *s, TimeNs at);         // INT64_MAX: never; cannot fail
void    stream_close(Stream *s);                  // once; calls finish()
void    stream_leave(Stream *s);  // the same, after the client received all that was written
TimeNs  stream_now(const Stream *s);

// The listener's limits, defaults filled in.
const ListenerLimits  *stream_limits(const Stream *s);
const ExchangeHandler *stream_handler(const Stream *s);
ListenerCounts        *stream_counts(Stream *s);  // requests and bad: the protocol counts them
SlabPool              *stream_slabs(Stream *s);   // for bodies; limited by held_bytes
SlabPool *stream_pages(Stream *s);  // for heads and buffers; bounded by the number of connections
Str       stream_date(Stream *s);   // "Date: ...\r\n", now

// Takes ownership of a connected socket; NULL: it was closed.
Stream *stream_adopt(Listener *l, int fd);

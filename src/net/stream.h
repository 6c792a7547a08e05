// Stream: an accepted connection: socket, timer, and its entry in the listener's list.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "net/listener.h"
#include "net/peer.h"
#include "net/slab.h"

// Callbacks of a protocol. Any of these may call stream_close.
typedef struct StreamKind {
    size_t bytes;            // of a connection; a Stream is its first member, the rest is zeroed
    Err (*open)(Stream *s);  // fails: the listener closes it, without finish()
    void (*ready)(Stream *s, uint32_t events);  // EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR
    void (*expire)(Stream *s);                  // its timer
    void (*drain)(Stream *s);                   // send pending responses and close; called once
    void (*finish)(Stream *s);  // by stream_close: calls ended() for open exchanges, frees memory
    // Bytes of a response charged to b that its client reads too slowly; 0: none. end: closes it.
    size_t (*late)(Stream *s, const Budget *b, bool end);
} StreamKind;

extern const StreamKind stream_http1, stream_http2;

// Lists that a stream is in: all of its use, those of its peer, those with unread responses.
enum { STREAM_ALL, STREAM_PEER, STREAM_UNREAD, STREAM_LISTS };

struct Stream {
    LoopFd            watch;  // initially STREAM_INPUT
    LoopTimer         timer;
    TimeNs            due;  // deadline; the timer may fire earlier and is rearmed
    const StreamKind *kind;
    Listener         *listener;
    Stream           *next, *prev;  // oldest first
    Peer             *peer;         // NULL: no address
    struct {
        Stream *next, *prev;
    } links[STREAM_LISTS];
    StreamUse use;       // STREAM_NEW at first; stream_use sets it
    int       list;      // of uses, where it is
    uint64_t  requests;  // that were complete
    uint64_t  rounds;    // times that it had answered all of them and waited for the next
    TimeNs    since;     // when it came into use, or last moved STREAM_STEP bytes
    size_t    moved;     // bytes since then
    size_t    unread;    // bytes of responses that wait for the client
    bool      draining;
    bool      closed;  // freed in the loop's next iteration
};

// Waits for input, and for the end of a client's side even while input is left unread.
#define STREAM_INPUT ((uint32_t)EPOLLIN | (uint32_t)EPOLLRDHUP)

enum { STREAM_END = 0, STREAM_LATER = -1, STREAM_BROKEN = -2 };

// Bytes read or written, or one of the above.
ssize_t stream_read(Stream *s, void *to, size_t size);
ssize_t stream_write(Stream *s, struct iovec *pieces, size_t n);
size_t  stream_queued(const Stream *s);           // bytes written that the client has not received
void    stream_want(Stream *s, uint32_t events);  // EPOLL...; no system call if the same
void    stream_arm(Stream *s, TimeNs at);         // INT64_MAX: never; cannot fail
void    stream_use(Stream *s, StreamUse use);     // begins anew if it is the same
void    stream_moved(Stream *s, size_t bytes);    // progress of a request or response
void    stream_unread(Stream *s, size_t bytes);
void    stream_close(Stream *s);  // once; calls finish()
void    stream_leave(Stream *s);  // the same, after the client received all that was written
TimeNs  stream_now(const Stream *s);
bool    stream_overtime(const Stream *s);  // its turn on the loop is over

// The listener's limits, defaults filled in.
const ListenerLimits  *stream_limits(const Stream *s);
const ExchangeHandler *stream_handler(const Stream *s);
ListenerCounts        *stream_counts(Stream *s);  // requests and bad: the protocol counts them
SlabPool              *stream_slabs(Stream *s);   // for bodies; limited by held_bytes
SlabPool *stream_pages(Stream *s);  // for heads and buffers; bounded by the number of connections
// For bodies, from stream_slabs: late responses are closed if that makes room.
Slab *stream_take(Stream *s, size_t size);
bool  stream_touch(Stream *s, Slab *b, size_t used);
Slab *stream_grow(Stream *s, Slab *b, size_t used, size_t size);
// Whether a response is late: it began so long ago, and the client has read so many bytes. pressed:
// memory is short.
bool stream_late(const Stream *s, TimeNs began, uint64_t sent, bool pressed);
bool stream_charged(const Exchange *x, const Budget *b);  // b NULL: any
Str  stream_date(Stream *s);                              // "Date: ...\r\n", now

// Takes ownership of a connected socket; NULL: it was closed.
Stream *stream_adopt(Listener *l, int fd);

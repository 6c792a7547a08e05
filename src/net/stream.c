#include "net/stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/exchange.h"
#include "net/listener_int.h"

// STREAM_STEP: bytes per second that a client must read or send. STREAM_PRESSED_STEP: the same for
// responses while memory is short. STREAM_UNSENT: bytes that the kernel takes ahead of all clients
// that wait, and of one.
enum {
    STREAM_STEP = 1 << 16,
    STREAM_PRESSED_STEP = 4 << 20,
    STREAM_UNSENT = 64 << 20,
    STREAM_UNSENT_MOST = 2 << 20,
    STREAM_UNSENT_LEAST = 1 << 16
};

static const TimeNs STREAM_LEAVE_NS = 1000000000, STREAM_SECOND = 1000000000,
                    STREAM_PRESSED_NS = 250000000;

static void stream_ready(void *self, uint32_t events) {
    Stream *s = self;
    s->kind->ready(s, events);
}

// Cannot fail: the timer keeps its slot in the loop's heap except while it fires.
static void stream_set_timer(Stream *s, TimeNs at) {
    CHECK(loop_arm(s->listener->loop, &s->timer, at) == ERR_OK);
}

static void stream_fire(void *self) {
    Stream *s = self;
    bool    due = s->due <= loop_now(s->listener->loop);
    stream_set_timer(s, due ? INT64_MAX : s->due);
    if (!due) return;
    s->due = INT64_MAX;
    s->kind->expire(s);
}

void stream_arm(Stream *s, TimeNs at) {
    s->due = at;
    if (at < s->timer.at) stream_set_timer(s, at);
}

bool   stream_overtime(const Stream *s) { return loop_overtime(s->listener->loop); }
TimeNs stream_now(const Stream *s) { return loop_now(s->listener->loop); }

void stream_want(Stream *s, uint32_t events) { loop_events(s->listener->loop, &s->watch, events); }

ssize_t stream_read(Stream *s, void *to, size_t size) {
    ssize_t n;
    do n = recv(s->watch.fd, to, size, 0);
    while (n < 0 && errno == EINTR);
    if (n >= 0) return n;
    return errno == EAGAIN || errno == EWOULDBLOCK ? STREAM_LATER : STREAM_BROKEN;
}

ssize_t stream_write(Stream *s, struct iovec *pieces, size_t n) {
    struct msghdr m = {.msg_iov = pieces, .msg_iovlen = n};
    ssize_t       sent;
    do sent = sendmsg(s->watch.fd, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? STREAM_LATER
                                                                       : STREAM_BROKEN;
}

size_t stream_queued(const Stream *s) {
    int n = 0;
    return ioctl(s->watch.fd, SIOCOUTQ, &n) == 0 && n > 0 ? (size_t)n : 0;
}

static void list_add(StreamList *l, Stream *s, int which) {
    s->links[which].prev = l->last;
    s->links[which].next = NULL;
    if (l->last)
        l->last->links[which].next = s;
    else
        l->first = s;
    l->last = s;
    l->n++;
}

static void list_remove(StreamList *l, Stream *s, int which) {
    Stream *next = s->links[which].next, *prev = s->links[which].prev;
    if (prev)
        prev->links[which].next = next;
    else
        l->first = next;
    if (next)
        next->links[which].prev = prev;
    else
        l->last = prev;
    l->n--;
}

static int stream_list(const Stream *s, StreamUse use) {
    bool known = use == STREAM_PART || use == STREAM_IDLE;
    int class = 0;
    while (known && class < STREAM_CLASSES - 1 && s->rounds >> (class + 1) > 0) class ++;
    return (int)use + class;
}

static void stream_enlist(Stream *s, StreamUse use) {
    s->use = use;
    s->rounds += use == STREAM_IDLE;
    s->list = stream_list(s, use);
    s->since = stream_now(s);
    s->moved = 0;
    list_add(&s->listener->uses[s->list], s, STREAM_ALL);
    if (s->peer) list_add(&s->peer->uses[s->list], s, STREAM_PEER);
}

static void stream_delist(Stream *s) {
    list_remove(&s->listener->uses[s->list], s, STREAM_ALL);
    if (s->peer) list_remove(&s->peer->uses[s->list], s, STREAM_PEER);
}

void stream_use(Stream *s, StreamUse use) {
    if (s->closed) return;
    stream_delist(s);
    stream_enlist(s, use);
}

void stream_moved(Stream *s, size_t bytes) {
    s->moved += bytes;
    if (s->moved >= STREAM_STEP) stream_use(s, s->use);
}

// What many clients do not read stays in the handler's memory, which is counted, not in the
// kernel's.
static void stream_share(const Stream *s) {
    int share = STREAM_UNSENT / (int)(s->listener->unread.n);
    if (share > STREAM_UNSENT_MOST) share = STREAM_UNSENT_MOST;
    if (share < STREAM_UNSENT_LEAST) share = STREAM_UNSENT_LEAST;
    (void)setsockopt(s->watch.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &share, sizeof share);
}

static void stream_wait(Stream *s) {
    Listener *l = s->listener;
    list_add(&l->unread, s, STREAM_UNREAD);
    if (l->address.any.sa_family != AF_UNIX) stream_share(s);
}

void stream_unread(Stream *s, size_t bytes) {
    if (s->unread == bytes) return;
    if (s->unread == 0) stream_wait(s);
    if (bytes == 0) list_remove(&s->listener->unread, s, STREAM_UNREAD);
    if (s->peer) s->peer->unread += bytes - s->unread;
    s->unread = bytes;
    if (bytes > 0) listener_reap_soon(s->listener, stream_now(s) + STREAM_PRESSED_NS);
}

bool stream_late(const Stream *s, TimeNs began, uint64_t sent, bool pressed) {
    TimeNs grace = pressed ? STREAM_PRESSED_NS : stream_limits(s)->write_ns;
    TimeNs step = pressed ? STREAM_PRESSED_STEP : STREAM_STEP;
    return stream_now(s) >= began + grace + (TimeNs)(sent / (uint64_t)step) * STREAM_SECOND;
}

bool stream_charged(const Exchange *x, const Budget *b) {
    const Budget *at = x->budget;
    while (b && at && at != b) at = at->whole;
    return !b || at;
}

static void stream_link(Stream *s) {
    Listener *l = s->listener;
    uint64_t  key = 0;
    if (peer_key(s->watch.fd, &key)) s->peer = peer_open(&l->peers, key);
    if (s->peer && (!l->heaviest || s->peer->open > l->heaviest->open)) l->heaviest = s->peer;
    stream_enlist(s, STREAM_NEW);
    budget_add(&l->pages->budget, l->kind->bytes);
    s->prev = l->newest;
    if (l->newest)
        l->newest->next = s;
    else
        l->oldest = s;
    l->newest = s;
    l->counts.open++;
}

static void stream_unlink(Stream *s) {
    Listener *l = s->listener;
    if (s->prev)
        s->prev->next = s->next;
    else
        l->oldest = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        l->newest = s->prev;
    l->counts.open--;
    stream_unread(s, 0);
    stream_delist(s);
    budget_give(&l->pages->budget, l->kind->bytes);
    if (!s->peer) return;
    if (s->peer == l->heaviest && s->peer->open == 1) l->heaviest = NULL;
    peer_close(&l->peers, s->peer);
    s->peer = NULL;
}

// The memory stays valid for callers on the stack.
static void stream_bury(Stream *s) {
    Listener *l = s->listener;
    s->closed = true;
    loop_disarm(l->loop, &s->timer);
    loop_forget(l->loop, &s->watch);
    close(s->watch.fd);
    stream_unlink(s);
    s->next = l->dead;
    l->dead = s;
    listener_reap_soon(l, 0);
}

void stream_close(Stream *s) {
    if (s->closed) return;
    stream_bury(s);
    s->kind->finish(s);
}

// Closing with unread input would reset the connection and lose data in flight to the client.
static void leave_ready(Stream *s, uint32_t events) {
    char    bytes[4096];
    ssize_t n = stream_read(s, bytes, sizeof bytes);
    (void)events;
    if (n == STREAM_END || n == STREAM_BROKEN) stream_close(s);
}

static void leave_finish(Stream *s) { (void)s; }

static size_t leave_late(Stream *s, const Budget *b, bool end) {
    (void)s;
    (void)b;
    (void)end;
    return 0;
}

static const StreamKind stream_leaving = {.ready = leave_ready,
                                          .expire = stream_close,
                                          .drain = leave_finish,
                                          .finish = leave_finish,
                                          .late = leave_late};

void stream_leave(Stream *s) {
    if (s->closed || shutdown(s->watch.fd, SHUT_WR) != 0) {
        stream_close(s);
        return;
    }
    s->kind->finish(s);
    s->kind = &stream_leaving;
    stream_unread(s, 0);
    stream_use(s, STREAM_NEW);
    stream_want(s, EPOLLIN);
    stream_arm(s, stream_now(s) + STREAM_LEAVE_NS);
}

static Err stream_start(Stream *s) {
    Loop *loop = s->listener->loop;
    TRY(loop_arm(loop, &s->timer, INT64_MAX));
    Err e = loop_watch(loop, &s->watch);
    if (e != ERR_OK) loop_disarm(loop, &s->timer);
    return e;
}

static void stream_tune(int fd) {
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

Stream *stream_adopt(Listener *l, int fd) {
    Stream *s = calloc(1, l->kind->bytes);
    if (s) {
        s->watch = (LoopFd){.fd = fd, .events = STREAM_INPUT, .ready = stream_ready, .self = s};
        s->timer = (LoopTimer){.fire = stream_fire, .self = s};
        s->due = INT64_MAX;
        s->kind = l->kind;
        s->listener = l;
    }
    if (!s || stream_start(s) != ERR_OK) {
        close(fd);
        free(s);
        return NULL;
    }
    if (l->address.any.sa_family != AF_UNIX) stream_tune(fd);
    stream_link(s);
    if (s->kind->open(s) == ERR_OK) return s->closed ? NULL : s;
    if (!s->closed) stream_bury(s);
    return NULL;
}

const ListenerLimits  *stream_limits(const Stream *s) { return &s->listener->options.limits; }
const ExchangeHandler *stream_handler(const Stream *s) { return &s->listener->options.handler; }
ListenerCounts        *stream_counts(Stream *s) { return &s->listener->counts; }
SlabPool              *stream_slabs(Stream *s) { return s->listener->slabs; }
SlabPool              *stream_pages(Stream *s) { return s->listener->pages; }

Slab *stream_take(Stream *s, size_t size) {
    SlabPool *p = stream_slabs(s);
    Slab     *b = slab_take(p, size);
    if (!b && listener_make_room(s->listener, size)) b = slab_take(p, size);
    return b;
}

bool stream_touch(Stream *s, Slab *b, size_t used) {
    SlabPool *p = stream_slabs(s);
    if (slab_touch(p, b, used)) return true;
    return listener_make_room(s->listener, used - b->warm) && slab_touch(p, b, used);
}

Slab *stream_grow(Stream *s, Slab *b, size_t used, size_t size) {
    SlabPool *p = stream_slabs(s);
    Slab     *more = slab_grow(p, b, used, size);
    if (!more && listener_make_room(s->listener, size)) more = slab_grow(p, b, used, size);
    return more;
}

// strftime depends on the locale.
static size_t stream_write_date(const struct tm *t, char out[LISTENER_DATE]) {
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int n = snprintf(out, LISTENER_DATE, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                     days[t->tm_wday], t->tm_mday, months[t->tm_mon], t->tm_year + 1900, t->tm_hour,
                     t->tm_min, t->tm_sec);
    return n > 0 && n < LISTENER_DATE ? (size_t)n : 0;
}

Str stream_date(Stream *s) {
    Listener *l = s->listener;
    if (stream_now(s) >= l->date_until) {
        TimeNs    wall = clock_now(clock_realtime());
        time_t    seconds = wall / 1000000000;
        struct tm tm;
        gmtime_r(&seconds, &tm);
        l->date_len = stream_write_date(&tm, l->date);
        l->date_until = stream_now(s) + 1000000000 - wall % 1000000000;
    }
    return (Str){l->date, l->date_len};
}

Str exchange_header(const Exchange *x, const char *name) {
    size_t len = strlen(name);
    for (uint32_t i = 0; i < x->n_headers; i++) {
        const ExchangeHeader *h = &x->headers[i];
        if (h->name.len == len && memcmp(h->name.at, name, len) == 0) return h->value;
    }
    return (Str){0};
}

#include <string.h>

#include <sys/epoll.h>

#include "net/http2_int.h"

enum { READ_BYTES = 64 << 10, READS = 16, QUIET_BYTES = 64 << 10 };

static const TimeNs tick_most = 1000000000, tick_least = 1000000, notice_ns = 1000000000;

bool http2_spend(Http2 *h, Http2Bucket *b, double most, double per_s) {
    TimeNs now = stream_now(&h->stream);
    b->left += (double)(now - b->at) * 1e-9 * per_s;
    if (b->left > most) b->left = most;
    b->at = now;
    b->left -= 1;
    return b->left >= 0;
}

void http2_calm(Http2 *h) {
    if (h->calm) return;
    h->calm = true;
    stream_counts(&h->stream)->bad++;
    if (nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM) != 0)
        h->over = true;
}

void http2_part(Http2 *h) {
    if (h->parting) return;
    h->parting = true;
    int32_t last = nghttp2_session_get_last_proc_stream_id(h->session);
    if (nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0) != 0)
        h->over = true;
}

static TimeNs tick_ns(const Http2 *h) {
    const ListenerLimits *l = stream_limits(&h->stream);
    TimeNs                least = l->header_ns;
    if (l->body_ns < least) least = l->body_ns;
    if (l->write_ns < least) least = l->write_ns;
    least /= 4;
    if (least > tick_most) least = tick_most;
    return least < tick_least ? tick_least : least;
}

static bool at_rest(const Http2 *h) {
    return h->greeted && h->n_calls == 0 && h->n_pieces == 0 && h->heading == 0 && !h->notice;
}

void http2_tick(Http2 *h) {
    if (h->over) return;
    TimeNs next = at_rest(h) ? h->active + stream_limits(&h->stream)->idle_ns
                             : stream_now(&h->stream) + tick_ns(h);
    if (next < h->stream.due || h->stream.due == INT64_MAX) stream_arm(&h->stream, next);
}

static Err http2_open(Stream *s) {
    Http2 *h = (Http2 *)s;
    h->opened = h->active = h->flushed = stream_now(s);
    TRY(http2_session(h));
    http2_pump(h);
    http2_tick(h);
    return ERR_OK;
}

// Somebody who speaks HTTP/1.1 is told so in words that they understand.
static void explain(Http2 *h) {
    static const char said[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                               "Content-Length: 54\r\nConnection: close\r\n\r\n"
                               "This address speaks HTTP/2 with prior knowledge only.\n";
    struct iovec      piece = {(void *)(uintptr_t)said, sizeof said - 1};
    (void)stream_write(&h->stream, &piece, 1);
}

static void take(Http2 *h, const uint8_t *at, size_t n) {
    const ListenerLimits *l = stream_limits(&h->stream);
    h->quiet += n;
    h->inside = true;
    ssize_t used = nghttp2_session_mem_recv(h->session, at, n);
    h->inside = false;
    if (used < 0) {
        stream_counts(&h->stream)->bad++;
        if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) explain(h);
        h->over = true;
    } else if (h->quiet > QUIET_BYTES + 2 * l->header_bytes) {
        http2_calm(h);  // frames that never become whole, as headers that go on and on
    }
}

// Until the next thing happens.
static void http2_rest(Http2 *h) {
    if (!h->over)
        http2_tick(h);
    else if (h->parted)
        stream_leave(&h->stream);
    else
        stream_close(&h->stream);
}

static void http2_ready(Stream *s, uint32_t events) {
    Http2  *h = (Http2 *)s;
    uint8_t bytes[READ_BYTES];
    for (int i = 0; i < READS && !h->over && !h->calm && (events & ~(uint32_t)EPOLLOUT); i++) {
        ssize_t n = stream_read(s, bytes, sizeof bytes);
        if (n == STREAM_LATER) break;
        if (n <= 0)
            h->over = true;
        else
            take(h, bytes, (size_t)n);
        if (n < (ssize_t)sizeof bytes) break;
    }
    if (!h->over) http2_pump(h);
    http2_rest(h);
}

static void reset(Http2Call *c) {
    if (nghttp2_submit_rst_stream(c->h->session, NGHTTP2_FLAG_NONE, c->id, NGHTTP2_CANCEL) != 0)
        c->h->over = true;
}

// Whose time is over among those whose body comes, and those whose answer is not taken.
static void check_calls(Http2 *h, TimeNs now) {
    const ListenerLimits *l = stream_limits(&h->stream);
    h->inside = true;
    for (Http2Call *c = h->calls.first, *next; c; c = next) {
        next = c->next;
        bool   writes = c->x.answered || c->x.pushing;
        bool   reads = !writes && !c->complete && !c->x.hold && h->heading == 0;
        TimeNs since = c->x.flows ? c->moved : c->x.began;
        if (c->x.flows && c->x.body_len == 0) reads = false;  // the next message may take its time
        if (writes && now - c->moved > l->write_ns) reset(c);
        if (reads && now - since > l->body_ns)
            http2_call_refuse(c, 408, "the request did not come in time");
    }
    h->inside = false;
}

static void http2_expire(Stream *s) {
    Http2                *h = (Http2 *)s;
    const ListenerLimits *l = stream_limits(s);
    TimeNs                now = stream_now(s);
    if (!h->greeted && now - h->opened >= l->header_ns) h->over = true;
    if (h->heading != 0 && now - h->heading >= l->header_ns) http2_calm(h);
    if (h->n_pieces > 0 && now - h->flushed >= l->write_ns) h->over = true;
    if (at_rest(h) && now - h->active >= l->idle_ns) http2_part(h);
    if (h->notice && now - h->notice >= notice_ns) http2_part(h);
    if (!h->over) check_calls(h, now);
    if (!h->over) http2_pump(h);
    http2_rest(h);
}

// First that no new calls are wished for, and once the client knows that, which were the last.
static void http2_drain(Stream *s) {
    Http2  *h = (Http2 *)s;
    uint8_t mark[8] = "drained";
    h->notice = stream_now(s);
    if (nghttp2_submit_shutdown_notice(h->session) != 0 ||
        nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, mark) != 0)
        http2_part(h);
    if (!h->over) http2_pump(h);
    http2_rest(h);
}

static void end_all(Http2List *l) {
    for (Http2Call *c = l->first; c; c = l->first) {
        http2_list_remove(l, c);
        http2_call_ended(c, false);
    }
}

static void http2_finish(Stream *s) {
    Http2 *h = (Http2 *)s;
    h->inside = h->over = true;
    end_all(&h->leaving);
    end_all(&h->calls);
    nghttp2_session_del(h->session);
}

const StreamKind stream_http2 = {.bytes = sizeof(Http2),
                                 .open = http2_open,
                                 .ready = http2_ready,
                                 .expire = http2_expire,
                                 .drain = http2_drain,
                                 .finish = http2_finish};

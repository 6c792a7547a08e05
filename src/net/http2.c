#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "net/http2_int.h"

enum { READ_BYTES = 16 << 10, READS = 16, QUIET_BYTES = 64 << 10 };

// Token buckets of a connection for frames other than answered calls.
static const double resets_most = 1000, resets_per_s = 300;
static const double chatter_most = 2000, chatter_per_s = 1000;

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

// A streaming call counts as busy while the handler works on a message.
static bool flows_busy(const Http2 *h) {
    const Http2Call *c = h->n_flows > 0 ? h->calls.first : NULL;
    while (c && !(c->x.flows && c->x.hold)) c = c->next;
    return c;
}

static StreamUse use_of(const Http2 *h) {
    if (h->n_asked > 0 || flows_busy(h)) return STREAM_BUSY;
    if (h->unread > 0) return STREAM_STALL;
    if (h->stream.requests == 0) return STREAM_NEW;
    return h->n_calls > 0 ? STREAM_PART : STREAM_IDLE;
}

void http2_account(Http2 *h) {
    StreamUse use = use_of(h);
    if (h->stream.closed || h->over) return;
    stream_unread(&h->stream, h->unread);
    if (use != h->stream.use) stream_use(&h->stream, use);
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

// An HTTP/1.1 client gets an HTTP/1.1 error response.
static void explain(Http2 *h) {
    static const char said[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                               "Content-Length: 54\r\nConnection: close\r\n\r\n"
                               "This address speaks HTTP/2 with prior knowledge only.\n";
    struct iovec      piece = {(void *)(uintptr_t)said, sizeof said - 1};
    (void)stream_write(&h->stream, &piece, 1);
}

static void take(Http2 *h, const uint8_t *at, size_t n) {
    const ListenerLimits *l = stream_limits(&h->stream);
    uint8_t               kept[READ_BYTES + HTTP2_FILTER_HELD];
    uint32_t              dropped = h->filter.dropped;
    size_t                n_kept = http2_filter(&h->filter, at, n, kept);
    for (; dropped != h->filter.dropped; dropped++)
        if (!http2_spend(h, &h->resets, resets_most, resets_per_s)) http2_calm(h);
    h->quiet += n;
    h->inside = true;
    ssize_t used = nghttp2_session_mem_recv(h->session, kept, n_kept);
    h->inside = false;
    if (used < 0) {
        stream_counts(&h->stream)->bad++;
        if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) explain(h);
        h->over = true;
    } else if (h->quiet > QUIET_BYTES + 2 * l->header_bytes) {
        http2_calm(h);  // a frame that never completes, such as endless CONTINUATION
    }
}

// Earliest deadline of the connection.
static void http2_rest(Http2 *h) {
    http2_account(h);
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
        if (n < (ssize_t)sizeof bytes || stream_overtime(s)) break;
    }
    if (!h->over) http2_pump(h);
    http2_rest(h);
}

static void reset(Http2Call *c, uint32_t code) {
    c->doomed = true;
    if (nghttp2_submit_rst_stream(c->h->session, NGHTTP2_FLAG_NONE, c->id, code) != 0)
        c->h->over = true;
}

// Without progress, or on a connection that is read too slowly as a whole.
static bool unread_too_long(const Http2Call *c, TimeNs now) {
    const Stream *s = &c->h->stream;
    return now - c->moved > stream_limits(s)->write_ns ||
           stream_late(s, c->answer, c->h->written - c->mark, false);
}

// Expires calls with a body that does not arrive or a response that is not read in time.
static void check_calls(Http2 *h, TimeNs now) {
    const ListenerLimits *l = stream_limits(&h->stream);
    h->inside = true;
    for (Http2Call *c = h->calls.first, *next; c; c = next) {
        next = c->next;
        bool   writes = c->x.answered || c->x.pushing;
        bool   reads = !writes && !c->complete && !c->x.hold && h->heading == 0;
        TimeNs since = c->x.flows ? c->moved : c->x.began;
        if (c->x.flows && c->x.body_len == 0)
            reads = false;  // the next message of the stream has no deadline
        if (writes && !c->doomed && unread_too_long(c, now)) reset(c, NGHTTP2_CANCEL);
        if (reads && now - since > l->body_ns) http2_call_reject(c, 408, "request timed out");
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

// Graceful shutdown: GOAWAY with the highest stream id, then, after a round trip, with the real
// last one.
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

// The largest response that its client reads too slowly while memory is short.
static Http2Call *late_call(const Http2List *l, const Budget *b) {
    Http2Call *found = NULL;
    for (Http2Call *c = l->first; c; c = c->next) {
        bool slow = c->held > (found ? found->held : 0) && !c->doomed &&
                    stream_late(&c->h->stream, c->answer, c->sent, true);
        if (slow && stream_charged(&c->x, b)) found = c;
    }
    return found;
}

// A response in the queue of the socket can only be given up with the connection.
static size_t http2_late(Stream *s, const Budget *b, bool end) {
    Http2     *h = (Http2 *)s;
    bool       stuck = h->n_pieces > 0 && stream_late(s, h->flushed, 0, true);
    Http2Call *c = late_call(&h->calls, b), *gone = late_call(&h->leaving, b);
    size_t     held = stuck || (gone && !c) ? h->unread : c ? c->held : 0;
    if (!c && !gone) return 0;
    if (!end) return held;
    if (held == h->unread && !h->inside) {
        stream_close(s);
    } else if (c) {
        reset(c, NGHTTP2_ENHANCE_YOUR_CALM);
        if (!h->inside) http2_pump(h);
    } else {
        gone->doomed = h->over = true;
    }
    return held;
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
                                 .finish = http2_finish,
                                 .late = http2_late};

enum { WINDOW_CALL = 8 << 20, WINDOW_ALL = 64 << 20, ACKS_MOST = 200, SETTINGS_MOST = 32 };

static Http2Call *call_of(nghttp2_session *s, int32_t id) {
    return nghttp2_session_get_stream_user_data(s, id);
}

static int begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *self) {
    Http2 *h = self;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    Http2Call *c = http2_call_open(h, f->hd.stream_id);
    if (!c) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    h->heading = stream_now(&h->stream);
    h->heading_id = f->hd.stream_id;
    return nghttp2_session_set_stream_user_data(s, f->hd.stream_id, c);
}

static int header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                  const uint8_t *value, size_t n_value, uint8_t flags, void *self) {
    Http2 *h = self;
    (void)flags;
    if (f->hd.type != NGHTTP2_HEADERS) return 0;
    Http2Call *c = call_of(s, f->hd.stream_id);
    if (!c) return 0;
    Str key = {(const char *)name, n_name}, text = {(const char *)value, n_value};
    if (f->headers.cat != NGHTTP2_HCAT_REQUEST) key.len = text.len = 0;  // trailers are discarded
    if (http2_call_header(c, key, text)) return 0;
    http2_calm(h);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *at, size_t len,
                void *self) {
    Http2     *h = self;
    Http2Call *c = call_of(s, id);
    (void)flags;
    h->quiet = 0;
    if (nghttp2_session_consume_connection(s, len) != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (c) http2_call_data(c, at, len);
    return 0;
}

// Frames that cost work without making progress.
static void chatter(Http2 *h) {
    if (!http2_spend(h, &h->chatter, chatter_most, chatter_per_s)) http2_calm(h);
}

static int frame_came(nghttp2_session *s, const nghttp2_frame *f, void *self) {
    Http2     *h = self;
    Http2Call *c = call_of(s, f->hd.stream_id);
    bool       last = (f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    h->quiet = 0;
    h->active = stream_now(&h->stream);
    switch (f->hd.type) {
    case NGHTTP2_HEADERS:
        h->heading = 0;
        if (c && f->headers.cat == NGHTTP2_HCAT_REQUEST) http2_call_head(c);
        if (c && last) http2_call_complete(c);
        break;
    case NGHTTP2_DATA:
        if (f->hd.length == 0 && !last) chatter(h);
        if (c && last) http2_call_complete(c);
        break;
    case NGHTTP2_PING:
        if ((f->hd.flags & NGHTTP2_FLAG_ACK) != 0 && h->stream.draining) http2_part(h);
        chatter(h);
        break;
    case NGHTTP2_SETTINGS:
        h->greeted = true;
        chatter(h);
        break;
    case NGHTTP2_WINDOW_UPDATE: break;  // frequent with large responses, and cheap
    default: chatter(h);
    }
    return 0;
}

static int frame_broken(nghttp2_session *s, const nghttp2_frame *f, int error, void *self) {
    (void)s;
    (void)f;
    (void)error;
    chatter(self);
    return 0;
}

static int frame_went(nghttp2_session *s, const nghttp2_frame *f, void *self) {
    (void)self;
    Http2Call *c = call_of(s, f->hd.stream_id);
    bool       ends = f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS;
    if (!c || !ends || (f->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    c->done = true;
    if (c->complete) return 0;
    return nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, c->id, NGHTTP2_NO_ERROR);
}

static int stream_closed(nghttp2_session *s, int32_t id, uint32_t code, void *self) {
    Http2     *h = self;
    Http2Call *c = call_of(s, id);
    if (code != NGHTTP2_NO_ERROR && !http2_spend(h, &h->resets, resets_most, resets_per_s))
        http2_calm(h);
    if (id == h->heading_id) h->heading = 0;
    if (c) http2_call_closed(c, code);
    return 0;
}

static int send_data(nghttp2_session *s, nghttp2_frame *f, const uint8_t *head, size_t len,
                     nghttp2_data_source *source, void *self) {
    (void)s;
    (void)f;
    return http2_send_data(self, source->ptr, head, len);
}

static nghttp2_session_callbacks *callbacks(void) {
    nghttp2_session_callbacks *c;
    if (nghttp2_session_callbacks_new(&c) != 0) return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, frame_came);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, frame_broken);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, frame_went);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(c, send_data);
    return c;
}

// The session's memory is counted, not limited: the limits on streams and frames bound it.
static void *mem_malloc(size_t n, void *budget) {
    void *p = malloc(n);
    if (p) budget_add(budget, malloc_usable_size(p));
    return p;
}

static void *mem_calloc(size_t n, size_t size, void *budget) {
    void *p = calloc(n, size);
    if (p) budget_add(budget, malloc_usable_size(p));
    return p;
}

static void mem_free(void *p, void *budget) {
    if (p) budget_give(budget, malloc_usable_size(p));
    free(p);
}

static void *mem_realloc(void *p, size_t n, void *budget) {
    size_t before = p ? malloc_usable_size(p) : 0;
    void  *more = realloc(p, n);
    if (!more && n > 0) return NULL;
    budget_give(budget, before);
    if (more) budget_add(budget, malloc_usable_size(more));
    return more;
}

static nghttp2_option *options(void) {
    nghttp2_option *o;
    if (nghttp2_option_new(&o) != 0) return NULL;
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_max_outbound_ack(o, ACKS_MOST);
    nghttp2_option_set_max_settings(o, SETTINGS_MOST);
#ifdef HTTP2_RESET_RATE  // counted by http2_spend, which answers with GOAWAY
    nghttp2_option_set_stream_reset_rate_limit(o, 1000000, 1000000);
#endif
    return o;
}

static int greet(Http2 *h) {
    const ListenerLimits *l = stream_limits(&h->stream);
    uint32_t list = l->header_bytes < UINT32_MAX ? (uint32_t)l->header_bytes : UINT32_MAX;
    nghttp2_settings_entry set[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, l->streams},
                                    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_CALL},
                                    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, list}};
    int e = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, set, sizeof set / sizeof *set);
    if (e != 0) return e;
    return nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, WINDOW_ALL);
}

Err http2_session(Http2 *h) {
    nghttp2_session_callbacks *c = callbacks();
    nghttp2_option            *o = options();
    nghttp2_mem                memory = {.mem_user_data = &stream_pages(&h->stream)->budget,
                                         .malloc = mem_malloc,
                                         .free = mem_free,
                                         .calloc = mem_calloc,
                                         .realloc = mem_realloc};
    int e = c && o ? nghttp2_session_server_new3(&h->session, c, h, o, &memory) : NGHTTP2_ERR_NOMEM;
    if (c) nghttp2_session_callbacks_del(c);
    if (o) nghttp2_option_del(o);
    if (e == 0 && (e = greet(h)) != 0) {
        nghttp2_session_del(h->session);
        h->session = NULL;
    }
    if (e != 0) return err_set(ERR_LIMIT, "no memory for a connection");
    h->resets = (Http2Bucket){resets_most, h->opened};
    h->chatter = (Http2Bucket){chatter_most, h->opened};
    return ERR_OK;
}

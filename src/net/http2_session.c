#include <string.h>

#include "net/http2_int.h"

// What a connection may do at once and a second, beyond calls that are answered.
static const double resets_most = 1000, resets_per_s = 300;
static const double chatter_most = 2000, chatter_per_s = 1000;

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
    if (f->headers.cat != NGHTTP2_HCAT_REQUEST) key.len = text.len = 0;  // trailers: not kept
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

// What costs us something and brings nobody forward.
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
    case NGHTTP2_WINDOW_UPDATE: break;  // many come with large answers, and are cheap
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

static nghttp2_option *options(void) {
    nghttp2_option *o;
    if (nghttp2_option_new(&o) != 0) return NULL;
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_max_outbound_ack(o, ACKS_MOST);
    nghttp2_option_set_max_settings(o, SETTINGS_MOST);
#ifdef HTTP2_RESET_RATE  // we count them ourselves, and answer more kindly
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
    int e = c && o ? nghttp2_session_server_new2(&h->session, c, h, o) : NGHTTP2_ERR_NOMEM;
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

#include "net/http2_filter.h"

#include <stdbool.h>
#include <string.h>

enum { PREFACE = 24, FRAME_HEAD = 9, FRAME_HEADERS = 1, FRAME_RESET = 3, RESET_BYTES = 4 };

static uint32_t frame_length(const Http2Filter *f) {
    return (uint32_t)f->held[0] << 16 | (uint32_t)f->held[1] << 8 | f->held[2];
}

static uint32_t frame_stream(const Http2Filter *f) {
    return ((uint32_t)f->held[5] << 24 | (uint32_t)f->held[6] << 16 | (uint32_t)f->held[7] << 8 |
            f->held[8]) &
           0x7fffffff;
}

static bool is_idle_reset(const Http2Filter *f) {
    uint32_t stream = frame_stream(f);
    return f->held[3] == FRAME_RESET && frame_length(f) == RESET_BYTES && stream % 2 == 1 &&
           stream > f->newest;
}

static size_t release(Http2Filter *f, uint8_t *out) {
    size_t n = f->n_held;
    memcpy(out, f->held, n);
    f->n_held = 0;
    return n;
}

// The head of a frame is complete. Returns the bytes that go to out.
static size_t decide(Http2Filter *f, uint8_t *out) {
    if (is_idle_reset(f)) {
        if (f->n_held < HTTP2_FILTER_HELD) return 0;
        f->n_held = 0;
        f->dropped++;
        return 0;
    }
    if (f->held[3] == FRAME_HEADERS && frame_stream(f) > f->newest) f->newest = frame_stream(f);
    f->skip = frame_length(f);
    return release(f, out);
}

static size_t pass(const uint8_t *at, size_t n, uint32_t *left, uint8_t *out) {
    if (n > *left) n = *left;
    memcpy(out, at, n);
    *left -= (uint32_t)n;
    return n;
}

size_t http2_filter(Http2Filter *f, const uint8_t *at, size_t n, uint8_t *out) {
    size_t   used = 0, made = 0;
    uint32_t preface = PREFACE - f->preface;
    if (preface > 0) {
        used = made = pass(at, n, &preface, out);
        f->preface = PREFACE - preface;
    }
    while (used < n) {
        if (f->skip > 0) {
            size_t passed = pass(at + used, n - used, &f->skip, out + made);
            used += passed;
            made += passed;
            continue;
        }
        f->held[f->n_held++] = at[used++];
        if (f->n_held >= FRAME_HEAD) made += decide(f, out + made);
    }
    return made;
}

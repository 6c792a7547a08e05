#include "kernel/ref/ref_pool.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/work_stop.h"
#include "kernel/ref/ref_int.h"
#include "kernel/wide_type.h"

// Reduction of the taps of one window that lie inside the input.
typedef struct Pooled {
    double  value;
    int64_t at;     // position of the maximum in the plane; -1: no tap inside
    int64_t count;  // divisor of an average
} Pooled;

static void pool_add(const RefPool *p, double v, int64_t at, Pooled *r) {
    switch (p->kind) {
    case REF_POOL_AVERAGE: r->value += v; return;
    case REF_POOL_LP: r->value += pow(fabs(v), p->p); return;
    case REF_POOL_MAX:
        if (r->at < 0 || v > r->value || isnan(v)) {
            r->value = v;
            r->at = at;
        }
        return;
    }
}

// Spans of the taps inside the input; false if there are none.
static bool pool_spans(const RefPool *p, const int64_t *out, RefSpan *span, Pooled *r) {
    const RefWindow *w = &p->window;
    bool             any = true;
    r->count = 1;
    for (int32_t d = 0; d < w->rank; d++) {
        span[d] = ref_window_taps(w, d, out[d], 0, w->in[d]);
        RefSpan counted = span[d];
        if (p->count_pad)
            counted = ref_window_taps(w, d, out[d], -w->pad[d], w->in[d] + w->pad_end[d]);
        r->count *= counted.to > counted.from ? counted.to - counted.from : 0;
        any = any && span[d].from < span[d].to;
    }
    return any;
}

static Pooled pool_window(const RefPool *p, const double *plane, const int64_t *out) {
    const RefWindow *w = &p->window;
    Pooled           r = {.value = p->kind == REF_POOL_MAX ? (double)-INFINITY : 0, .at = -1};
    RefSpan          span[REF_WINDOW_MAX] = {0};
    int64_t          tap[REF_WINDOW_MAX] = {0}, size[REF_WINDOW_MAX] = {0};
    if (!pool_spans(p, out, span, &r)) return r;
    int32_t last = w->rank - 1;
    for (int32_t d = 0; d < last; d++) size[d] = span[d].to - span[d].from;
    do {
        int64_t line = 0;
        for (int32_t d = 0; d < last; d++)
            line = (line + out[d] * w->stride[d] + (span[d].from + tap[d]) * w->dilation[d] -
                    w->pad[d]) *
                   w->in[d + 1];
        line += out[last] * w->stride[last] - w->pad[last];
        for (int64_t k = span[last].from; k < span[last].to && !work_stopped(); k++) {
            int64_t at = line + k * w->dilation[last];
            pool_add(p, plane[at], at, &r);
        }
    } while (ref_window_next(last, size, tap) && !work_stopped());
    return r;
}

static double pool_finish(const RefPool *p, const Pooled *r) {
    switch (p->kind) {
    case REF_POOL_AVERAGE: return r->count > 0 ? r->value / (double)r->count : 0;
    case REF_POOL_LP: return pow(r->value, 1 / p->p);
    case REF_POOL_MAX: break;
    }
    return r->value;
}

static int64_t pool_index(const RefPool *p, int64_t plane, int64_t at) {
    const RefWindow *w = &p->window;
    int64_t          pos[REF_WINDOW_MAX] = {0}, step = 1, column = 0;
    int64_t          first = plane * ref_product(w->in, w->rank);
    if (!p->column_major || at < 0) return first + (at < 0 ? 0 : at);
    ref_window_split(w->rank, w->in, at, pos);
    for (int32_t d = 0; d < w->rank; d++) {
        column += pos[d] * step;
        step *= w->in[d];
    }
    return first + column;
}

Err ref_pool(const RefPool *p, const Tensor *x, Tensor *y, Tensor *indices, Arena *scratch) {
    const RefWindow *w = &p->window;
    int64_t          in = ref_product(w->in, w->rank), out = ref_product(w->out, w->rank);
    double          *plane, *result;
    TRY(ref_alloc_doubles(scratch, in, 1, &plane));
    TRY(ref_alloc_doubles(scratch, out, 1, &result));
    for (int64_t i = 0; i < x->dims[0] * x->dims[1] && !work_stopped(); i++) {
        int64_t at[REF_WINDOW_MAX] = {0};
        wide_read(x, i * in, 1, in, plane);
        for (int64_t o = 0; o < out && !work_stopped(); o++) {
            Pooled r = pool_window(p, plane, at);
            result[o] = pool_finish(p, &r);
            if (indices != NULL) ((int64_t *)indices->data)[i * out + o] = pool_index(p, i, r.at);
            (void)ref_window_next(w->rank, w->out, at);
        }
        wide_write(y, i * out, 1, out, result);
    }
    return ERR_OK;
}

// Element of y for index `at` of a tensor with spatial sizes dims; -1: outside y.
static int64_t unpool_to(int64_t at, const int64_t *dims, const Tensor *y) {
    int64_t step = 1, to = 0;
    for (int32_t d = y->rank - 1; d >= 0; d--) {
        int64_t size = d < 2 ? y->dims[d] : dims[d - 2], i = at % size;
        if (at < 0 || i >= y->dims[d]) return -1;
        at /= size;
        to += i * step;
        step *= y->dims[d];
    }
    return at == 0 ? to : -1;
}

Err ref_unpool(const Tensor *x, const Tensor *indices, const int64_t *dims, Tensor *y) {
    size_t size = dtype_size(x->dtype);
    for (int64_t i = 0; i < tensor_count(x) && !work_stopped(); i++) {
        int64_t at = ((const int64_t *)indices->data)[i], to = unpool_to(at, dims, y);
        if (to < 0)
            return err_set(ERR_INVALID, "max unpool: index %" PRId64 " is outside the output", at);
        memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)i * size, size);
    }
    return ERR_OK;
}

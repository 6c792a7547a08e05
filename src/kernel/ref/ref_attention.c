#include "kernel/ref/ref_attention.h"

#include <inttypes.h>
#include <math.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/ref/ref_int.h"
#include "kernel/wide_type.h"
#include "kernel/nd_iter.h"

static int64_t heads_at(const RefHeads *h, int64_t b, int64_t n, int64_t s) {
    return h->at + b * h->batch + n * h->head + s * h->step;
}

// Keys and values of one head, and the vectors of one query.
typedef struct Work {
    double *k, *v;                   // [keys][size], [keys][v_size]
    double *q, *score, *bias, *sum;  // [size], [keys], [keys], [v_size]
} Work;

static void store_scores(const RefAttention *p, int32_t stage, int64_t row, const double *score) {
    if (p->scores != NULL && p->stage == stage)
        wide_write(p->scores, row * p->keys, 1, p->keys, score);
}

// Softmax in place. A row of scores that are all -INFINITY becomes zeros.
static void softmax(int64_t n, double *score) {
    double top = (double)-INFINITY, sum = 0;
    WORK_EACH (i, n) top = fmax(top, score[i]);
    WORK_EACH (i, n) {
        score[i] = isinf(top) ? 0 : exp(score[i] - top);
        sum += score[i];
    }
    for (int64_t i = 0; i < n && sum > 0 && !work_stopped(); i++) score[i] /= sum;
}

static void query(const RefAttention *p, const Work *s, int64_t row) {
    for (int64_t j = 0; j < p->keys && !work_stopped(); j++) {
        double dot = 0;
        for (int64_t h = 0; h < p->size; h++) dot += s->q[h] * s->k[j * p->size + h];
        s->score[j] = dot * p->scale;
    }
    store_scores(p, 0, row, s->score);
    for (int64_t j = 0; j < p->keys && p->softcap > 0 && !work_stopped(); j++)
        s->score[j] = p->softcap * tanh(s->score[j] / p->softcap);
    store_scores(p, 1, row, s->score);
    WORK_EACH (j, p->keys) s->score[j] += s->bias[j];
    store_scores(p, 2, row, s->score);
    softmax(p->keys, s->score);
    store_scores(p, 3, row, s->score);
    WORK_EACH (h, p->v_size) s->sum[h] = 0;
    for (int64_t j = 0; j < p->keys && !work_stopped(); j++)
        for (int64_t h = 0; h < p->v_size; h++) s->sum[h] += s->score[j] * s->v[j * p->v_size + h];
}

static void load_head(const RefAttention *p, const Work *s, int64_t b, int64_t n) {
    int64_t from = n / (p->heads / p->kv_heads);
    for (int64_t j = 0; j < p->keys && !work_stopped(); j++) {
        wide_read(p->k.t, heads_at(&p->k, b, from, j), 1, p->size, s->k + j * p->size);
        wide_read(p->v.t, heads_at(&p->v, b, from, j), 1, p->v_size, s->v + j * p->v_size);
    }
}

static Err alloc_work(const RefAttention *p, Arena *scratch, Work *s) {
    TRY(ref_alloc_doubles(scratch, p->keys, p->size, &s->k));
    TRY(ref_alloc_doubles(scratch, p->keys, p->v_size, &s->v));
    TRY(ref_alloc_doubles(scratch, 1, p->size, &s->q));
    TRY(ref_alloc_doubles(scratch, 1, p->keys, &s->score));
    TRY(ref_alloc_doubles(scratch, 1, p->keys, &s->bias));
    return ref_alloc_doubles(scratch, 1, p->v_size, &s->sum);
}

Err ref_attention(const RefAttention *p, Arena *scratch) {
    Work    s;
    Tensor  none = {0};
    int64_t shape[4] = {p->batch, p->heads, p->queries, p->keys};
    TRY(alloc_work(p, scratch, &s));
    NdIter w = nd_iter_begin(4, shape);
    nd_iter_broadcast(&w, p->bias != NULL ? p->bias : &none);
    for (int64_t row = 0; row < p->batch * p->heads * p->queries && !work_stopped(); row++) {
        int64_t i = row % p->queries, n = row / p->queries % p->heads;
        int64_t b = row / p->queries / p->heads;
        if (i == 0) load_head(p, &s, b, n);
        for (int64_t j = 0; j < p->keys; j++, nd_iter_next(&w))
            if (p->bias != NULL) s.bias[j] = tensor_get_f64(p->bias, w.off[0]);
        wide_read(p->q.t, heads_at(&p->q, b, n, i), 1, p->size, s.q);
        query(p, &s, row);
        wide_write(p->y, heads_at(&p->to, b, n, i), 1, p->v_size, s.sum);
    }
    return ERR_OK;
}

static void rotate_head(const RefRotary *p, int64_t at, int64_t to, int64_t angles) {
    int64_t half = p->rotated / 2;
    WORK_EACH (h, p->size) {
        double v = tensor_get_f64(p->x.t, at + h);
        if (h < p->rotated) {
            int64_t pair = p->interleaved ? h / 2 : h % half;
            bool    second = p->interleaved ? h % 2 == 1 : h >= half;
            int64_t other =
                p->interleaved ? (second ? h - 1 : h + 1) : (second ? h - half : h + half);
            double c = tensor_get_f64(p->cosines, angles + pair),
                   s = tensor_get_f64(p->sines, angles + pair);
            double u = tensor_get_f64(p->x.t, at + other);
            v = second ? s * u + c * v : c * v - s * u;
        }
        tensor_set(p->y, to + h, v);
    }
}

Err ref_rotary(const RefRotary *p) {
    for (int64_t position = 0; position < p->batch * p->length && !work_stopped(); position++) {
        int64_t row = p->ids != NULL ? ((const int64_t *)p->ids->data)[position] : position;
        int64_t b = position / p->length, s = position % p->length;
        if (p->ids != NULL && (row < 0 || row >= p->cosines->dims[0]))
            return err_set(ERR_INVALID,
                           "rotary embedding: position %" PRId64 " is outside caches of %" PRId64,
                           row, p->cosines->dims[0]);
        for (int64_t n = 0; n < p->heads && !work_stopped(); n++)
            rotate_head(p, heads_at(&p->x, b, n, s), heads_at(&p->to, b, n, s),
                        row * (p->rotated / 2));
    }
    return ERR_OK;
}

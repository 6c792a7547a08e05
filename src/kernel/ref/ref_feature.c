#include "kernel/ref/ref_feature.h"

#include <math.h>

#include "base/tensor.h"
#include "base/text.h"
#include "base/work_stop.h"

static const double two_pi = 6.283185307179586476925;

void ref_window(const double a[3], bool periodic, Tensor *y) {
    int64_t n = y->dims[0], period = periodic ? n : n - 1;
    WORK_EACH (i, n) {
        double t = period > 0 ? two_pi * (double)i / (double)period : two_pi / 2;
        tensor_set(y, i, a[0] - a[1] * cos(t) + a[2] * cos(2 * t));
    }
}

// One line of complex numbers and the n-th roots of unity.
typedef struct DftLine {
    int64_t n;
    double *re, *im, *cos, *sin;
} DftLine;

static Err line_init(DftLine *l, int64_t n, bool inverse, Arena *scratch) {
    *l = (DftLine){.n = n,
                   .re = arena_try_new(scratch, double, (size_t)n),
                   .im = arena_try_new(scratch, double, (size_t)n),
                   .cos = arena_try_new(scratch, double, (size_t)n),
                   .sin = arena_try_new(scratch, double, (size_t)n)};
    if (l->re == NULL || l->im == NULL || l->cos == NULL || l->sin == NULL)
        return err_set(ERR_LIMIT, "DFT: no memory for %lld points", (long long)n);
    WORK_EACH (i, n) {
        l->cos[i] = cos(two_pi * (double)i / (double)n);
        l->sin[i] = (inverse ? 1 : -1) * sin(two_pi * (double)i / (double)n);
    }
    return ERR_OK;
}

// Writes point k of the transform to elements `at` (real) and `at` + 1 (imaginary) of y.
static void line_point(const DftLine *l, int64_t k, double scale, Tensor *y, int64_t at) {
    double  re = 0, im = 0;
    int64_t root = 0;
    WORK_EACH (i, l->n) {
        re += l->re[i] * l->cos[root] - l->im[i] * l->sin[root];
        im += l->re[i] * l->sin[root] + l->im[i] * l->cos[root];
        root = root + k < l->n ? root + k : root + k - l->n;
    }
    tensor_set(y, at, re * scale);
    tensor_set(y, at + 1, im * scale);
}

// Loads element i of a line of complex (parts 2) or real (parts 1) numbers; zero if not inside.
static void line_read(DftLine *l, int64_t i, const Tensor *x, int64_t at, int64_t parts,
                      bool inside) {
    l->re[i] = inside ? tensor_get_f64(x, at * parts) : 0;
    l->im[i] = inside && parts == 2 ? tensor_get_f64(x, at * parts + 1) : 0;
}

Err ref_dft(const RefDft *d, const Tensor *x, Arena *scratch, Tensor *y) {
    int64_t outer = 1, inner = 1, have = x->dims[d->axis], parts = x->dims[x->rank - 1];
    double  scale = d->inverse ? 1 / (double)d->n : 1;
    DftLine l;
    for (int32_t i = 0; i < x->rank - 1; i++)
        if (i != d->axis) *(i < d->axis ? &outer : &inner) *= x->dims[i];
    TRY(line_init(&l, d->n, d->inverse, scratch));
    for (int64_t o = 0; o < outer && !work_stopped(); o++)
        for (int64_t i = 0; i < inner && !work_stopped(); i++) {
            WORK_EACH (k, d->n) line_read(&l, k, x, (o * have + k) * inner + i, parts, k < have);
            for (int64_t k = 0; k < d->bins && !work_stopped(); k++)
                line_point(&l, k, scale, y, ((o * d->bins + k) * inner + i) * 2);
        }
    return ERR_OK;
}

Err ref_stft(const RefStft *s, const Tensor *x, const Tensor *window, Arena *scratch, Tensor *y) {
    int64_t length = x->dims[1], parts = x->rank == 3 ? x->dims[2] : 1;
    DftLine l;
    TRY(line_init(&l, s->n, false, scratch));
    for (int64_t b = 0; b < x->dims[0] && !work_stopped(); b++)
        for (int64_t f = 0; f < s->frames && !work_stopped(); f++) {
            WORK_EACH (i, s->n) {
                double w = window != NULL ? tensor_get_f64(window, i) : 1;
                line_read(&l, i, x, b * length + f * s->step + i, parts, true);
                l.re[i] *= w;
                l.im[i] *= w;
            }
            for (int64_t k = 0; k < s->bins && !work_stopped(); k++)
                line_point(&l, k, 1, y, ((b * s->frames + f) * s->bins + k) * 2);
        }
    return ERR_OK;
}

// Bin of edge i of bands + 2 edges evenly spaced on the mel scale; at most last.
static int64_t mel_bin(const RefMel *m, int64_t i, int64_t bands, int64_t last) {
    double low = 2595 * log10(1 + m->low / 700), high = 2595 * log10(1 + m->high / 700);
    double mel = low + (double)i * (high - low) / (double)(bands + 2);
    double hertz = 700 * (pow(10, mel / 2595) - 1);
    double bin = floor(((double)m->points + 1) * hertz / (double)m->rate);
    return bin >= (double)last ? last : bin > 0 ? (int64_t)bin : 0;
}

void ref_mel(const RefMel *m, Tensor *y) {
    int64_t bins = y->dims[0], bands = y->dims[1];
    for (int64_t i = 0; i < bands && !work_stopped(); i++) {
        int64_t left = mel_bin(m, i, bands, bins - 1), centre = mel_bin(m, i + 1, bands, bins - 1);
        int64_t right = mel_bin(m, i + 2, bands, bins);
        if (left == centre) tensor_set(y, centre * bands + i, 1);
        for (int64_t j = left; j <= centre && left < centre && !work_stopped(); j++)
            tensor_set(y, j * bands + i, (double)(j - left) / (double)(centre - left));
        for (int64_t j = centre; j < right && !work_stopped(); j++)
            tensor_set(y, j * bands + i, (double)(right - j) / (double)(right - centre));
    }
}

static bool same_item(const RefNgrams *g, const Tensor *x, int64_t at, int64_t pool) {
    return x->dtype == DT_STR ? text_equal(((const Str *)x->data)[at], g->texts[pool])
                              : tensor_get_i64(x, at) == g->ints[pool];
}

static bool same_gram(const RefNgrams *g, const Tensor *x, int64_t at, int64_t apart, int64_t pool,
                      int64_t len) {
    for (int64_t i = 0; i < len && !work_stopped(); i++)
        if (!same_item(g, x, at + i * apart, pool + i)) return false;
    return true;
}

// Counts n-grams of one length in row [begin, end) of x; `gram` is the first of that length.
static void count_length(const RefNgrams *g, const Tensor *x, int64_t begin, int64_t end,
                         int64_t len, int64_t gram, float *row) {
    int64_t from = g->counts[len - 1], to = len < g->n_counts ? g->counts[len] : g->n_pool;
    int64_t farthest = len == 1 ? 1 : g->skips < end - begin ? g->skips + 1 : end - begin;
    for (int64_t apart = 1; apart <= farthest && !work_stopped(); apart++)
        for (int64_t at = begin; (end - 1 - at) / apart >= len - 1 && at < end && !work_stopped();
             at++)
            for (int64_t p = from, k = gram; p < to && !work_stopped(); p += len, k++)
                if (same_gram(g, x, at, apart, p, len)) row[g->indexes[k]] += 1;
}

static void weigh(const RefNgrams *g, int64_t n_grams, float *row, int64_t width) {
    for (int64_t i = 0; i < width && g->clip && !work_stopped(); i++)
        if (row[i] > 1) row[i] = 1;
    for (int64_t k = 0; k < n_grams && g->weights != NULL && !work_stopped(); k++)
        row[g->indexes[k]] *= g->weights[k];
}

void ref_ngrams(const RefNgrams *g, const Tensor *x, Tensor *y) {
    int64_t len = x->dims[x->rank - 1], width = y->dims[y->rank - 1];
    int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    for (int64_t r = 0; r < rows && !work_stopped(); r++) {
        float  *row = (float *)y->data + r * width;
        int64_t gram = 0;
        for (int64_t n = 1; n <= g->n_counts; n++) {
            int64_t from = g->counts[n - 1], to = n < g->n_counts ? g->counts[n] : g->n_pool;
            if (n >= g->shortest && n <= g->longest)
                count_length(g, x, r * len, r * len + len, n, gram, row);
            gram += (to - from) / n;
        }
        weigh(g, gram, row, width);
    }
}

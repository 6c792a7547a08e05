#include "kernel/ref_string.h"

#include "base/number.h"
#include "base/text.h"

static bool same_item(const RefGrams *g, const Tensor *x, int64_t at, int64_t pool) {
    return x->dtype == DT_STR ? text_equal(((const Str *)x->data)[at], g->texts[pool])
                              : number_i64(x, at) == g->ints[pool];
}

static bool same_gram(const RefGrams *g, const Tensor *x, int64_t at, int64_t apart, int64_t pool,
                      int64_t len) {
    for (int64_t i = 0; i < len; i++)
        if (!same_item(g, x, at + i * apart, pool + i)) return false;
    return true;
}

// Counts in row [begin, end) of x the n-grams of one length, whose first number is `gram`.
static void count_length(const RefGrams *g, const Tensor *x, int64_t begin, int64_t end,
                         int64_t len, int64_t gram, float *row) {
    int64_t from = g->counts[len - 1], to = len < g->n_counts ? g->counts[len] : g->n_pool;
    int64_t farthest = len == 1 ? 1 : g->skips < end - begin ? g->skips + 1 : end - begin;
    for (int64_t apart = 1; apart <= farthest; apart++)
        for (int64_t at = begin; (end - 1 - at) / apart >= len - 1 && at < end; at++)
            for (int64_t p = from, k = gram; p < to; p += len, k++)
                if (same_gram(g, x, at, apart, p, len)) row[g->indexes[k]] += 1;
}

static void weigh(const RefGrams *g, int64_t n_grams, float *row, int64_t width) {
    for (int64_t i = 0; i < width && g->clip; i++)
        if (row[i] > 1) row[i] = 1;
    for (int64_t k = 0; k < n_grams && g->weights != NULL; k++) row[g->indexes[k]] *= g->weights[k];
}

void ref_grams(const RefGrams *g, const Tensor *x, Tensor *y) {
    int64_t len = x->dims[x->rank - 1], width = y->dims[y->rank - 1];
    int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    for (int64_t r = 0; r < rows; r++) {
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

#include "serve/tensor/classification.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/work_stop.h"

enum { VALUE_TEXT = 400 };  // bytes: the largest double in %f, an index, two colons

typedef struct Ranking {  // the highest `n` of one row, as a heap with the lowest on top
    const Tensor *t;
    int64_t       base;  // first element of the row
    uint32_t     *heap;
    uint32_t      n, room;
} Ranking;

#define ORDER(T)                                                                                   \
    {                                                                                              \
        T x = ((const T *)t->data)[a], y = ((const T *)t->data)[b];                                \
        return x > y ? 1 : x < y ? -1 : 0;                                                         \
    }

// NaN is below every number.
static int order_floats(double x, double y) {
    if (x > y || (x == x && y != y)) return 1;  // NOLINT(misc-redundant-expression): NaN
    return x < y || (x != x && y == y) ? -1 : 0;
}

static int order_values(const Tensor *t, int64_t a, int64_t b) {
    switch (t->dtype) {
    case DT_U8: ORDER(uint8_t)
    case DT_U16: ORDER(uint16_t)
    case DT_U32: ORDER(uint32_t)
    case DT_U64: ORDER(uint64_t)
    case DT_I8: ORDER(int8_t)
    case DT_I16: ORDER(int16_t)
    case DT_I32: ORDER(int32_t)
    case DT_I64: ORDER(int64_t)
    case DT_F32: return order_floats(((const float *)t->data)[a], ((const float *)t->data)[b]);
    default: return order_floats(((const double *)t->data)[a], ((const double *)t->data)[b]);
    }
}

// Whether index a ranks before index b.
static bool before(const Ranking *r, uint32_t a, uint32_t b) {
    int order = order_values(r->t, r->base + a, r->base + b);
    return order != 0 ? order > 0 : a < b;
}

static void sift_down(const Ranking *r, uint32_t at, uint32_t n) {
    for (;;) {
        uint32_t last = at, left = 2 * at + 1;
        if (left < n && before(r, r->heap[last], r->heap[left])) last = left;
        if (left + 1 < n && before(r, r->heap[last], r->heap[left + 1])) last = left + 1;
        if (last == at) return;
        uint32_t moved = r->heap[at];
        r->heap[at] = r->heap[last];
        r->heap[last] = moved;
        at = last;
    }
}

// Fills heap with the highest of `count` indices, highest first.
static void rank_row(Ranking *r, uint32_t count) {
    r->n = r->room < count ? r->room : count;
    for (uint32_t i = 0; i < r->n; i++) r->heap[i] = i;
    WORK_EACH (k, r->n / 2) sift_down(r, r->n / 2 - 1 - (uint32_t)k, r->n);
    WORK_EACH (k, (int64_t)count - r->n) {
        uint32_t i = r->n + (uint32_t)k;
        if (!before(r, i, r->heap[0])) continue;
        r->heap[0] = i;
        sift_down(r, 0, r->n);
    }
    WORK_EACH (k, (int64_t)r->n - 1) {
        uint32_t i = r->n - 1 - (uint32_t)k, last = r->heap[0];
        r->heap[0] = r->heap[i];
        r->heap[i] = last;
        sift_down(r, 0, i);
    }
}

// Floating point has six decimals, as in Triton's answers.
static int print_value(const Tensor *t, int64_t at, char *out) {
    switch (t->dtype) {
    case DT_F32: return snprintf(out, VALUE_TEXT, "%f", (double)((const float *)t->data)[at]);
    case DT_F64: return snprintf(out, VALUE_TEXT, "%f", ((const double *)t->data)[at]);
    case DT_U8: return snprintf(out, VALUE_TEXT, "%u", ((const uint8_t *)t->data)[at]);
    case DT_U16: return snprintf(out, VALUE_TEXT, "%u", ((const uint16_t *)t->data)[at]);
    case DT_U32: return snprintf(out, VALUE_TEXT, "%" PRIu32, ((const uint32_t *)t->data)[at]);
    case DT_U64: return snprintf(out, VALUE_TEXT, "%" PRIu64, ((const uint64_t *)t->data)[at]);
    case DT_I8: return snprintf(out, VALUE_TEXT, "%d", ((const int8_t *)t->data)[at]);
    case DT_I16: return snprintf(out, VALUE_TEXT, "%d", ((const int16_t *)t->data)[at]);
    case DT_I32: return snprintf(out, VALUE_TEXT, "%" PRId32, ((const int32_t *)t->data)[at]);
    default: return snprintf(out, VALUE_TEXT, "%" PRId64, ((const int64_t *)t->data)[at]);
    }
}

static Err print_class(const Ranking *r, uint32_t index, const TensorSpec *spec, size_t *left,
                       Arena *a, Str *out) {
    char   text[VALUE_TEXT];
    size_t n = (size_t)print_value(r->t, r->base + index, text);
    n += (size_t)snprintf(text + n, sizeof text - n, ":%" PRIu32, index);
    Str    label = index < spec->n_labels ? spec->labels[index] : (Str){0};
    size_t len = n + (label.len > 0 ? 1 + label.len : 0);
    char  *to = len <= *left ? arena_try(a, len, 1, 1) : NULL;
    if (to == NULL)
        return err_set(ERR_LIMIT, "output '%s': too many classes for a response", spec->name);
    *left -= len;
    memcpy(to, text, n);
    if (label.len > 0) {
        to[n] = ':';
        memcpy(to + n + 1, label.at, label.len);
    }
    *out = (Str){to, len};
    return ERR_OK;
}

static Err check(const TensorSpec *spec, const Tensor *t) {
    bool numbers = dtype_is_int(t->dtype) || t->dtype == DT_F32 || t->dtype == DT_F64;
    if (!numbers)
        return err_set(ERR_INVALID, "output '%s' is %s, which has no classification", spec->name,
                       dtype_name(t->dtype));
    if (tensor_count(t) > CLASSIFICATION_ELEMENTS)
        return err_set(ERR_LIMIT,
                       "output '%s' has more than the %d elements that are classified; request the "
                       "tensor",
                       spec->name, CLASSIFICATION_ELEMENTS);
    return ERR_OK;
}

Err classification_apply(const TensorSpec *spec, bool batched, int64_t classes, size_t *left,
                         Arena *a, Tensor *t) {
    TRY(check(spec, t));
    bool    batch = batched && t->rank > 0;
    int64_t rows = batch ? t->dims[0] : 1, all = tensor_count(t), each = rows > 0 ? all / rows : 0;
    int64_t n = classes < each ? classes : each;
    Tensor  out = {.dtype = DT_STR, .rank = batch ? 2 : 1, .dims = {batch ? rows : n, n}};
    Ranking r = {.t = t, .room = (uint32_t)n, .heap = arena_try_new(a, uint32_t, (size_t)n)};
    if (r.heap == NULL) return err_set(ERR_LIMIT, "out of memory to rank '%s'", spec->name);
    TRY(tensor_alloc(&out, a));
    for (int64_t row = 0; row < rows && n > 0; row++) {
        r.base = row * each;
        rank_row(&r, (uint32_t)each);
        for (int64_t i = 0; i < n; i++) {
            TRY(work_stop_check());
            TRY(print_class(&r, r.heap[i], spec, left, a, &((Str *)out.data)[row * n + i]));
        }
    }
    *t = out;
    return ERR_OK;
}

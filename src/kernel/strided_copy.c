#include "kernel/strided_copy.h"

#include <string.h>

#include "base/err.h"
#include "kernel/nd_iter.h"

// Outermost first in the output.
static void sort_dims(StridedCopy *s) {
    for (uint32_t i = 1; i < s->rank; i++)
        for (uint32_t j = i; j > 0 && s->dims[j - 1].to < s->dims[j].to; j--) {
            StridedCopyDim d = s->dims[j];
            s->dims[j] = s->dims[j - 1];
            s->dims[j - 1] = d;
        }
}

static void merge_dims(StridedCopy *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->rank; i++) {
        StridedCopyDim *a = &s->dims[kept - (kept > 0)], *b = &s->dims[i];
        ptrdiff_t       n = (ptrdiff_t)b->n;
        if (kept > 0 && a->to == n * b->to && a->from == n * b->from)
            *a = (StridedCopyDim){a->n * b->n, b->to, b->from};
        else
            s->dims[kept++] = *b;
    }
    s->rank = kept;
}

// The dimension whose elements stand next to each other in the input, if any but the last.
static uint32_t turned_dim(const StridedCopy *s) {
    for (uint32_t i = 0; i + 1 < s->rank; i++)
        if (s->dims[i].from == 1) return i;
    return s->rank;
}

static void choose_way(StridedCopy *s) {
    if (s->rank == 0) s->dims[s->rank++] = (StridedCopyDim){1, 1, 1};
    const StridedCopyDim *last = &s->dims[s->rank - 1];
    const uint32_t        transposed = turned_dim(s);
    s->kind = STRIDED_COPY_ELEMENTS;
    if (last->to != 1) return;
    if (last->from == 1) s->kind = STRIDED_COPY_CONTIGUOUS;
    if (last->from == 0) s->kind = STRIDED_COPY_FILL;
    if (s->kind != STRIDED_COPY_ELEMENTS || transposed == s->rank) return;
    s->kind = STRIDED_COPY_TRANSPOSE;
    const StridedCopyDim columns = s->dims[transposed];
    memmove(&s->dims[transposed], &s->dims[transposed + 1],
            (s->rank - 2 - transposed) * sizeof(StridedCopyDim));
    s->dims[s->rank - 2] = columns;
}

StridedCopy strided_copy_make(int32_t rank, const int64_t *dims, size_t size, const int64_t *to,
                              const int64_t *from) {
    CHECK(rank <= TENSOR_MAX_RANK && (size == 1 || size == 2 || size == 4 || size == 8));
    StridedCopy s = {.size = (uint32_t)size};
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] == 0) return s;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        CHECK(to[i] > 0);
        s.dims[s.rank++] = (StridedCopyDim){(size_t)dims[i], to[i], from[i]};
    }
    sort_dims(&s);
    merge_dims(&s);
    choose_way(&s);
    return s;
}

StridedCopy strided_copy_permute(int32_t rank, const int64_t *dims, const int32_t *perm,
                                 size_t size) {
    int64_t own[TENSOR_MAX_RANK], out[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK];
    CHECK(rank <= TENSOR_MAX_RANK);
    nd_iter_contiguous(rank, dims, own);
    for (int32_t i = 0; i < rank; i++) {
        out[i] = dims[perm[i]];
        from[i] = own[perm[i]];
    }
    nd_iter_contiguous(rank, out, to);
    return strided_copy_make(rank, out, size, to, from);
}

uint32_t strided_copy_pad(int32_t rank, const int64_t *in, const int64_t *at, const int64_t *out,
                          size_t size, StridedCopy *shuffles) {
    int64_t  own[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], none[TENSOR_MAX_RANK] = {0};
    int64_t  low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK], n[TENSOR_MAX_RANK];
    int64_t  to_at = 0, from_at = 0;
    uint32_t count = 1;
    CHECK(rank <= TENSOR_MAX_RANK);
    nd_iter_contiguous(rank, in, own);
    nd_iter_contiguous(rank, out, to);
    for (int32_t d = 0; d < rank; d++) {
        low[d] = at[d] < 0 ? 0 : at[d] < out[d] ? at[d] : out[d];
        high[d] = at[d] + in[d] < out[d] ? at[d] + in[d] : out[d];
        if (high[d] < low[d]) high[d] = low[d];
        n[d] = out[d];
    }
    // Below and above in each dimension; dimensions before it keep to where x lies.
    for (int32_t d = 0; d < rank; d++) {
        n[d] = low[d];
        shuffles[count] = strided_copy_make(rank, n, size, to, none);
        shuffles[count].to_at = to_at;
        count += n[d] > 0;
        n[d] = out[d] - high[d];
        shuffles[count] = strided_copy_make(rank, n, size, to, none);
        shuffles[count].to_at = to_at + high[d] * to[d];
        count += n[d] > 0;
        n[d] = high[d] - low[d];
        to_at += low[d] * to[d];
        from_at += (low[d] - at[d]) * own[d];
    }
    shuffles[0] = strided_copy_make(rank, n, size, to, own);
    shuffles[0].to_at = to_at;
    shuffles[0].from_at = from_at;
    return count;
}

static size_t outer_count(const StridedCopy *s, uint32_t inner) {
    size_t n = 1;
    for (uint32_t i = 0; i + inner < s->rank; i++) n *= s->dims[i].n;
    return n;
}

static size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

static uint32_t checked(size_t tasks) {
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}

enum { TASK_BYTES = 16 << 10, TURN_COLUMNS = 16, TURN_ROWS = 256 };

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Turns are narrow: a cache line of the input is used up before the next one is touched.
StridedCopyTask strided_copy_task(const StridedCopy *s) {
    const StridedCopyDim *last = &s->dims[s->rank - 1];
    const size_t          most = TASK_BYTES / s->size;
    if (s->kind != STRIDED_COPY_TRANSPOSE) {
        const size_t columns = smaller(last->n, most);
        return (StridedCopyTask){1, columns, last->n > most ? 1 : most / columns};
    }
    const size_t rows = smaller(last->n, TURN_ROWS), wide = most / rows / TURN_COLUMNS;
    const size_t columns = smaller(last[-1].n, (wide > 0 ? wide : 1) * TURN_COLUMNS);
    const bool   all = rows == last->n && columns == last[-1].n;
    return (StridedCopyTask){rows, columns,
                             all && rows * columns < most ? most / (rows * columns) : 1};
}

uint32_t strided_copy_tasks(const StridedCopy *s) {
    if (s->kind == STRIDED_COPY_EMPTY) return 0;
    const StridedCopyTask c = strided_copy_task(s);
    const StridedCopyDim *last = &s->dims[s->rank - 1];
    const bool            turn = s->kind == STRIDED_COPY_TRANSPOSE;
    const size_t          outer = outer_count(s, turn ? 2 : 1);
    const size_t          cuts = turn ? ceil_div(last->n, c.rows) * ceil_div(last[-1].n, c.columns)
                                      : ceil_div(last->n, c.columns);
    return checked(c.group > 1 ? ceil_div(outer, c.group) : outer * cuts);
}

static size_t pick_group(const Gather *p) {
    return p->bytes < TASK_BYTES ? TASK_BYTES / (p->bytes + 16) : 1;
}

uint32_t gather_tasks(const Gather *p) {
    if (p->bytes == 0) return 0;
    return checked(ceil_div(p->outer * p->count, pick_group(p)));
}

static size_t pick_at(const Gather *p, size_t i) {
    const int64_t at = p->wide ? ((const int64_t *)p->index)[i] : ((const int32_t *)p->index)[i];
    return (size_t)(at < 0 ? at + (int64_t)p->axis : at);
}

void gather_run(const Gather *p, Part part) {
    uint32_t task, end;
    part_range(part, gather_tasks(p), &task, &end);
    const size_t group = pick_group(p), all = p->outer * p->count;
    size_t       i = task * group, last = end * group < all ? end * group : all;
    for (; i < last; i++) {
        const size_t row = i / p->count * p->axis + pick_at(p, i % p->count);
        char        *to = (char *)p->to + i * p->bytes;
        const char  *from = (const char *)p->from + row * p->bytes;
        if (p->bytes == 4)
            memcpy(to, from, 4);
        else
            memcpy(to, from, p->bytes);
    }
}

static size_t layout_convert_blocks(const LayoutConvert *r, uint32_t lanes) {
    return (size_t)r->n * ((r->channels + lanes - 1) / lanes);
}

uint32_t layout_convert_tasks(const LayoutConvert *r, uint32_t lanes) {
    size_t tasks = layout_convert_blocks(r, lanes) *
                   ((r->pixels + LAYOUT_CONVERT_PIXELS - 1) / LAYOUT_CONVERT_PIXELS);
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}

size_t layout_convert_count(const LayoutConvert *r, uint32_t lanes) {
    return layout_convert_blocks(r, lanes) * r->pixels * lanes;
}

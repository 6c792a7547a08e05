#include "kernel/strided_copy.h"

#include <string.h>

#include "base/err.h"
#include "kernel/blocking.h"
#include "kernel/nd_iter.h"

// Outermost output dimension first.
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

// The dimension that is contiguous in the input; rank if only the last one is.
static uint32_t input_contiguous_dim(const StridedCopy *s) {
    for (uint32_t i = 0; i + 1 < s->rank; i++)
        if (s->dims[i].from == 1) return i;
    return s->rank;
}

static void choose_kind(StridedCopy *s) {
    if (s->rank == 0) s->dims[s->rank++] = (StridedCopyDim){1, 1, 1};
    const StridedCopyDim *last = &s->dims[s->rank - 1];
    const uint32_t        inner = input_contiguous_dim(s);
    s->kind = STRIDED_COPY_ELEMENTS;
    if (last->to != 1) return;
    if (last->from == 1) s->kind = STRIDED_COPY_CONTIGUOUS;
    if (last->from == 0) s->kind = STRIDED_COPY_FILL;
    if (s->kind != STRIDED_COPY_ELEMENTS || inner == s->rank) return;
    s->kind = STRIDED_COPY_TRANSPOSE;
    const StridedCopyDim columns = s->dims[inner];
    memmove(&s->dims[inner], &s->dims[inner + 1], (s->rank - 2 - inner) * sizeof(StridedCopyDim));
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
    choose_kind(&s);
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

static size_t outer_count(const StridedCopy *s, uint32_t inner) {
    size_t n = 1;
    for (uint32_t i = 0; i + inner < s->rank; i++) n *= s->dims[i].n;
    return n;
}

enum { TASK_BYTES = 16 << 10, TRANSPOSE_COLUMNS = 16, TRANSPOSE_ROWS = 256 };

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

// Transposes take few columns, so that each input cache line is used up before it is evicted.
StridedCopyTask strided_copy_task(const StridedCopy *s) {
    const StridedCopyDim *last = &s->dims[s->rank - 1];
    const size_t          most = TASK_BYTES / s->size;
    if (s->kind != STRIDED_COPY_TRANSPOSE) {
        const size_t columns = min_size(last->n, most);
        return (StridedCopyTask){1, columns, last->n > most ? 1 : most / columns};
    }
    const size_t rows = min_size(last->n, TRANSPOSE_ROWS), groups = most / rows / TRANSPOSE_COLUMNS;
    const size_t columns = min_size(last[-1].n, (groups > 0 ? groups : 1) * TRANSPOSE_COLUMNS);
    const bool   all = rows == last->n && columns == last[-1].n;
    return (StridedCopyTask){rows, columns,
                             all && rows * columns < most ? most / (rows * columns) : 1};
}

uint32_t strided_copy_tasks(const StridedCopy *s) {
    if (s->kind == STRIDED_COPY_EMPTY) return 0;
    const StridedCopyTask c = strided_copy_task(s);
    const StridedCopyDim *last = &s->dims[s->rank - 1];
    const bool            transpose = s->kind == STRIDED_COPY_TRANSPOSE;
    const size_t          outer = outer_count(s, transpose ? 2 : 1);
    const size_t          pieces =
        transpose ? ceil_div_size(last->n, c.rows) * ceil_div_size(last[-1].n, c.columns)
                           : ceil_div_size(last->n, c.columns);
    return checked_tasks(c.group > 1 ? ceil_div_size(outer, c.group) : outer * pieces);
}

static size_t gather_group(const Gather *p) {
    return p->bytes < TASK_BYTES ? TASK_BYTES / (p->bytes + 16) : 1;
}

uint32_t gather_tasks(const Gather *p) {
    if (p->bytes == 0) return 0;
    return checked_tasks(ceil_div_size(p->outer * p->count, gather_group(p)));
}

static size_t gather_index(const Gather *p, size_t i) {
    const int64_t at = p->wide ? ((const int64_t *)p->index)[i] : ((const int32_t *)p->index)[i];
    return (size_t)(at < 0 ? at + (int64_t)p->axis : at);
}

void gather_run(const Gather *p, Part part) {
    uint32_t task, end;
    part_range(part, gather_tasks(p), &task, &end);
    const size_t group = gather_group(p), all = p->outer * p->count;
    size_t       i = task * group, last = end * group < all ? end * group : all;
    for (; i < last; i++) {
        const size_t row = i / p->count * p->axis + gather_index(p, i % p->count);
        char        *to = (char *)p->to + i * p->bytes;
        const char  *from = (const char *)p->from + row * p->bytes;
        if (p->bytes == 4)
            memcpy(to, from, 4);
        else
            memcpy(to, from, p->bytes);
    }
}

uint32_t layout_convert_tasks(const LayoutConvert *r, uint32_t lanes) {
    const size_t blocks = (size_t)r->n * ceil_div(r->channels, lanes);
    return checked_tasks(blocks * ceil_div_size(r->pixels, LAYOUT_CONVERT_PIXELS));
}

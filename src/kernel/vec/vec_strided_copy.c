#include "kernel/strided_copy.h"
#include "kernel/vec/vec_transpose.h"

strided_copy_fn VEC(strided_copy);

// Index over the outer dimensions of a copy, with the element offset of each side.
typedef struct OuterIndex {
    size_t    index[TENSOR_MAX_RANK];
    ptrdiff_t to, from;
} OuterIndex;

static OuterIndex outer_at(const StridedCopy *s, uint32_t outer, size_t linear) {
    OuterIndex p = {.to = s->to_at, .from = s->from_at};
    for (uint32_t i = outer; i-- > 0; linear /= s->dims[i].n) {
        p.index[i] = linear % s->dims[i].n;
        p.to += (ptrdiff_t)p.index[i] * s->dims[i].to;
        p.from += (ptrdiff_t)p.index[i] * s->dims[i].from;
    }
    return p;
}

static void outer_next(const StridedCopy *s, uint32_t outer, OuterIndex *p) {
    for (uint32_t i = outer; i-- > 0;) {
        const StridedCopyDim *d = &s->dims[i];
        p->to += d->to;
        p->from += d->from;
        if (++p->index[i] < d->n) return;
        p->index[i] = 0;
        p->to -= (ptrdiff_t)d->n * d->to;
        p->from -= (ptrdiff_t)d->n * d->from;
    }
}

#define SIZES(X) X(1) X(2) X(4) X(8)

// Element by element; `size` is a constant in every inlined copy.
VEC_INLINE void copy_elements(const size_t size, char *to, ptrdiff_t to_step, const char *from,
                              ptrdiff_t from_step, size_t n) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)
        memcpy(to + i * to_step * (ptrdiff_t)size, from + i * from_step * (ptrdiff_t)size, size);
}

static void copy_strided(size_t size, char *to, ptrdiff_t to_step, const char *from,
                         ptrdiff_t from_step, size_t n) {
    switch (size) {
#define X(bytes)                                                                                   \
    case bytes: copy_elements(bytes, to, to_step, from, from_step, n); break;
        SIZES(X)
#undef X
    }
}

VEC_INLINE void fill_elements(const size_t size, char *to, const char *from, size_t n) {
    char one[8];
    memcpy(one, from, size);
    for (size_t i = 0; i < n; i++) memcpy(to + i * size, one, size);
}

static void fill(size_t size, char *to, const char *from, size_t n) {
    switch (size) {
#define X(bytes)                                                                                   \
    case bytes: fill_elements(bytes, to, from, n); break;
        SIZES(X)
#undef X
    }
}

// Short runs are copied inline instead of by memcpy.
static void copy_contiguous(char *to, const char *from, size_t bytes) {
    if (bytes >= 64)
        memcpy(to, from, bytes);
    else if (bytes % 8 == 0)
        copy_elements(8, to, 1, from, 1, bytes / 8);
    else if (bytes % 4 == 0)
        copy_elements(4, to, 1, from, 1, bytes / 4);
    else
        copy_elements(1, to, 1, from, 1, bytes);
}

static void run_one(const StridedCopy *s, const OuterIndex *p, size_t first, size_t n) {
    const StridedCopyDim *d = &s->dims[s->rank - 1];
    const ptrdiff_t       size = (ptrdiff_t)s->size, i = (ptrdiff_t)first;
    char                 *to = (char *)s->to + (p->to + i * d->to) * size;
    const char           *from = (const char *)s->from + (p->from + i * d->from) * size;
    if (s->kind == STRIDED_COPY_CONTIGUOUS)
        copy_contiguous(to, from, n * s->size);
    else if (s->kind == STRIDED_COPY_FILL)
        fill(s->size, to, from, n);
    else
        copy_strided(s->size, to, d->to, from, d->from, n);
}

// Transposes one VEC_LANES square of 4-byte elements; row strides in bytes.
VEC_INLINE void transpose_square(const char *from, ptrdiff_t from_row, char *to, ptrdiff_t to_row) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < VEC_LANES; i++) r[i] = vf_load((const float *)(from + i * from_row));
    vec_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < VEC_LANES; i++) vf_store((float *)(to + i * to_row), r[i]);
}

// A rectangle of the input to transpose.
typedef struct Rectangle {
    const char *from;
    char       *to;
    ptrdiff_t   from_row, to_row;  // bytes
    size_t      rows, columns, size;
} Rectangle;

static void transpose_elements(const Rectangle *t, size_t row, size_t rows, size_t column,
                               size_t columns) {
    const ptrdiff_t size = (ptrdiff_t)t->size;
    for (size_t c = column; c < column + columns; c++)
        copy_strided(t->size, t->to + (ptrdiff_t)c * t->to_row + (ptrdiff_t)row * size, 1,
                     t->from + (ptrdiff_t)row * t->from_row + (ptrdiff_t)c * size,
                     t->from_row / size, rows);
}

typedef uint32_t Word __attribute__((may_alias));

// Interleaves n rows, or separates n interleaved columns: n is a constant in every inlined copy, so
// the compiler vectorises the loops.
VEC_INLINE void interleave(const Rectangle *t, const size_t n) {
    const Word     *from = (const Word *)(const void *)t->from;
    Word           *to = (Word *)(void *)t->to;
    const ptrdiff_t row = t->from_row / 4;
    for (size_t c = 0; c < t->columns; c++)
        for (size_t r = 0; r < n; r++) to[c * n + r] = from[(ptrdiff_t)r * row + (ptrdiff_t)c];
}

VEC_INLINE void deinterleave(const Rectangle *t, const size_t n) {
    const Word     *from = (const Word *)(const void *)t->from;
    Word           *to = (Word *)(void *)t->to;
    const ptrdiff_t row = t->to_row / 4;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < n; c++) to[(ptrdiff_t)c * row + (ptrdiff_t)r] = from[r * n + c];
}

static bool transpose_narrow(const Rectangle *t) {
    if (t->size != 4) return false;
    const bool interleaves = t->to_row == (ptrdiff_t)t->rows * 4;
    const bool deinterleaves = t->from_row == (ptrdiff_t)t->columns * 4;
#define X(n)                                                                                       \
    if (interleaves && t->rows == (n)) return interleave(t, n), true;                              \
    if (deinterleaves && t->columns == (n)) return deinterleave(t, n), true;
    X(2)
    X(3)
    X(4)
#undef X
    return false;
}

static void transpose_squares(const Rectangle *t, size_t column, size_t columns) {
    size_t row = 0, end = column + columns / VEC_LANES * VEC_LANES;
    for (; end > column && row + VEC_LANES <= t->rows; row += VEC_LANES)
        for (size_t c = column; c < end; c += VEC_LANES)
            transpose_square(t->from + (ptrdiff_t)row * t->from_row + (ptrdiff_t)c * 4, t->from_row,
                             t->to + (ptrdiff_t)c * t->to_row + (ptrdiff_t)row * 4, t->to_row);
    transpose_elements(t, row, t->rows - row, column, end - column);
    transpose_elements(t, 0, t->rows, end, column + columns - end);
}

// 16 columns at a time: whole cache lines on both sides.
static void transpose(const Rectangle *t) {
    if (transpose_narrow(t)) return;
    for (size_t c = 0; c < t->columns; c += 16) {
        const size_t columns = t->columns - c < 16 ? t->columns - c : 16;
        if (t->size == 4)
            transpose_squares(t, c, columns);
        else
            transpose_elements(t, 0, t->rows, c, columns);
    }
}

// Task-sized piece of the run or transpose at an outer index.
static void piece_run(const StridedCopy *s, const StridedCopyTask *task, const OuterIndex *p,
                      size_t piece) {
    const StridedCopyDim *r = &s->dims[s->rank - 1];
    const ptrdiff_t       size = (ptrdiff_t)s->size;
    if (s->kind != STRIDED_COPY_TRANSPOSE) {
        const size_t first = piece * task->columns, rest = r->n - first;
        run_one(s, p, first, rest < task->columns ? rest : task->columns);
        return;
    }
    const StridedCopyDim *c = r - 1;
    const size_t          down = (r->n + task->rows - 1) / task->rows;
    const size_t          column = piece / down * task->columns, row = piece % down * task->rows;
    const size_t          columns = c->n - column, rows = r->n - row;
    const Rectangle       t = {
              .from =
                  (const char *)s->from + (p->from + (ptrdiff_t)row * r->from + (ptrdiff_t)column) * size,
              .to = (char *)s->to + (p->to + (ptrdiff_t)column * c->to + (ptrdiff_t)row) * size,
              .from_row = r->from * size,
              .to_row = c->to * size,
              .rows = rows < task->rows ? rows : task->rows,
              .columns = columns < task->columns ? columns : task->columns,
              .size = s->size,
    };
    transpose(&t);
}

void VEC(strided_copy)(const StridedCopy *s, Part part) {
    const uint32_t tasks = strided_copy_tasks(s);
    uint32_t       task, end;
    part_range(part, tasks, &task, &end);
    if (task == end) return;
    const StridedCopyTask cut = strided_copy_task(s);
    const uint32_t        outer = s->rank - (s->kind == STRIDED_COPY_TRANSPOSE ? 2 : 1);
    size_t                outer_count = 1;
    for (uint32_t i = 0; i < outer; i++) outer_count *= s->dims[i].n;
    if (cut.group == 1) {
        const size_t pieces = tasks / outer_count;
        for (; task < end; task++) {
            const OuterIndex p = outer_at(s, outer, task / pieces);
            piece_run(s, &cut, &p, task % pieces);
        }
        return;
    }
    const size_t last = end * cut.group < outer_count ? end * cut.group : outer_count;
    OuterIndex   p = outer_at(s, outer, task * cut.group);
    for (size_t i = task * cut.group; i < last; i++) {
        piece_run(s, &cut, &p, 0);
        outer_next(s, outer, &p);
    }
}

layout_to_blocked_fn VEC(layout_to_blocked);
layout_to_plain_fn   VEC(layout_to_plain);

// One task of a layout conversion: `pixels` pixels of `channels` <= VEC_LANES channels.
typedef struct BlockPixels {
    const float *from;
    float       *to;
    size_t       stride;  // floats between channels of the plain side
    uint32_t     channels, pixels;
} BlockPixels;

VEC_INLINE void to_blocked_square(const float *from, size_t stride, uint32_t channels, float *to) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++)
        r[i] = i < channels ? vf_load(from + i * stride) : vf_set(0);
    vec_transpose(r);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++) vf_store(to + i * VEC_LANES, r[i]);
}

VEC_INLINE void to_plain_square(const float *from, float *to, size_t stride, uint32_t channels) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++) r[i] = vf_load(from + i * VEC_LANES);
    vec_transpose(r);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++)
        if (i < channels) vf_store(to + i * stride, r[i]);
}

static void to_blocked_pixel(const BlockPixels *r, uint32_t p) {
    for (uint32_t c = 0; c < VEC_LANES; c++)
        r->to[(size_t)p * VEC_LANES + c] = c < r->channels ? r->from[c * r->stride + p] : 0;
}

static void to_plain_pixel(const BlockPixels *r, uint32_t p) {
    for (uint32_t c = 0; c < r->channels; c++)
        r->to[c * r->stride + p] = r->from[(size_t)p * VEC_LANES + c];
}

// If pixels is not a multiple of lanes, the last square overlaps the one before it.
#define SQUARES(r, p, square)                                                                      \
    do {                                                                                           \
        uint32_t p = 0;                                                                            \
        for (; p + VEC_LANES <= (r)->pixels; p += VEC_LANES) square;                               \
        p = (r)->pixels - VEC_LANES;                                                               \
        if ((r)->pixels % VEC_LANES != 0) square;                                                  \
    } while (0)

static void to_blocked(const BlockPixels *r) {
    if (r->pixels < VEC_LANES)
        for (uint32_t p = 0; p < r->pixels; p++) to_blocked_pixel(r, p);
    else if (r->channels == VEC_LANES)
        SQUARES(
            r, p,
            to_blocked_square(r->from + p, r->stride, VEC_LANES, r->to + (size_t)p * VEC_LANES));
    else
        SQUARES(
            r, p,
            to_blocked_square(r->from + p, r->stride, r->channels, r->to + (size_t)p * VEC_LANES));
}

static void to_plain(const BlockPixels *r) {
    if (r->pixels < VEC_LANES)
        for (uint32_t p = 0; p < r->pixels; p++) to_plain_pixel(r, p);
    else if (r->channels == VEC_LANES)
        SQUARES(r, p,
                to_plain_square(r->from + (size_t)p * VEC_LANES, r->to + p, r->stride, VEC_LANES));
    else
        SQUARES(
            r, p,
            to_plain_square(r->from + (size_t)p * VEC_LANES, r->to + p, r->stride, r->channels));
}

// Start of a task in the plain and in the blocked tensor, in floats.
typedef struct LayoutTask {
    size_t   plain, blocked;
    uint32_t channels, pixels;
} LayoutTask;

static LayoutTask layout_task(const LayoutConvert *r, uint32_t task) {
    uint32_t blocks = (r->channels + VEC_LANES - 1) / VEC_LANES;
    uint32_t cuts = (uint32_t)((r->pixels + LAYOUT_CONVERT_PIXELS - 1) / LAYOUT_CONVERT_PIXELS);
    uint32_t image = task / cuts / blocks, block = task / cuts % blocks;
    uint32_t left = r->channels - block * VEC_LANES;
    size_t   begin = (size_t)(task % cuts) * LAYOUT_CONVERT_PIXELS, rest = r->pixels - begin;
    return (LayoutTask){
        .plain = ((size_t)image * r->channels + block * VEC_LANES) * r->pixels + begin,
        .blocked = (((size_t)image * blocks + block) * r->pixels + begin) * VEC_LANES,
        .channels = left < VEC_LANES ? left : VEC_LANES,
        .pixels = rest < LAYOUT_CONVERT_PIXELS ? (uint32_t)rest : LAYOUT_CONVERT_PIXELS,
    };
}

void VEC(layout_to_blocked)(const LayoutConvert *r, Part part) {
    uint32_t task, end;
    part_range(part, layout_convert_tasks(r, VEC_LANES), &task, &end);
    for (; task < end; task++) {
        LayoutTask  p = layout_task(r, task);
        BlockPixels run = {r->from + p.plain, r->to + p.blocked, r->pixels, p.channels, p.pixels};
        to_blocked(&run);
    }
}

void VEC(layout_to_plain)(const LayoutConvert *r, Part part) {
    uint32_t task, end;
    part_range(part, layout_convert_tasks(r, VEC_LANES), &task, &end);
    for (; task < end; task++) {
        LayoutTask  p = layout_task(r, task);
        BlockPixels run = {r->from + p.blocked, r->to + p.plain, r->pixels, p.channels, p.pixels};
        to_plain(&run);
    }
}

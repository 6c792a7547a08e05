#include "kernel/strided_copy.h"
#include "kernel/vec/vec_transpose.h"

strided_copy_fn VEC(strided_copy);

// An index over the outer dimensions of a shuffle, with the place of each side.
typedef struct Place {
    size_t    index[TENSOR_MAX_RANK];
    ptrdiff_t to, from;
} Place;

static Place place_at(const StridedCopy *s, uint32_t outer, size_t linear) {
    Place p = {.to = s->to_at, .from = s->from_at};
    for (uint32_t i = outer; i-- > 0; linear /= s->dims[i].n) {
        p.index[i] = linear % s->dims[i].n;
        p.to += (ptrdiff_t)p.index[i] * s->dims[i].to;
        p.from += (ptrdiff_t)p.index[i] * s->dims[i].from;
    }
    return p;
}

static void place_next(const StridedCopy *s, uint32_t outer, Place *p) {
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

// Elements one by one; `size` is a constant wherever this is inlined.
VEC_INLINE void each_of(const size_t size, char *to, ptrdiff_t to_step, const char *from,
                        ptrdiff_t from_step, size_t n) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)
        memcpy(to + i * to_step * (ptrdiff_t)size, from + i * from_step * (ptrdiff_t)size, size);
}

static void each_run(size_t size, char *to, ptrdiff_t to_step, const char *from,
                     ptrdiff_t from_step, size_t n) {
    switch (size) {
#define X(bytes)                                                                                   \
    case bytes: each_of(bytes, to, to_step, from, from_step, n); break;
        SIZES(X)
#undef X
    }
}

VEC_INLINE void fill_of(const size_t size, char *to, const char *from, size_t n) {
    char one[8];
    memcpy(one, from, size);
    for (size_t i = 0; i < n; i++) memcpy(to + i * size, one, size);
}

static void fill_run(size_t size, char *to, const char *from, size_t n) {
    switch (size) {
#define X(bytes)                                                                                   \
    case bytes: fill_of(bytes, to, from, n); break;
        SIZES(X)
#undef X
    }
}

// Short runs are copied without a call.
static void copy_run(char *to, const char *from, size_t bytes) {
    if (bytes >= 64)
        memcpy(to, from, bytes);
    else if (bytes % 8 == 0)
        each_of(8, to, 1, from, 1, bytes / 8);
    else if (bytes % 4 == 0)
        each_of(4, to, 1, from, 1, bytes / 4);
    else
        each_of(1, to, 1, from, 1, bytes);
}

static void run_one(const StridedCopy *s, const Place *p, size_t first, size_t n) {
    const StridedCopyDim *d = &s->dims[s->rank - 1];
    const ptrdiff_t       size = (ptrdiff_t)s->size, i = (ptrdiff_t)first;
    char                 *to = (char *)s->to + (p->to + i * d->to) * size;
    const char           *from = (const char *)s->from + (p->from + i * d->from) * size;
    if (s->kind == STRIDED_COPY_CONTIGUOUS)
        copy_run(to, from, n * s->size);
    else if (s->kind == STRIDED_COPY_FILL)
        fill_run(s->size, to, from, n);
    else
        each_run(s->size, to, d->to, from, d->from, n);
}

// to[column * to_row + row] = from[row * from_row + column] for 4 bytes, one square.
VEC_INLINE void turn_square(const char *from, ptrdiff_t from_row, char *to, ptrdiff_t to_row) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < VEC_LANES; i++) r[i] = vf_load((const float *)(from + i * from_row));
    vec_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < VEC_LANES; i++) vf_store((float *)(to + i * to_row), r[i]);
}

// A rectangle of the input: `rows` apart by from_row bytes become columns of the output.
typedef struct Turn {
    const char *from;
    char       *to;
    ptrdiff_t   from_row, to_row;  // bytes
    size_t      rows, columns, size;
} Turn;

static void turn_each(const Turn *t, size_t row, size_t rows, size_t column, size_t columns) {
    const ptrdiff_t size = (ptrdiff_t)t->size;
    for (size_t c = column; c < column + columns; c++)
        each_run(t->size, t->to + (ptrdiff_t)c * t->to_row + (ptrdiff_t)row * size, 1,
                 t->from + (ptrdiff_t)row * t->from_row + (ptrdiff_t)c * size, t->from_row / size,
                 rows);
}

typedef uint32_t Word __attribute__((may_alias));

// A few rows that alternate in the output, and a few columns that alternate in the input: loops
// the compiler makes vectors of, because n is a constant wherever this is inlined.
VEC_INLINE void weave(const Turn *t, const size_t n) {
    const Word     *from = (const Word *)(const void *)t->from;
    Word           *to = (Word *)(void *)t->to;
    const ptrdiff_t row = t->from_row / 4;
    for (size_t c = 0; c < t->columns; c++)
        for (size_t r = 0; r < n; r++) to[c * n + r] = from[(ptrdiff_t)r * row + (ptrdiff_t)c];
}

VEC_INLINE void unweave(const Turn *t, const size_t n) {
    const Word     *from = (const Word *)(const void *)t->from;
    Word           *to = (Word *)(void *)t->to;
    const ptrdiff_t row = t->to_row / 4;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < n; c++) to[(ptrdiff_t)c * row + (ptrdiff_t)r] = from[r * n + c];
}

static bool turn_narrow(const Turn *t) {
    if (t->size != 4) return false;
    const bool weaves = t->to_row == (ptrdiff_t)t->rows * 4;
    const bool unweaves = t->from_row == (ptrdiff_t)t->columns * 4;
#define X(n)                                                                                       \
    if (weaves && t->rows == (n)) return weave(t, n), true;                                        \
    if (unweaves && t->columns == (n)) return unweave(t, n), true;
    X(2)
    X(3)
    X(4)
#undef X
    return false;
}

static void turn_squares(const Turn *t, size_t column, size_t columns) {
    size_t row = 0, end = column + columns / VEC_LANES * VEC_LANES;
    for (; end > column && row + VEC_LANES <= t->rows; row += VEC_LANES)
        for (size_t c = column; c < end; c += VEC_LANES)
            turn_square(t->from + (ptrdiff_t)row * t->from_row + (ptrdiff_t)c * 4, t->from_row,
                        t->to + (ptrdiff_t)c * t->to_row + (ptrdiff_t)row * 4, t->to_row);
    turn_each(t, row, t->rows - row, column, end - column);
    turn_each(t, 0, t->rows, end, column + columns - end);
}

// Sixteen columns at a time, while rows go by: whole cache lines on both sides.
static void turn_run(const Turn *t) {
    if (turn_narrow(t)) return;
    for (size_t c = 0; c < t->columns; c += 16) {
        const size_t columns = t->columns - c < 16 ? t->columns - c : 16;
        if (t->size == 4)
            turn_squares(t, c, columns);
        else
            turn_each(t, 0, t->rows, c, columns);
    }
}

// Piece `cut` of the run or turn at a place.
static void piece_run(const StridedCopy *s, const StridedCopyTask *cut, const Place *p,
                      size_t piece) {
    const StridedCopyDim *r = &s->dims[s->rank - 1];
    const ptrdiff_t       size = (ptrdiff_t)s->size;
    if (s->kind != STRIDED_COPY_TRANSPOSE) {
        const size_t first = piece * cut->columns, rest = r->n - first;
        run_one(s, p, first, rest < cut->columns ? rest : cut->columns);
        return;
    }
    const StridedCopyDim *c = r - 1;
    const size_t          down = (r->n + cut->rows - 1) / cut->rows;
    const size_t          column = piece / down * cut->columns, row = piece % down * cut->rows;
    const size_t          columns = c->n - column, rows = r->n - row;
    const Turn            t = {
                   .from =
                       (const char *)s->from + (p->from + (ptrdiff_t)row * r->from + (ptrdiff_t)column) * size,
                   .to = (char *)s->to + (p->to + (ptrdiff_t)column * c->to + (ptrdiff_t)row) * size,
                   .from_row = r->from * size,
                   .to_row = c->to * size,
                   .rows = rows < cut->rows ? rows : cut->rows,
                   .columns = columns < cut->columns ? columns : cut->columns,
                   .size = s->size,
    };
    turn_run(&t);
}

void VEC(strided_copy)(const StridedCopy *s, Part part) {
    const uint32_t tasks = strided_copy_tasks(s);
    uint32_t       task, end;
    part_range(part, tasks, &task, &end);
    if (task == end) return;
    const StridedCopyTask cut = strided_copy_task(s);
    const uint32_t        outer = s->rank - (s->kind == STRIDED_COPY_TRANSPOSE ? 2 : 1);
    size_t                places = 1;
    for (uint32_t i = 0; i < outer; i++) places *= s->dims[i].n;
    if (cut.group == 1) {
        const size_t pieces = tasks / places;
        for (; task < end; task++) {
            const Place p = place_at(s, outer, task / pieces);
            piece_run(s, &cut, &p, task % pieces);
        }
        return;
    }
    const size_t last = end * cut.group < places ? end * cut.group : places;
    Place        p = place_at(s, outer, task * cut.group);
    for (size_t i = task * cut.group; i < last; i++) {
        piece_run(s, &cut, &p, 0);
        place_next(s, outer, &p);
    }
}

layout_to_blocked_fn VEC(layout_to_blocked);
layout_to_plain_fn   VEC(layout_to_plain);

// One task: `pixels` pixels of the `channels` <= VEC_LANES channels of a block.
typedef struct Run {
    const float *from;
    float       *to;
    size_t       stride;  // between channels of the plain side
    uint32_t     channels, pixels;
} Run;

VEC_INLINE void block_square(const float *from, size_t stride, uint32_t channels, float *to) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++)
        r[i] = i < channels ? vf_load(from + i * stride) : vf_set(0);
    vec_transpose(r);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++) vf_store(to + i * VEC_LANES, r[i]);
}

VEC_INLINE void plain_square(const float *from, float *to, size_t stride, uint32_t channels) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++) r[i] = vf_load(from + i * VEC_LANES);
    vec_transpose(r);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++)
        if (i < channels) vf_store(to + i * stride, r[i]);
}

static void block_one(const Run *r, uint32_t p) {
    for (uint32_t c = 0; c < VEC_LANES; c++)
        r->to[(size_t)p * VEC_LANES + c] = c < r->channels ? r->from[c * r->stride + p] : 0;
}

static void plain_one(const Run *r, uint32_t p) {
    for (uint32_t c = 0; c < r->channels; c++)
        r->to[c * r->stride + p] = r->from[(size_t)p * VEC_LANES + c];
}

// The last square overlaps the one before it when pixels are not a multiple of lanes.
#define SQUARES(r, p, square)                                                                      \
    do {                                                                                           \
        uint32_t p = 0;                                                                            \
        for (; p + VEC_LANES <= (r)->pixels; p += VEC_LANES) square;                               \
        p = (r)->pixels - VEC_LANES;                                                               \
        if ((r)->pixels % VEC_LANES != 0) square;                                                  \
    } while (0)

static void block_run(const Run *r) {
    if (r->pixels < VEC_LANES)
        for (uint32_t p = 0; p < r->pixels; p++) block_one(r, p);
    else if (r->channels == VEC_LANES)
        SQUARES(r, p,
                block_square(r->from + p, r->stride, VEC_LANES, r->to + (size_t)p * VEC_LANES));
    else
        SQUARES(r, p,
                block_square(r->from + p, r->stride, r->channels, r->to + (size_t)p * VEC_LANES));
}

static void plain_run(const Run *r) {
    if (r->pixels < VEC_LANES)
        for (uint32_t p = 0; p < r->pixels; p++) plain_one(r, p);
    else if (r->channels == VEC_LANES)
        SQUARES(r, p,
                plain_square(r->from + (size_t)p * VEC_LANES, r->to + p, r->stride, VEC_LANES));
    else
        SQUARES(r, p,
                plain_square(r->from + (size_t)p * VEC_LANES, r->to + p, r->stride, r->channels));
}

// Where a task begins in the plain and in the blocked tensor.
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
        LayoutTask p = layout_task(r, task);
        Run        run = {r->from + p.plain, r->to + p.blocked, r->pixels, p.channels, p.pixels};
        block_run(&run);
    }
}

void VEC(layout_to_plain)(const LayoutConvert *r, Part part) {
    uint32_t task, end;
    part_range(part, layout_convert_tasks(r, VEC_LANES), &task, &end);
    for (; task < end; task++) {
        LayoutTask p = layout_task(r, task);
        Run        run = {r->from + p.blocked, r->to + p.plain, r->pixels, p.channels, p.pixels};
        plain_run(&run);
    }
}

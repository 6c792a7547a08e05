#include "kernel/shuffle.h"
#include "kernel/vec_transpose.h"

shuffle_run_fn VEC(shuffle_run);

// An index over the outer dimensions of a shuffle, with the place of each side.
typedef struct Place {
    size_t    index[TENSOR_MAX_RANK];
    ptrdiff_t to, from;
} Place;

static Place place_at(const Shuffle *s, uint32_t outer, size_t linear) {
    Place p = {.to = s->to_at, .from = s->from_at};
    for (uint32_t i = outer; i-- > 0; linear /= s->dims[i].n) {
        p.index[i] = linear % s->dims[i].n;
        p.to += (ptrdiff_t)p.index[i] * s->dims[i].to;
        p.from += (ptrdiff_t)p.index[i] * s->dims[i].from;
    }
    return p;
}

static void place_next(const Shuffle *s, uint32_t outer, Place *p) {
    for (uint32_t i = outer; i-- > 0;) {
        const ShuffleDim *d = &s->dims[i];
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

static void run_one(const Shuffle *s, const Place *p, size_t first, size_t n) {
    const ShuffleDim *d = &s->dims[s->rank - 1];
    const ptrdiff_t   size = (ptrdiff_t)s->size, i = (ptrdiff_t)first;
    char             *to = (char *)s->to + (p->to + i * d->to) * size;
    const char       *from = (const char *)s->from + (p->from + i * d->from) * size;
    if (s->way == SHUFFLE_ROWS)
        copy_run(to, from, n * s->size);
    else if (s->way == SHUFFLE_FILL)
        fill_run(s->size, to, from, n);
    else
        each_run(s->size, to, d->to, from, d->from, n);
}

// Runs along the last dimension: long ones cut, short ones grouped.
static void runs_run(const Shuffle *s, uint32_t task, uint32_t end) {
    const uint32_t outer = s->rank - 1;
    const size_t   n = s->dims[outer].n, most = SHUFFLE_BYTES / s->size;
    const size_t   cuts = n > most ? (n + most - 1) / most : 1, group = n > most ? 1 : most / n;
    size_t         rows = 1;
    for (uint32_t i = 0; i < outer; i++) rows *= s->dims[i].n;
    if (cuts > 1) {
        for (; task < end; task++) {
            const Place  p = place_at(s, outer, task / cuts);
            const size_t first = task % cuts * most;
            run_one(s, &p, first, n - first < most ? n - first : most);
        }
        return;
    }
    const size_t last = end * group < rows ? end * group : rows;
    Place        p = place_at(s, outer, task * group);
    for (size_t row = task * group; row < last; row++) {
        run_one(s, &p, 0, n);
        place_next(s, outer, &p);
    }
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

// Whole cache lines on both sides: up to SHUFFLE_COLUMNS columns while rows go by.
static void turn_run(const Turn *t) {
    size_t row = 0, columns = t->size == 4 ? t->columns / VEC_LANES * VEC_LANES : 0;
    for (; columns > 0 && row + VEC_LANES <= t->rows; row += VEC_LANES)
        for (size_t c = 0; c < columns; c += VEC_LANES)
            turn_square(t->from + (ptrdiff_t)row * t->from_row + (ptrdiff_t)c * 4, t->from_row,
                        t->to + (ptrdiff_t)c * t->to_row + (ptrdiff_t)row * 4, t->to_row);
    turn_each(t, row, t->rows - row, 0, columns);
    turn_each(t, 0, t->rows, columns, t->columns - columns);
}

static void turns_run(const Shuffle *s, uint32_t task, uint32_t end) {
    const ShuffleDim *c = &s->dims[s->rank - 2], *r = &s->dims[s->rank - 1];
    const size_t      across = (c->n + SHUFFLE_COLUMNS - 1) / SHUFFLE_COLUMNS;
    const size_t      down = (r->n + SHUFFLE_ROWS_TURNED - 1) / SHUFFLE_ROWS_TURNED;
    const ptrdiff_t   size = (ptrdiff_t)s->size;
    for (; task < end; task++) {
        const Place  p = place_at(s, s->rank - 2, task / (across * down));
        const size_t column = task / down % across * SHUFFLE_COLUMNS;
        const size_t row = task % down * SHUFFLE_ROWS_TURNED;
        const size_t columns = c->n - column, rows = r->n - row;
        const Turn   t = {
              .from = (const char *)s->from +
                      (p.from + (ptrdiff_t)row * r->from + (ptrdiff_t)column) * size,
              .to = (char *)s->to + (p.to + (ptrdiff_t)column * c->to + (ptrdiff_t)row) * size,
              .from_row = r->from * size,
              .to_row = c->to * size,
              .rows = rows < SHUFFLE_ROWS_TURNED ? rows : SHUFFLE_ROWS_TURNED,
              .columns = columns < SHUFFLE_COLUMNS ? columns : SHUFFLE_COLUMNS,
              .size = s->size,
        };
        turn_run(&t);
    }
}

void VEC(shuffle_run)(const Shuffle *s, Part part) {
    uint32_t task, end;
    part_range(part, shuffle_tasks(s), &task, &end);
    if (task == end) return;
    if (s->way == SHUFFLE_TURN)
        turns_run(s, task, end);
    else
        runs_run(s, task, end);
}

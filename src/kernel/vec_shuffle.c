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
static void piece_run(const Shuffle *s, const ShuffleCut *cut, const Place *p, size_t piece) {
    const ShuffleDim *r = &s->dims[s->rank - 1];
    const ptrdiff_t   size = (ptrdiff_t)s->size;
    if (s->way != SHUFFLE_TURN) {
        const size_t first = piece * cut->columns, rest = r->n - first;
        run_one(s, p, first, rest < cut->columns ? rest : cut->columns);
        return;
    }
    const ShuffleDim *c = r - 1;
    const size_t      down = (r->n + cut->rows - 1) / cut->rows;
    const size_t      column = piece / down * cut->columns, row = piece % down * cut->rows;
    const size_t      columns = c->n - column, rows = r->n - row;
    const Turn        t = {
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

void VEC(shuffle_run)(const Shuffle *s, Part part) {
    const uint32_t tasks = shuffle_tasks(s);
    uint32_t       task, end;
    part_range(part, tasks, &task, &end);
    if (task == end) return;
    const ShuffleCut cut = shuffle_cut(s);
    const uint32_t   outer = s->rank - (s->way == SHUFFLE_TURN ? 2 : 1);
    size_t           places = 1;
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

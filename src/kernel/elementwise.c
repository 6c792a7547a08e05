#include "kernel/elementwise.h"

#include <string.h>

#include "base/err.h"
#include "kernel/nd_iter.h"

static const char *const names[EWISE_OPS] = {
#define X(id, operands, name) [EWISE_##id] = name,
#include "kernel/ewise_op.def"
#undef X
};

static const uint8_t operands_of[EWISE_OPS] = {
#define X(id, operands, name) [EWISE_##id] = operands,
#include "kernel/ewise_op.def"
#undef X
};

const char *ewise_op_name(ElementwiseOp op) { return op < EWISE_OPS ? names[op] : "unknown"; }

uint32_t ewise_op_operands(ElementwiseOp op) { return op < EWISE_OPS ? operands_of[op] : 0; }

enum {
    STAGED = EWISE_PER_LANE + 1,  // an argument that is first copied to the layout of the result
    SHORT_SPAN = 32,              // below, a call costs more than copying arguments
    PIECE = 4096,
    STAGED_PIECE = 512,
};

// Drops dimensions of 1 and merges neighbours along which every argument is evenly strided.
static void merge_dims(ElementwisePlan *m, uint32_t rank, const int64_t *dims,
                       int64_t (*strides)[TENSOR_MAX_RANK]) {
    const uint32_t n_args = m->program->n_args;
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d] == 1) continue;
        bool even = m->rank > 0;
        for (uint32_t i = 0; i < n_args && even; i++)
            even = m->strides[i][m->rank - 1] == (size_t)(strides[i][d] * dims[d]);
        if (!even) m->dims[m->rank++] = 1;
        m->dims[m->rank - 1] *= (size_t)dims[d];
        for (uint32_t i = 0; i < n_args; i++) m->strides[i][m->rank - 1] = (size_t)strides[i][d];
    }
    if (m->rank == 0) m->dims[m->rank++] = 1;
}

static uint8_t mode_of(const ElementwisePlan *m, const size_t *strides, uint32_t lanes) {
    const uint32_t last = m->rank - 1;
    bool           contiguous = strides[last] == 1 || m->span == 1, constant = true;
    for (uint32_t d = m->outer; d < last; d++) {
        contiguous = contiguous && strides[d] == strides[d + 1] * m->dims[d + 1];
        constant = constant && strides[d] == 0;
    }
    if (contiguous) return EWISE_CONTIGUOUS;
    if (constant && strides[last] == 0) return EWISE_SCALAR;
    if (constant && strides[last] == 1 && m->dims[last] == lanes) return EWISE_PER_LANE;
    return STAGED;
}

// Cuts the result into spans, and spans into pieces of equal size.
static void cut_spans(ElementwisePlan *m, const Isa *isa) {
    m->outer = m->rank - 1;
    m->span = m->dims[m->outer];
    while (m->outer > 0 && m->span < SHORT_SPAN) m->span *= m->dims[--m->outer];
    m->rows = 1;
    for (uint32_t d = 0; d < m->outer; d++) m->rows *= m->dims[d];
    size_t most = PIECE, unit = 64;
    for (uint32_t i = 0; i < m->program->n_args; i++) {
        m->mode[i] = mode_of(m, m->strides[i], isa->lanes);
        if (m->mode[i] == STAGED) most = STAGED_PIECE;
    }
    // Pieces are whole rows, so that arguments repeating with every row are copied once.
    const size_t row = m->dims[m->rank - 1];
    if (most == STAGED_PIECE && row < SHORT_SPAN) unit = row, most -= most % row;
    if (m->span == 0) m->rows = 0;
    m->pieces = (uint32_t)((m->span + most - 1) / most);
    if (m->rows == 0) return;
    m->piece = (m->span + m->pieces - 1) / m->pieces;
    m->piece = (m->piece + unit - 1) / unit * unit;
    m->pieces = (uint32_t)((m->span + m->piece - 1) / m->piece);
    CHECK(m->rows <= UINT32_MAX / m->pieces);
}

void ewise_plan_strided(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa,
                        uint32_t rank, const int64_t *dims, int64_t (*strides)[TENSOR_MAX_RANK]) {
    CHECK(rank <= TENSOR_MAX_RANK && c->n_steps > 0);
    memset(m, 0, sizeof *m);
    m->program = c;
    merge_dims(m, rank, dims, strides);
    cut_spans(m, isa);
}

void ewise_plan_broadcast(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa,
                          const Tensor *y, const Tensor *const *args) {
    int64_t strides[EWISE_MAX_ARGS][TENSOR_MAX_RANK] = {0};
    for (uint32_t i = 0; i < c->n_args; i++) {
        NdIter w = nd_iter_begin(y->rank, y->dims);
        nd_iter_broadcast(&w, args[i]);
        memcpy(strides[i], w.stride[0], sizeof strides[i]);
    }
    ewise_plan_strided(m, c, isa, (uint32_t)y->rank, y->dims, strides);
}

void ewise_plan_blocked(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa, int64_t n,
                        int64_t channels, int64_t pixels, const ElementwiseExtent *args) {
    const int64_t lanes = isa->lanes, blocks = (channels + lanes - 1) / lanes;
    const int64_t dims[] = {n, blocks, pixels, lanes};
    const int64_t strides_of[][4] = {
        [EWISE_PER_ELEMENT] = {blocks * pixels * lanes, pixels * lanes, lanes, 1},
        [EWISE_PER_IMAGE_CHANNEL] = {blocks * lanes, lanes, 0, 1},
        [EWISE_PER_CHANNEL] = {0, lanes, 0, 1},
        [EWISE_PER_PIXEL] = {pixels, 0, 1, 0},
        [EWISE_SINGLE] = {0},
    };
    int64_t strides[EWISE_MAX_ARGS][TENSOR_MAX_RANK] = {0};
    for (uint32_t i = 0; i < c->n_args; i++)
        memcpy(strides[i], strides_of[args[i]], sizeof strides_of[0]);
    ewise_plan_strided(m, c, isa, 4, dims, strides);
}

uint32_t ewise_plan_tasks(const ElementwisePlan *m) { return (uint32_t)m->rows * m->pieces; }

// Offset in an argument of row-major index `at` over the dimensions [from, to).
static size_t offset(const ElementwisePlan *m, const size_t *strides, uint32_t from, uint32_t to,
                     size_t at) {
    size_t sum = 0;
    for (uint32_t d = to; d > from; d--) {
        const size_t rest = d - 1 == from ? 0 : at / m->dims[d - 1];
        sum += (at - rest * m->dims[d - 1]) * strides[d - 1];
        at = rest;
    }
    return sum;
}

static void stage(const ElementwisePlan *m, const size_t *strides, const float *from, size_t at,
                  size_t n, float *out) {
    const uint32_t last = m->rank - 1;
    const size_t   width = m->dims[last], step = strides[last];
    size_t         row = at / width, column = at % width;
    while (n > 0 && from != NULL) {  // never NULL; for static analysers
        const size_t some = width - column < n ? width - column : n;
        const float *x = from + offset(m, strides, m->outer, last, row) + column * step;
        for (size_t i = 0; i < some; i++) out[i] = x[i * step];
        out += some, n -= some;
        row++, column = 0;
    }
}

typedef float StagingBuffer[EWISE_MAX_ARGS][STAGED_PIECE] __attribute__((aligned(64)));

// Iteration over the rows of one part.
typedef struct RowIter {
    const ElementwisePlan *m;
    const Isa             *isa;
    size_t                 index[TENSOR_MAX_RANK];  // of the current row
    const float           *from[EWISE_MAX_ARGS];    // its start in each argument
    float                 *out;
    StagingBuffer         *staged;                // NULL: no argument is staged
    bool                   kept[EWISE_MAX_ARGS];  // the staged copy is valid for every piece
} RowIter;

static void row_iter_begin(RowIter *w, const float *const *in, float *out, size_t row) {
    const ElementwisePlan *m = w->m;
    w->out = out + row * m->span;
    for (uint32_t i = 0; i < m->program->n_args; i++)
        w->from[i] = in[i] + offset(m, m->strides[i], 0, m->outer, row);
    for (uint32_t d = m->outer; d > 0; d--) {
        w->index[d - 1] = row % m->dims[d - 1];
        row /= m->dims[d - 1];
    }
}

static void row_iter_next(RowIter *w) {
    const ElementwisePlan *m = w->m;
    const uint32_t         n_args = m->program->n_args;
    w->out += m->span;
    for (uint32_t d = m->outer; d-- > 0;) {
        for (uint32_t i = 0; i < n_args; i++) w->from[i] += m->strides[i][d];
        if (++w->index[d] < m->dims[d]) return;
        w->index[d] = 0;
        for (uint32_t i = 0; i < n_args; i++) w->from[i] -= m->strides[i][d] * m->dims[d];
    }
}

static bool repeats(const ElementwisePlan *m, const size_t *strides) {
    for (uint32_t d = 0; d + 1 < m->rank; d++)
        if (strides[d] != 0) return false;
    return m->piece % m->dims[m->rank - 1] == 0;
}

static const float *staged(RowIter *w, uint32_t i, size_t at, size_t n) {
    float *to = (*w->staged)[i];
    if (w->kept[i]) return to;
    w->kept[i] = repeats(w->m, w->m->strides[i]);
    stage(w->m, w->m->strides[i], w->from[i], w->kept[i] ? 0 : at, w->kept[i] ? w->m->piece : n,
          to);
    return to;
}

// Elements [at, at + n) of the row; n is at most one piece if arguments are staged.
static void run_span(RowIter *w, size_t at, size_t n) {
    const ElementwisePlan *m = w->m;
    ElementwiseInput       in[EWISE_MAX_ARGS];
    for (uint32_t i = 0; i < m->program->n_args; i++) {
        const uint8_t mode = m->mode[i];
        if (mode == STAGED)
            in[i] = (ElementwiseInput){staged(w, i, at, n), EWISE_CONTIGUOUS};
        else
            in[i] = (ElementwiseInput){w->from[i] + (mode == EWISE_CONTIGUOUS ? at : 0),
                                       (ElementwiseMode)mode};
    }
    w->isa->ewise_span(m->program, in, w->out + at, n);
}

// Runs adjacent pieces in one call if nothing is staged.
static void run_tasks(RowIter *w, uint32_t begin, uint32_t end) {
    const ElementwisePlan *m = w->m;
    uint32_t               piece = begin % m->pieces;
    for (uint32_t task = begin, some; task < end; task += some) {
        const uint32_t left = m->pieces - piece < end - task ? m->pieces - piece : end - task;
        some = w->staged == NULL ? left : 1;
        const size_t at = piece * m->piece, stop = (piece + some) * m->piece;
        run_span(w, at, (stop < m->span ? stop : m->span) - at);
        piece += some;
        if (piece < m->pieces) continue;
        piece = 0;
        row_iter_next(w);
    }
}

static void __attribute__((noinline)) run_staged(RowIter w, uint32_t begin, uint32_t end) {
    StagingBuffer buffer;
    w.staged = &buffer;
    run_tasks(&w, begin, end);
}

void ewise_plan_run(const ElementwisePlan *m, const Isa *isa, const float *const *in, float *out,
                    Part part) {
    uint32_t begin, end;
    RowIter  w = {.m = m, .isa = isa};
    bool     stages = false;
    part_range(part, ewise_plan_tasks(m), &begin, &end);
    if (begin == end) return;
    row_iter_begin(&w, in, out, begin / m->pieces);
    for (uint32_t i = 0; i < m->program->n_args; i++) stages = stages || m->mode[i] == STAGED;
    if (stages)
        run_staged(w, begin, end);
    else
        run_tasks(&w, begin, end);
}

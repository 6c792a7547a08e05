#include "kernel/ref/ref_rnn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/work_stop.h"
#include "kernel/ref/ref_int.h"
#include "kernel/ref/ref_cast.h"
#include "kernel/wide_type.h"

// Weights of one direction, transposed to [input][gates], and the vectors of one sequence.
typedef struct Cell {
    const RefRnn  *p;
    const RefGate *gate;
    int64_t        columns;           // gates * hidden
    double        *wt, *rt;           // [input][columns], [hidden][columns]
    double        *wb, *rb, *peep;    // [columns], [columns], [3][hidden]
    double        *x, *h, *c;         // [input], [hidden], [hidden]
    double        *in, *rec, *reset;  // [columns], [columns], [hidden]
    Tensor         fine, bytes;       // [hidden] float32 and uint8, if quantize_state
} Cell;

double ref_gate(const RefGate *g, double x) {
    switch (g->fn) {
    case REF_GATE_RELU: return x > 0 ? x : 0;
    case REF_GATE_TANH: return tanh(x);
    case REF_GATE_SIGMOID: return 1 / (1 + exp(-x));
    case REF_GATE_AFFINE: return g->alpha * x + g->beta;
    case REF_GATE_LEAKY_RELU: return x >= 0 ? x : g->alpha * x;
    case REF_GATE_THRESHOLDED_RELU: return x >= g->alpha ? x : 0;
    case REF_GATE_SCALED_TANH: return g->alpha * tanh(g->beta * x);
    case REF_GATE_HARD_SIGMOID: return fmin(fmax(g->alpha * x + g->beta, 0), 1);
    case REF_GATE_ELU: return x >= 0 ? x : g->alpha * expm1(x);
    case REF_GATE_SOFTSIGN: return x / (1 + fabs(x));
    case REF_GATE_SOFTPLUS: return x > 30 ? x : log1p(exp(x));
    }
    return x;
}

static double activate(const Cell *c, int f, double x) {
    double clip = c->p->clip;
    if (clip > 0) x = x > clip ? clip : x < -clip ? -clip : x;
    return ref_gate(&c->gate[f], x);
}

// out[j] += sum of v[i] * m[i][from + j] for j in [0, n).
static void add_product(const double *m, int64_t columns, int64_t from, int64_t n, const double *v,
                        int64_t rows, double *restrict out) {
    for (int64_t i = 0; i < rows && !work_stopped(); i++) {
        const double *row = m + i * columns + from;
        for (int64_t j = 0; j < n; j++) out[j] += v[i] * row[j];
    }
}

static void step_rnn(Cell *c) {
    WORK_EACH (j, c->p->hidden) c->h[j] = activate(c, 0, c->in[j] + c->rec[j]);
}

static void step_gru(Cell *c) {
    int64_t n = c->p->hidden;
    double *z = c->in, *r = c->in + n, *g = c->in + 2 * n, *rec_g = c->rec + 2 * n;
    WORK_EACH (j, 2 * n) c->in[j] = activate(c, 0, c->in[j] + c->rec[j]);
    if (c->p->linear_before_reset) {
        WORK_EACH (j, n) g[j] += r[j] * rec_g[j];
    } else {
        WORK_EACH (j, n) c->reset[j] = r[j] * c->h[j];
        WORK_EACH (j, n) g[j] += c->rb[2 * n + j];
        add_product(c->rt, c->columns, 2 * n, n, c->reset, n, g);
    }
    WORK_EACH (j, n) c->h[j] = (1 - z[j]) * activate(c, 1, g[j]) + z[j] * c->h[j];
}

static void step_lstm(Cell *c) {
    int64_t       n = c->p->hidden;
    const double *pi = c->peep, *po = c->peep + n, *pf = c->peep + 2 * n;
    WORK_EACH (j, c->columns) c->in[j] += c->rec[j];
    WORK_EACH (j, n) {
        double i = activate(c, 0, c->in[j] + pi[j] * c->c[j]);
        double f = c->p->input_forget ? 1 - i : activate(c, 0, c->in[2 * n + j] + pf[j] * c->c[j]);
        double g = activate(c, 1, c->in[3 * n + j]);
        c->c[j] = f * c->c[j] + i * g;
        double o = activate(c, 0, c->in[n + j] + po[j] * c->c[j]);
        c->h[j] = o * activate(c, 2, c->c[j]);
    }
}

static void fake_quantize(Tensor *fine, Tensor *bytes) {
    float   scale = 1, *x = fine->data;
    uint8_t zero = 0, *q = bytes->data;
    ref_quantize_dynamic(fine, bytes, &scale, &zero);
    WORK_EACH (i, tensor_count(fine)) x[i] = (float)(q[i] - zero) * scale;
}

static const double *recurrent(Cell *c) {
    if (!c->p->quantize_state) return c->h;
    wide_write(&c->fine, 0, 1, c->p->hidden, c->h);
    fake_quantize(&c->fine, &c->bytes);
    wide_read(&c->fine, 0, 1, c->p->hidden, c->reset);
    return c->reset;
}

static void step(Cell *c) {
    memcpy(c->in, c->wb, (size_t)c->columns * sizeof(double));
    memcpy(c->rec, c->rb, (size_t)c->columns * sizeof(double));
    add_product(c->wt, c->columns, 0, c->columns, c->x, c->p->input, c->in);
    add_product(c->rt, c->columns, 0, c->columns, recurrent(c), c->p->hidden, c->rec);
    switch (c->p->kind) {
    case REF_RNN: step_rnn(c); return;
    case REF_GRU: step_gru(c); return;
    case REF_LSTM: step_lstm(c); return;
    }
}

// Element where the state, and the output of step t, of direction d of sequence n start.
static int64_t state_at(const RefRnn *p, int64_t d, int64_t n) {
    return (p->batch_first ? n * p->directions + d : d * p->batch + n) * p->hidden;
}

static int64_t output_at(const RefRnn *p, int64_t d, int64_t n, int64_t t) {
    if (p->batch_first) return ((n * p->steps + t) * p->directions + d) * p->hidden;
    return ((t * p->directions + d) * p->batch + n) * p->hidden;
}

static void start_state(const RefRnn *p, const Tensor *from, int64_t at, double *to) {
    memset(to, 0, (size_t)p->hidden * sizeof(double));
    if (from != NULL) wide_read(from, at, 1, p->hidden, to);
}

static void sequence(Cell *c, int64_t d, int64_t n, int64_t length) {
    const RefRnn *p = c->p;
    bool          back = d == 1 || p->reversed;
    start_state(p, p->h0, state_at(p, d, n), c->h);
    start_state(p, p->c0, state_at(p, d, n), c->c);
    for (int64_t k = 0; k < length && !work_stopped(); k++) {
        int64_t t = back ? length - 1 - k : k;
        int64_t at = p->batch_first ? n * p->steps + t : t * p->batch + n;
        wide_read(p->x, at * p->input, 1, p->input, c->x);
        step(c);
        if (p->y != NULL) wide_write(p->y, output_at(p, d, n, t), 1, p->hidden, c->h);
    }
    if (p->yh != NULL) wide_write(p->yh, state_at(p, d, n), 1, p->hidden, c->h);
    if (p->yc != NULL) wide_write(p->yc, state_at(p, d, n), 1, p->hidden, c->c);
}

static Err alloc_bytes(Arena *a, const Tensor *like, Tensor *bytes) {
    *bytes = *like;
    bytes->dtype = DT_U8;
    bytes->data = arena_try(a, (size_t)tensor_count(like), 1, 1);
    return bytes->data != NULL ? ERR_OK
                               : err_set(ERR_LIMIT, "rnn: no memory to quantise the state");
}

Err ref_fake_quantize(const Tensor *x, Tensor *y, Arena *scratch) {
    Tensor bytes;
    TRY(alloc_bytes(scratch, x, &bytes));
    if (tensor_count(x) > 0) memcpy(y->data, x->data, (size_t)tensor_count(x) * sizeof(float));
    fake_quantize(y, &bytes);
    return ERR_OK;
}

static Err cell_alloc(Cell *c, Arena *a) {
    const RefRnn *p = c->p;
    c->columns = p->gates * p->hidden;
    TRY(ref_alloc_doubles(a, p->input, c->columns, &c->wt));
    TRY(ref_alloc_doubles(a, p->hidden, c->columns, &c->rt));
    TRY(ref_alloc_doubles(a, 1, c->columns, &c->wb));
    TRY(ref_alloc_doubles(a, 1, c->columns, &c->rb));
    TRY(ref_alloc_doubles(a, 3, p->hidden, &c->peep));
    TRY(ref_alloc_doubles(a, 1, p->input, &c->x));
    TRY(ref_alloc_doubles(a, 1, p->hidden, &c->h));
    TRY(ref_alloc_doubles(a, 1, p->hidden, &c->c));
    TRY(ref_alloc_doubles(a, 1, c->columns, &c->in));
    TRY(ref_alloc_doubles(a, 1, c->columns, &c->rec));
    TRY(ref_alloc_doubles(a, 1, p->hidden, &c->reset));
    if (!p->quantize_state) return ERR_OK;
    c->fine = (Tensor){.dtype = DT_F32, .rank = 1, .dims = {p->hidden}};
    c->fine.data = arena_try_new(a, float, (size_t)p->hidden);
    if (c->fine.data == NULL) return err_set(ERR_LIMIT, "rnn: no memory to quantise the state");
    return alloc_bytes(a, &c->fine, &c->bytes);
}

static void cell_load(Cell *c, int64_t d) {
    const RefRnn *p = c->p;
    c->gate = p->gate[d];
    for (int64_t i = 0; i < p->input && !work_stopped(); i++)
        wide_read(p->w, d * c->columns * p->input + i, p->input, c->columns,
                  c->wt + i * c->columns);
    for (int64_t i = 0; i < p->hidden && !work_stopped(); i++)
        wide_read(p->r, d * c->columns * p->hidden + i, p->hidden, c->columns,
                  c->rt + i * c->columns);
    if (p->b != NULL) wide_read(p->b, 2 * d * c->columns, 1, c->columns, c->wb);
    if (p->b != NULL) wide_read(p->b, (2 * d + 1) * c->columns, 1, c->columns, c->rb);
    if (p->p != NULL) wide_read(p->p, 3 * d * p->hidden, 1, 3 * p->hidden, c->peep);
}

Err ref_rnn(const RefRnn *p, Arena *scratch) {
    Cell           c = {.p = p};
    const int32_t *lens = p->lens != NULL ? p->lens->data : NULL;
    for (int64_t n = 0; lens != NULL && n < p->batch; n++)
        if (lens[n] < 0 || lens[n] > p->steps)
            return err_set(ERR_INVALID, "sequence length %d is outside 0..%" PRId64, lens[n],
                           p->steps);
    TRY(cell_alloc(&c, scratch));
    for (int64_t d = 0; d < p->directions && !work_stopped(); d++) {
        cell_load(&c, d);
        for (int64_t n = 0; n < p->batch && !work_stopped(); n++)
            sequence(&c, d, n, lens != NULL ? lens[n] : p->steps);
    }
    return ERR_OK;
}

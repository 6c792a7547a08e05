// Every operator on random inputs and attributes: it rejects or computes, with the inferred shapes.
// Memory errors show under the sanitizers (make asan).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"
#include "base/rng.h"
#include "compile/interp/run_ops.h"
#include "model/infer/infer.h"
#include "tests/runner.h"

enum { MAX_IN = 8, MAX_OUT = 4, CALLS = 2000, MAX_BYTES = 1 << 16, MAX_GIVEN = 1 << 10 };

static const struct {
    const char *name;
    AttrKind    kind;
} attr_rows[] = {
#define A(name, kind) {#name, ATTR_##kind},
#include "model/attr.def"
#undef A
};
enum { N_ATTRS = sizeof attr_rows / sizeof *attr_rows };

static const char *const words[] = {
    "",        "constant", "edge",     "reflect",   "wrap",       "add",   "mul",
    "max",     "none",     "DCR",      "CRD",       "LOWER",      "UPPER", "TF",
    "IDF",     "linear",   "bilinear", "nearest",   "cubic",      "floor", "forward",
    "reverse", "mean",     "sum",      "LEFT",      "SAME_UPPER", "VALID", "NOTSET",
    "Tanh",    "Sigmoid",  "zeros",    "ij,jk->ik", "ii->i",      "avg",   "bidirectional",
};
enum { N_WORDS = sizeof words / sizeof *words };

typedef struct World {
    Rng    rng;
    Arena  arena, scratch, keep;
    Attr   attrs[N_ATTRS];
    Tensor in[MAX_IN];
    void  *given[MAX_GIVEN];  // data of tensors, allocated separately
    size_t n_given;
} World;

static uint64_t roll(World *w, uint64_t n) { return rng_below(&w->rng, n); }

static int64_t some_int(World *w) {
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT32_MAX, -(INT64_C(1) << 40), 1000, -7};
    if (roll(w, 12) == 0) return odd[roll(w, sizeof odd / sizeof *odd)];
    return (int64_t)roll(w, 6) - 2;
}

static double some_real(World *w) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e30, -1e300, -0.0};
    if (roll(w, 12) == 0) return odd[roll(w, sizeof odd / sizeof *odd)];
    return (double)roll(w, 9) / 2 - 2;
}

static Str some_text(World *w) {
    const char *s = words[roll(w, N_WORDS)];
    return (Str){s, strlen(s)};
}

static DType some_type(World *w) {
    static const DType all[] = {DT_F32,  DT_F32, DT_F32, DT_I64, DT_I64, DT_I32,
                                DT_BOOL, DT_F64, DT_F16, DT_U8,  DT_I8,  DT_STR,
                                DT_BF16, DT_U64, DT_C64, DT_I16, DT_SEQ, DT_OPT};
    return all[roll(w, sizeof all / sizeof *all)];
}

// Memory of exactly this size, so that a sanitizer detects overruns.
static void *room_for(size_t bytes) {
    void *p = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(p);
    return memset(p, 0, bytes);
}

static void fill(World *w, Tensor *t);

static Tensor some_tensor(World *w, bool nested) {
    Tensor t = {.dtype = some_type(w), .rank = (int32_t)roll(w, 5)};
    bool   list = t.dtype == DT_SEQ || t.dtype == DT_OPT;
    if (list && nested) t.dtype = DT_F32;
    if (list && !nested) t.rank = 1;
    for (int32_t i = 0; i < t.rank; i++) t.dims[i] = (int64_t)roll(w, 4) + (roll(w, 8) != 0);
    if (t.dtype == DT_OPT) t.dims[0] = (int64_t)roll(w, 2);
    fill(w, &t);
    return t;
}

static void fill(World *w, Tensor *t) {
    int64_t n = tensor_count(t);
    t->data = room_for((size_t)n * dtype_size(t->dtype));
    assert_true(w->n_given < MAX_GIVEN);
    w->given[w->n_given++] = t->data;
    for (int64_t i = 0; i < n; i++) {
        switch (t->dtype) {
        case DT_STR: ((Str *)t->data)[i] = some_text(w); break;
        case DT_SEQ:
        case DT_OPT: ((Tensor *)t->data)[i] = some_tensor(w, true); break;
        case DT_BOOL:
            ((uint8_t *)t->data)[i] = (uint8_t)(roll(w, 9) == 0 ? 255 : roll(w, 2));
            break;
        case DT_I64: ((int64_t *)t->data)[i] = some_int(w); break;
        case DT_C64: break;
        default: tensor_set(t, i, dtype_is_float(t->dtype) ? some_real(w) : (double)some_int(w));
        }
    }
}

static void some_attr(World *w, Attr *a) {
    a->n = (uint32_t)roll(w, 5);
    int64_t *ints = arena_new(&w->arena, int64_t, a->n);
    float   *floats = arena_new(&w->arena, float, a->n);
    Str     *texts = arena_new(&w->arena, Str, a->n);
    Tensor  *t = arena_new(&w->arena, Tensor, 1);
    for (uint32_t i = 0; i < a->n; i++) {
        ints[i] = some_int(w);
        floats[i] = (float)some_real(w);
        texts[i] = some_text(w);
    }
    switch (a->kind) {
    case ATTR_INT: a->v.i = roll(w, 3) == 0 ? (int64_t)roll(w, 17) : some_int(w); break;
    case ATTR_FLOAT: a->v.f = (float)some_real(w); break;
    case ATTR_STRING: a->v.s = some_text(w); break;
    case ATTR_INTS: a->v.ints = ints; break;
    case ATTR_FLOATS: a->v.floats = floats; break;
    case ATTR_STRINGS: a->v.strings = texts; break;
    default: *t = some_tensor(w, true); a->v.t = t;
    }
}

static uint32_t some_attrs(World *w) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_ATTRS; i++) {
        if (attr_rows[i].kind == ATTR_GRAPH || roll(w, 3) != 0) continue;
        w->attrs[n] = (Attr){.name = attr_rows[i].name, .kind = attr_rows[i].kind};
        some_attr(w, &w->attrs[n++]);
    }
    return n;
}

// Inputs often resemble the first one, else most calls would be rejected at once.
static Tensor next_input(World *w, uint32_t i) {
    if (i == 0 || roll(w, 2) == 0) return some_tensor(w, false);
    Tensor t = w->in[0];
    if (t.dtype == DT_SEQ || t.dtype == DT_OPT) return t;
    if (roll(w, 4) == 0) t.rank = (int32_t)roll(w, (uint64_t)t.rank + 1);
    if (roll(w, 4) == 0) t.dtype = DT_I64;
    fill(w, &t);
    return t;
}

// What inference accepts without data fails because of data: the fault of its sender, not of the
// model.
static void blames_the_data(OpId op, Err e) {
    if (e != ERR_OK && e != ERR_INVALID && e != ERR_LIMIT)
        fail_msg("%s: %s for bad data: %s", op_info(op)->name, err_text(e), err_why());
}

static bool run_once(World *w, const Node *n, const OpCall *c, Tensor *out) {
    bool   fits = true;
    size_t bytes[MAX_OUT] = {0};
    for (uint32_t i = 0; i < n->n_out; i++)
        fits = fits && tensor_measure(&out[i], &bytes[i]) == ERR_OK && bytes[i] <= MAX_BYTES;
    if (!fits) return false;
    for (uint32_t i = 0; i < n->n_out; i++) out[i].data = room_for(bytes[i]);
    w->scratch.used = 0;
    Err e = run_op(n->op)(c, out);
    for (uint32_t i = 0; i < n->n_out; i++) free(out[i].data);
    blames_the_data(n->op, e);
    return e == ERR_OK;
}

static bool call(World *w, OpId op) {
    const OpInfo *info = op_info(op);
    uint32_t      most = info->in_max < MAX_IN ? info->in_max : MAX_IN;
    uint32_t      least_out = info->out_min,
             most_out = info->out_max < MAX_OUT ? info->out_max : MAX_OUT;
    Node   n = {.name = "n", .op = op, .version = 1 + (int32_t)roll(w, 21), .attrs = w->attrs};
    Tensor out[MAX_OUT] = {{0}}, early[MAX_OUT] = {{0}}, bare[MAX_IN];
    const Tensor *in[MAX_IN] = {NULL}, *types[MAX_IN] = {NULL};
    n.n_in = info->in_min + (uint32_t)roll(w, most - info->in_min + 1u);
    n.n_out = least_out + (uint32_t)roll(w, most_out - least_out + 1u);
    n.n_attr = some_attrs(w);
    for (uint32_t i = 0; i < n.n_in; i++) {
        w->in[i] = next_input(w, i);
        bare[i] = w->in[i];
        bare[i].data = NULL;
        if (i >= info->in_min && roll(w, 4) == 0) continue;
        in[i] = &w->in[i];
        types[i] = &bare[i];
    }
    OpCall ahead = {.node = &n, .in = types, .scratch = &w->scratch};
    OpCall now = {.node = &n, .in = in, .scratch = &w->scratch, .keep = &w->keep};
    Err    first = info->infer(&ahead, early);
    w->scratch.used = 0;
    Err second = info->infer(&now, out);
    if (first == ERR_OK) blames_the_data(op, second);
    if (second != ERR_OK) return false;
    if (first != ERR_OK)
        fail_msg("%s: rejected by inference before but not now: %s", info->name, err_why());
    for (uint32_t i = 0; i < n.n_out; i++) {
        assert_true(tensor_known(&out[i]));
        assert_true(early[i].dtype == DT_NONE || early[i].dtype == out[i].dtype);
        if (early[i].rank == RANK_UNKNOWN) continue;
        if (!tensor_same_shape(&early[i], &out[i])) fail_msg("%s: another shape", info->name);
    }
    return run_once(w, &n, &now, out);
}

static void every_operator_refuses_or_computes(void **state) {
    (void)state;
    const char *seed = getenv("RUN_ANY_SEED");  // for longer manual runs
    World       w = {.rng = {seed != NULL ? strtoull(seed, NULL, 10) : 7}};
    uint32_t    ran = 0, known = 0;
    assert_int_equal(arena_init(&w.arena, (size_t)1 << 28), ERR_OK);
    assert_int_equal(arena_init(&w.scratch, (size_t)1 << 28), ERR_OK);
    assert_int_equal(arena_init(&w.keep, (size_t)1 << 28), ERR_OK);
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_info((OpId)op)->infer == infer_control_flow) continue;
        uint32_t done = 0;
        for (int i = 0; i < CALLS; i++) {
            done += call(&w, (OpId)op);
            while (w.n_given > 0) free(w.given[--w.n_given]);
            w.arena.used = w.scratch.used = w.keep.used = 0;
        }
        ran += done > 0;
        known++;
        if (done == 0) print_message("%s was always rejected\n", op_info((OpId)op)->name);
    }
    print_message("%u of %u operators computed something\n", ran, known);
    arena_finish(&w.arena);
    arena_finish(&w.scratch);
    arena_finish(&w.keep);
    assert_true(2 * ran > known);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_refuses_or_computes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

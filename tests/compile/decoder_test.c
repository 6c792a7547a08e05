// The zoo's decoders generate 128 tokens, each the one with the highest logit, step by step:
// compiled programs choose the tokens that the interpreter chooses, with caches of fixed capacity
// and with caches that grow.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

enum { CAPACITY = 160, TOKENS = 128, PROMPT = 5, MAX_IN = 16, CACHES = 8, HEADS = 2, SIZE = 32 };
enum { WORDS = 4096 };

static const int64_t prompt[PROMPT] = {17, 4000, 3, 256, 99};

static void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

typedef struct Decoder {
    Model  m;
    Arena  values, results;
    Tensor in[MAX_IN], out[MAX_IN];
} Decoder;

static void decoder_init(Decoder *d, const char *name, bool open) {
    *d = (Decoder){0};
    check(zoo_build(name, &(ZooOptions){.sequence = CAPACITY, .open = open}, &d->m));
    check(model_materialise(&d->m));
    check(arena_init_growing(&d->values, 1 << 20, (size_t)1 << 30));
    check(arena_init_growing(&d->results, 1 << 20, (size_t)1 << 30));
    assert_int_equal(d->m.graph->n_inputs, 2 + CACHES);
    assert_int_equal(d->m.graph->n_outputs, 1 + CACHES);
}

static void decoder_finish(Decoder *d) {
    arena_finish(&d->values);
    arena_finish(&d->results);
    model_finish(&d->m);
}

static Tensor zeros(Arena *a, DType t, int32_t rank, const int64_t *dims) {
    Tensor x = tensor_of(t, rank, dims, NULL);
    check(tensor_alloc(&x, a));
    return x;
}

// Inputs of a call: new ids, `total` positions of which count, caches of `rows` rows.
static void set_inputs(Decoder *d, const int64_t *ids, int64_t n, int64_t mask, int64_t total,
                       int64_t rows) {
    d->in[0] = zeros(&d->values, DT_I64, 2, (int64_t[]){1, n});
    memcpy(d->in[0].data, ids, (size_t)n * sizeof *ids);
    d->in[1] = zeros(&d->values, DT_I64, 2, (int64_t[]){1, mask});
    for (int64_t i = 0; i < total; i++) ((int64_t *)d->in[1].data)[i] = 1;
    for (uint32_t i = 0; i < CACHES; i++)
        if (d->in[2 + i].dtype == DT_NONE)
            d->in[2 + i] = zeros(&d->values, DT_F32, 4, (int64_t[]){1, HEADS, rows, SIZE});
}

// The outputs are in the graph's order: caches before the logits.
static const float *logits_of(const Decoder *d, int64_t row) {
    for (uint32_t i = 0; i < 1 + CACHES; i++)
        if (d->out[i].rank == 3) return (const float *)d->out[i].data + row * WORDS;
    fail_msg("no logits");
    return NULL;
}

static void keep_caches(Decoder *d) {
    uint32_t next = 2;
    for (uint32_t i = 0; i < 1 + CACHES; i++) {
        if (d->out[i].rank != 4) continue;
        Tensor t = zeros(&d->values, DT_F32, 4, d->out[i].dims);
        memcpy(t.data, d->out[i].data, (size_t)tensor_count(&t) * sizeof(float));
        d->in[next++] = t;
    }
    assert_int_equal(next, 2 + CACHES);
}

static int64_t highest(const float *x) {
    int64_t best = 0;
    for (int64_t i = 1; i < WORDS; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void same_logits(const float *got, const float *want, int step) {
    for (int i = 0; i < WORDS; i++)
        if (!(fabsf(got[i] - want[i]) < 5e-5F))
            fail_msg("step %d: logit %d is %g, not %g", step, i, (double)got[i], (double)want[i]);
}

// The reference: the interpreter, on caches of fixed capacity. Tokens and logits by step.
typedef struct Reference {
    int64_t token[TOKENS];
    float  *logits[TOKENS];
    int     distinct;
} Reference;

// Step 0 is the last position of the prompt, read one by one.
static void generate(Decoder *d, const ShapedGraph *s, Program *p, RunMemory *mem, Reference *r,
                     Arena *keep) {
    int64_t next = prompt[0];
    for (int64_t at = 0; at < PROMPT - 1 + TOKENS; at++) {
        int64_t step = at - (PROMPT - 1);
        set_inputs(d, &next, 1, CAPACITY, at + 1, CAPACITY);
        if (p != NULL)
            check(program_run(p, mem, NULL, d->in, &d->results, d->out));
        else
            check(interp_run(s, d->in, &(InterpLimits){0}, &d->results, d->out));
        const float *x = logits_of(d, 0);
        next = at + 1 < PROMPT ? prompt[at + 1] : highest(x);
        if (step >= 0 && p == NULL) {
            r->token[step] = next;
            r->logits[step] = arena_new(keep, float, WORDS);
            memcpy(r->logits[step], x, WORDS * sizeof *x);
        } else if (step >= 0) {
            same_logits(x, r->logits[step], (int)step);
            assert_int_equal(next, r->token[step]);
        }
        keep_caches(d);
        arena_rewind(&d->results, 0);
    }
}

static void run_fixed(const char *name, Reference *r, Arena *keep) {
    Decoder      d;
    ShapedGraph *s = NULL;
    Program      p = {0};
    RunMemory    mem = {0};
    decoder_init(&d, name, false);
    Tensor types[MAX_IN];
    for (uint32_t i = 0; i < 2 + CACHES; i++)
        types[i] = d.m.graph->values[d.m.graph->inputs[i]].type;
    check(shaped_graph_make(d.m.graph, types, interp_eval, &d.m.arena, &s));
    generate(&d, s, NULL, NULL, r, keep);
    memset(d.in, 0, sizeof d.in);
    check(program_make(&p, s, &(ProgramOptions){0}));
    check(run_memory_init(&mem, &p, 1));
    generate(&d, s, &p, &mem, r, keep);
    run_memory_finish(&mem);
    program_finish(&p);
    decoder_finish(&d);
}

// A call with its own shapes: prompt and cache of any length.
static void run_open(Decoder *d, const int64_t *ids, int64_t n, int64_t past) {
    ShapedGraph *s = NULL;
    Tensor       types[MAX_IN];
    set_inputs(d, ids, n, past + n, past + n, past);
    memcpy(types, d->in, sizeof types);
    for (uint32_t i = 0; i < 2 + CACHES; i++) types[i].data = NULL;
    check(shaped_graph_make(d->m.graph, types, interp_eval, &d->m.arena, &s));
    check(program_run_once(s, d->in, &(ProgramOptions){0}, &d->results, d->out));
}

// The prompt in one call, a token, several tokens at once, a token: the logits of the last position
// are those of the reference.
static void grow(const char *name, const Reference *r) {
    static const int64_t calls[] = {PROMPT, 1, 1, 70, 3, 1};
    Decoder              d;
    int64_t              all[PROMPT + TOKENS], past = 0;
    memcpy(all, prompt, sizeof prompt);
    memcpy(all + PROMPT, r->token, sizeof r->token);
    decoder_init(&d, name, true);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        run_open(&d, all + past, calls[i], past);
        past += calls[i];
        same_logits(logits_of(&d, calls[i] - 1), r->logits[past - PROMPT], (int)past);
        keep_caches(&d);
        assert_int_equal(d.in[2].dims[2], past);
    }
    decoder_finish(&d);
}

static void both(const char *name) {
    Arena     keep;
    Reference r = {0};
    check(arena_init_growing(&keep, 1 << 20, (size_t)1 << 30));
    run_fixed(name, &r, &keep);
    for (int i = 0; i < TOKENS; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen = seen || r.token[k] == r.token[i];
        r.distinct += !seen;
    }
    print_message("%s: %d tokens, %d distinct\n", name, TOKENS, r.distinct);
    assert_true(r.distinct > 8);
    grow(name, &r);
    arena_finish(&keep);
}

static void floats(void **state) {
    (void)state;
    both("decoder");
}

static void four_bits(void **state) {
    (void)state;
    both("decoder_int4");
}

// A mask that says more positions than the cache has fails the run by name.
static void mask_is_checked(void **state) {
    (void)state;
    Decoder      d;
    ShapedGraph *s = NULL;
    int64_t      id = 1;
    decoder_init(&d, "decoder", false);
    set_inputs(&d, &id, 1, CAPACITY, CAPACITY, CAPACITY);
    ((int64_t *)d.in[1].data)[0] = 2;
    Tensor types[MAX_IN];
    memcpy(types, d.in, sizeof types);
    for (uint32_t i = 0; i < 2 + CACHES; i++) types[i].data = NULL;
    check(shaped_graph_make(d.m.graph, types, interp_eval, &d.m.arena, &s));
    assert_int_equal(program_run_once(s, d.in, &(ProgramOptions){0}, &d.results, d.out),
                     ERR_INVALID);
    assert_non_null(strstr(err_why(), "seqlens_k"));
    assert_non_null(strstr(err_why(), "attention"));
    decoder_finish(&d);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats), cmocka_unit_test(four_bits),
                                       cmocka_unit_test(mask_is_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

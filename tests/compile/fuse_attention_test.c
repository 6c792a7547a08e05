// Attention as models write it out becomes one step with unchanged results.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/net_builder.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

enum { PARTS = 3, MAX_IN = 5, MAX_OUT = 2 };

typedef enum Scale { SCALE_NONE, SCALE_SCORES, SCALE_Q, SCALE_BOTH, SCALES } Scale;
typedef enum Form { FORM_BERT, FORM_TWICE, FORM_PLAIN, FORM_FLAT, FORMS } Form;
typedef enum Mask { MASK_NONE, MASK_KEYS, MASK_PLACES, MASK_PAIRS, MASK_ALL, MASKS } Mask;

typedef struct Case {
    int64_t batch, heads, queries, keys, size, v_size;
    Scale   scale;
    Form    form;
    Mask    mask;
    bool    swapped;  // mask + scores
    bool    peek;     // the softmax is an output as well
    bool    v_scaled, k_shared;
} Case;

static const int64_t to_heads[] = {0, 2, 1, 3}, to_keys[] = {0, 2, 3, 1}, turn[] = {0, 1, 3, 2},
                     turn_flat[] = {0, 2, 1};

static uint32_t input(NetBuilder *n, const Case *c, const char *name, int64_t batch, int64_t plan,
                      int64_t size) {
    int64_t by_place[4] = {batch, plan, c->heads, size};
    int64_t by_head[4] = {batch, c->heads, plan, size};
    int64_t flat[3] = {batch * c->heads, plan, size};
    if (c->form == FORM_FLAT) return net_input(n, name, DT_F32, 3, flat);
    uint32_t x = net_input(n, name, DT_F32, 4, c->form == FORM_PLAIN ? by_head : by_place);
    return c->form == FORM_PLAIN ? x : net_transpose(n, x, to_heads);
}

static uint32_t keys(NetBuilder *n, const Case *c) {
    int64_t batch = c->k_shared ? 1 : c->batch, by_place[4] = {batch, c->keys, c->heads, c->size};
    if (c->form == FORM_BERT)
        return net_transpose(n, net_input(n, "k", DT_F32, 4, by_place), to_keys);
    uint32_t k = input(n, c, "k", batch, c->keys, c->size);
    return net_transpose(n, k, c->form == FORM_FLAT ? turn_flat : turn);
}

static uint32_t scaled(NetBuilder *n, uint32_t x, float by) {
    return net_binary(n, OP_Mul, "scaled", x, net_const_scalar(n, by));
}

static uint32_t masked(NetBuilder *n, const Case *c, uint32_t x) {
    bool     flat = c->form == FORM_FLAT;
    int64_t  batch = c->mask == MASK_KEYS || c->mask == MASK_PAIRS || c->mask == MASK_ALL;
    int64_t  queries = c->mask == MASK_KEYS ? 1 : c->queries;
    int64_t  dims[4] = {batch ? c->batch : 1, c->mask == MASK_ALL ? c->heads : 1, queries, c->keys};
    int64_t  flat_dims[3] = {batch ? c->batch * c->heads : 1, queries, c->keys};
    uint32_t mask = net_input(n, "mask", DT_F32, flat ? 3 : 4, flat ? flat_dims : dims);
    return c->swapped ? net_add(n, mask, x) : net_add(n, x, mask);
}

static void build(Graph *g, const Case *c) {
    NetBuilder net, *n = &net;
    net_init(n, g, 7);
    float    by = 1 / sqrtf((float)c->size);
    uint32_t q = input(n, c, "q", c->batch, c->queries, c->size), k = keys(n, c);
    uint32_t v = input(n, c, "v", c->batch, c->keys, c->v_size);
    if (c->scale == SCALE_Q) q = scaled(n, q, by);
    if (c->scale == SCALE_BOTH) q = scaled(n, q, sqrtf(by)), k = scaled(n, k, sqrtf(by));
    if (c->v_scaled) v = scaled(n, v, 3);
    uint32_t x = net_matmul(n, "scores", q, k);
    if (c->scale == SCALE_SCORES) x = net_binary(n, OP_Div, "div", x, net_const_scalar(n, 1 / by));
    if (c->mask != MASK_NONE) x = masked(n, c, x);
    uint32_t shares = net_softmax(n, x);
    uint32_t y = net_matmul(n, "context", shares, v);
    if (c->form == FORM_BERT || c->form == FORM_TWICE) y = net_transpose(n, y, to_heads);
    net_output(n, net_activation(n, NET_RELU, y), "y");
    if (c->peek) net_output(n, shares, "shares");
}

static void check_close(const Tensor *want, const Tensor *got, const char *what, const Isa *isa) {
    const float *a = want->data, *b = got->data;
    float        most = 1e-3f;
    assert_true(tensor_same_shape(want, got));
    for (int64_t i = 0; i < tensor_count(want); i++) most = fmaxf(most, fabsf(a[i]));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 2e-4f * most))
            fail_msg("%s on %s: element %lld is %g, not %g", what, isa->name, (long long)i,
                     (double)b[i], (double)a[i]);
}

static uint32_t count_kind(const Program *p, const char *kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) n += strcmp(p->steps[i].kind->name, kind) == 0;
    return n;
}

typedef struct Trial {
    const char  *what;
    ShapedGraph *shaped;
    Tensor       in[MAX_IN], want[MAX_OUT];
    uint32_t     n_out, attends;
    int          moves;  // copy steps that remain; below 0: any number
    Team        *team;
} Trial;

static void compiled(Trial *t, const Isa *isa) {
    Program   p;
    RunMemory mem;
    Tensor    got[MAX_OUT];
    if (program_make(&p, t->shaped, &(ProgramOptions){.isa = isa}) != ERR_OK)
        fail_msg("%s: %s", t->what, err_why());
    if (count_kind(&p, "attention") != t->attends)
        fail_msg("%s: %u steps of attention", t->what, count_kind(&p, "attention"));
    if (t->moves >= 0) {
        assert_int_equal(count_kind(&p, "normalize"), t->attends > 0 ? 0 : 1);
        assert_int_equal(count_kind(&p, "copy"), t->moves);
    }
    assert_int_equal(run_memory_init(&mem, &p, PARTS), ERR_OK);
    for (int parts = 0; parts < 2; parts++) {
        if (program_run(&p, &mem, parts == 0 ? NULL : t->team, t->in, NULL, got) != ERR_OK)
            fail_msg("%s: %s", t->what, err_why());
        for (uint32_t i = 0; i < t->n_out; i++) check_close(&t->want[i], &got[i], t->what, isa);
    }
    run_memory_finish(&mem);
    program_finish(&p);
}

static void fill(Tensor *t, Rng *r, Arena *a) {
    assert_int_equal(tensor_alloc(t, a), ERR_OK);
    for (int64_t i = 0; i < tensor_count(t); i++)
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = (float)rng_normal(r);
        else
            ((int64_t *)t->data)[i] = (int64_t)rng_below(r, 2);
}

static void try(Trial *t, Model *m) {
    const Graph *g = m->graph;
    const Isa   *best = NULL;
    Rng          r = {5};
    assert_int_equal(model_materialise(m), ERR_OK);
    assert_true(g->n_inputs <= MAX_IN && g->n_outputs <= MAX_OUT);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        t->in[i] = g->values[g->inputs[i]].type;
        fill(&t->in[i], &r, &m->arena);
    }
    t->n_out = g->n_outputs;
    if (shaped_graph_make(g, t->in, interp_eval, &m->arena, &t->shaped) != ERR_OK ||
        interp_run(t->shaped, t->in, &(InterpLimits){0}, &m->arena, t->want) != ERR_OK)
        fail_msg("%s: %s", t->what, err_why());
    assert_int_equal(isa_choose(&best), ERR_OK);
    compiled(t, &isa_baseline);
    if (best != &isa_baseline) compiled(t, best);
    model_finish(m);
}

static void one_case(const Case *c, uint32_t attends, int moves, Team *team) {
    char  what[120];
    Model m;
    snprintf(what, sizeof what, "scale %d form %d mask %d size %lld queries %lld keys %lld",
             c->scale, c->form, c->mask, (long long)c->size, (long long)c->queries,
             (long long)c->keys);
    Trial t = {.what = what, .attends = attends, .moves = moves, .team = team};
    assert_int_equal(model_init(&m, "attention"), ERR_OK);
    build(m.graph, c);
    try(&t, &m);
}

static void every_spelling(void **state) {
    static const int64_t sizes[][6] = {
        {2, 3, 7, 7, 5, 5}, {1, 4, 13, 9, 16, 11}, {2, 1, 70, 33, 8, 24}, {1, 2, 1, 17, 3, 1}};
    uint32_t n = 0;
    for (int scale = 0; scale < SCALES; scale++)
        for (int form = 0; form < FORMS; form++)
            for (int mask = 0; mask < MASKS; mask++, n++) {
                const int64_t *s = sizes[n % 4];
                Case           c = {s[0], s[1],         s[2],       s[3],       s[4],
                                    s[5], (Scale)scale, (Form)form, (Mask)mask, .swapped = n % 3 == 0};
                one_case(&c, 1, 0, *state);
            }
}

static void shared_keys(void **state) {
    Case c = {3, 2, 6, 10, 8, 8, SCALE_SCORES, FORM_BERT, MASK_KEYS, .k_shared = true};
    one_case(&c, 1, 0, *state);
}

// A scale of the values does not apply to the scores.
static void scaled_values(void **state) {
    Case c = {1, 2, 6, 10, 8, 8, SCALE_Q, FORM_PLAIN, MASK_KEYS, .v_scaled = true};
    one_case(&c, 1, 0, *state);
}

static void shares_wanted(void **state) {
    Case c = {1, 2, 6, 10, 8, 8, SCALE_SCORES, FORM_BERT, MASK_KEYS, .peek = true};
    one_case(&c, 0, 4, *state);
}

static void zoo(void **state) {
    Trial t = {.what = "bert_base", .attends = 12, .moves = -1, .team = *state};
    Model m;
    assert_int_equal(zoo_build("bert_base", &(ZooOptions){.sequence = 8}, &m), ERR_OK);
    try(&t, &m);
}

static int start(void **state) {
    Team *team = NULL;
    if (team_create(&team, PARTS, NULL) != ERR_OK) return -1;
    *state = team;
    return 0;
}

static int stop(void **state) {
    team_destroy(*state);
    return 0;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling), cmocka_unit_test(shared_keys),
        cmocka_unit_test(scaled_values), cmocka_unit_test(shares_wanted), cmocka_unit_test(zoo)};
    return cmocka_run_group_tests(tests, start, stop);
}

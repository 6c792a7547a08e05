// No value in a run's arena is overwritten before its last use: every layer marks the words it
// writes with its value, and the values it reads must still have their marks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "compile/lower/lower.h"
#include "compile/interp/interp.h"
#include "compile/layout.h"
#include "compile/memory_plan.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

#define NO_VALUE_HERE UINT32_MAX

enum { WORD = 4, ALIGN = 64, LANES = 8, ROUNDS = 400, LAYERS = 30 };

typedef struct Picture {
    const Ir  *ir;
    MemoryPlan plan;
    uint32_t  *marks;  // [words of the arena] value written there last
} Picture;

static size_t bytes_of(const Ir *ir, uint32_t v) {
    return layout_bytes(&ir->values[v].type, ir->values[v].layout, ir->lanes);
}

// Constants and inputs are not in the arena. *at: bytes into the arena.
static bool in_arena(const Picture *p, uint32_t v, size_t *at) {
    size_t   offset;
    uint32_t root = memory_plan_root(&p->plan, v, &offset);
    if (p->ir->values[root].producer == IR_NONE) return false;
    *at = p->plan.offset[root] + offset;
    assert_true(*at + bytes_of(p->ir, v) <= p->plan.bytes);
    assert_true(p->plan.offset[root] % ALIGN == 0);
    return true;
}

static void mark(Picture *p, uint32_t v, size_t at, size_t bytes) {
    for (size_t i = at / WORD; i < (at + bytes) / WORD; i++) p->marks[i] = v;
}

static bool bears(const Picture *p, uint32_t v, size_t at, size_t bytes) {
    for (size_t i = at / WORD; i < (at + bytes) / WORD; i++)
        if (p->marks[i] != v) return false;
    return true;
}

static const IrLayer *maker_of(const Ir *ir, uint32_t v) {
    return &ir->layers[ir->values[v].producer];
}

// An alias of the same bytes.
static bool renames(const Picture *p, const IrLayer *l) {
    return l->n_out > 0 && l->out[0] != IR_NONE && l->kind != IR_CONCAT && l->n_in > 0 &&
           p->plan.values[l->out[0]].owner == l->in[0];
}

// The data of v is intact there: its own marks, or those of the values it consists of.
static bool intact(const Picture *p, uint32_t v, size_t at) {
    const Ir      *ir = p->ir;
    const IrLayer *l = ir->values[v].producer == IR_NONE ? NULL : maker_of(ir, v);
    size_t         bytes = bytes_of(ir, v);
    if (l != NULL && renames(p, l)) return intact(p, l->in[0], at);
    if (l == NULL || l->kind != IR_CONCAT) return bears(p, v, at, bytes);
    bool   any = false, good = true;
    size_t part = at;
    for (uint32_t i = 0; i < l->n_in; i++) any = any || memory_plan_in_place(ir, &p->plan, l, i);
    if (!any) return bears(p, v, at, bytes);
    for (uint32_t i = 0; i < l->n_in; i++) {
        size_t n = bytes_of(ir, l->in[i]);
        good = good && (memory_plan_in_place(ir, &p->plan, l, i) ? intact(p, l->in[i], part)
                                                                 : bears(p, v, part, n));
        part += n;
    }
    return good;
}

static void write_concat(Picture *p, const IrLayer *l, size_t at) {
    bool any = false;
    for (uint32_t i = 0; i < l->n_in; i++) any = any || memory_plan_in_place(p->ir, &p->plan, l, i);
    if (!any) mark(p, l->out[0], at, bytes_of(p->ir, l->out[0]));
    for (uint32_t i = 0; any && i < l->n_in; i++) {
        if (!memory_plan_in_place(p->ir, &p->plan, l, i))
            mark(p, l->out[0], at, bytes_of(p->ir, l->in[i]));
        at += bytes_of(p->ir, l->in[i]);
    }
}

static void write_layer(Picture *p, const IrLayer *l) {
    size_t at;
    if (renames(p, l)) return;
    for (uint32_t k = 0; k < l->n_out; k++) {
        if (l->out[k] == IR_NONE || !in_arena(p, l->out[k], &at)) continue;
        if (l->kind == IR_CONCAT)
            write_concat(p, l, at);
        else
            mark(p, l->out[k], at, bytes_of(p->ir, l->out[k]));
    }
}

// Writes are marked before reads are checked: a layer may not overwrite its own operands either.
static void run_layer(Picture *p, uint32_t i, const char *what) {
    const IrLayer *l = &p->ir->layers[i];
    size_t         at;
    write_layer(p, l);
    for (uint32_t k = 0; k < ir_operand_count(l); k++) {
        uint32_t v = ir_operand(l, k);
        if (v != IR_NONE && in_arena(p, v, &at) && !intact(p, v, at))
            fail_msg("%s: layer %u of %u finds value %u spoilt", what, i, p->ir->n_layers, v);
    }
}

// Lower bound: the most live bytes at any layer, without alignment and fragmentation.
static size_t least_bytes(const Picture *p, Arena *a) {
    const Ir *ir = p->ir;
    size_t    n = ir->n_values, most = 0, offset;
    uint32_t *first = arena_new(a, uint32_t, n), *last = arena_new(a, uint32_t, n);
    for (uint32_t v = 0; v < n; v++) first[v] = UINT32_MAX;
    for (uint32_t i = 0; i < ir->n_layers; i++)
        for (uint32_t k = 0; k < ir->layers[i].n_out + ir_operand_count(&ir->layers[i]); k++) {
            const IrLayer *l = &ir->layers[i];
            uint32_t       v = k < l->n_out ? l->out[k] : ir_operand(l, k - l->n_out);
            if (v == IR_NONE) continue;
            v = memory_plan_root(&p->plan, v, &offset);
            if (first[v] == UINT32_MAX) first[v] = i;
            last[v] = i;
        }
    for (uint32_t v = 0; v < n; v++)
        if (ir->values[v].output) last[memory_plan_root(&p->plan, v, &offset)] = ir->n_layers;
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        size_t now = 0;
        for (uint32_t v = 0; v < n; v++)
            if (ir->values[v].producer != IR_NONE && first[v] <= i && i <= last[v])
                now += bytes_of(ir, v);
        if (now > most) most = now;
    }
    return most;
}

static size_t walk(const Ir *ir, Picture *p, const char *what) {
    size_t at;
    *p = (Picture){.ir = ir};
    memory_plan_make(ir, &p->plan);
    p->marks = arena_new(ir->arena, uint32_t, p->plan.bytes / WORD + 1);
    for (size_t i = 0; i <= p->plan.bytes / WORD; i++) p->marks[i] = NO_VALUE_HERE;
    for (uint32_t i = 0; i < ir->n_layers; i++) run_layer(p, i, what);
    for (uint32_t v = 0; v < ir->n_values; v++)
        if (ir->values[v].output && in_arena(p, v, &at) && !intact(p, v, at))
            fail_msg("%s: output %u is spoilt at the end", what, v);
    size_t least = least_bytes(p, ir->arena);
    assert_true(p->plan.bytes >= least);
    return least;
}

// Random layers.

static const Attr axes[] = {{.name = "axis", .kind = ATTR_INT, .v.i = 0},
                            {.name = "axis", .kind = ATTR_INT, .v.i = 1}};
static const Node joins[] = {{.name = "join", .op = OP_Concat, .n_attr = 1, .attrs = &axes[0]},
                             {.name = "join", .op = OP_Concat, .n_attr = 1, .attrs = &axes[1]}};

static uint32_t new_value(Ir *ir, int64_t rows, int64_t columns) {
    Tensor t = tensor_of(DT_F32, 2, (int64_t[]){rows, columns}, NULL);
    return ir_computed(ir, "v", t);
}

static uint32_t new_layer(Ir *ir, IrKind kind, const Node *n, const uint32_t *in, uint32_t n_in,
                          int64_t rows, int64_t columns) {
    uint32_t out = new_value(ir, rows, columns);
    IrLayer *l = ir_layer(ir, kind, n, n_in, 1);
    memcpy(l->in, in, n_in * sizeof *in);
    l->out[0] = out;
    return out;
}

static uint32_t any_value(const Ir *ir, Rng *r) { return (uint32_t)rng_below(r, ir->n_values); }

static uint32_t random_concat(Ir *ir, Rng *r, uint32_t a) {
    int64_t  rows = ir_type(ir, a)->dims[0], columns = ir_type(ir, a)->dims[1];
    uint32_t in[4] = {a}, n = 1, axis = (uint32_t)rng_below(r, 2);
    for (int tries = 0; tries < 12 && n < 4; tries++) {
        uint32_t b = any_value(ir, r);
        if (ir_type(ir, b)->dims[1 - axis] != (axis == 0 ? columns : rows)) continue;
        in[n++] = b;
        if (rng_below(r, 3) == 0) break;
    }
    int64_t size = 0;
    for (uint32_t i = 0; i < n; i++) size += ir_type(ir, in[i])->dims[axis];
    return new_layer(ir, IR_CONCAT, &joins[axis], in, n, axis == 0 ? size : rows,
                     axis == 0 ? columns : size);
}

static void random_layer(Ir *ir, Rng *r) {
    uint32_t a = any_value(ir, r), b = any_value(ir, r);
    int64_t  rows = ir_type(ir, a)->dims[0], columns = ir_type(ir, a)->dims[1];
    uint32_t in[2] = {a, b}, out;
    switch (rng_below(r, 6)) {
    case 0: out = new_layer(ir, IR_VIEW, NULL, in, 1, columns, rows); break;
    case 1:
    case 2: out = random_concat(ir, r, a); break;
    case 3: out = new_layer(ir, IR_REF, NULL, in, 2, 1, 1 + (int64_t)rng_below(r, 500)); break;
    default: out = new_layer(ir, IR_REF, NULL, in, 2, rows, columns);
    }
    ir->values[out].output = rng_below(r, 8) == 0;
}

static void random_layers(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 28), ERR_OK);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        Rng      r = {seed};
        Ir       ir = {.arena = &a, .lanes = LANES};
        Picture  p;
        char     what[32];
        uint32_t given = new_value(&ir, 1, 40), constant = new_value(&ir, 3, 16);
        ir.values[given].input = 0;
        ir.values[constant].type.data = &r;
        for (int i = 0; i < LAYERS; i++) random_layer(&ir, &r);
        ir.values[ir.n_values - 1].output = true;
        ir_remove_dead(&ir);
        snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
        walk(&ir, &p, what);
        arena_rewind(&a, 0);
    }
    arena_finish(&a);
}

// a -> b -> c -> ...: two buffers suffice.
static void a_line_needs_two_buffers(void **state) {
    (void)state;
    Arena   a;
    Picture p;
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    Ir       ir = {.arena = &a, .lanes = LANES};
    uint32_t v = new_value(&ir, 16, 64);
    ir.values[v].input = 0;
    for (int i = 0; i < 10; i++) v = new_layer(&ir, IR_REF, NULL, &v, 1, 16, 64);
    ir.values[v].output = true;
    ir_remove_dead(&ir);
    assert_int_equal(walk(&ir, &p, "line"), 2 * 16 * 64 * sizeof(float));
    assert_true(p.plan.bytes <= 2 * (16 * 64 * sizeof(float) + 2 * ALIGN));
    arena_finish(&a);
}

// Inputs of concatenations, also nested, are computed in place; graph inputs are copied.
static void concatenations_are_in_place(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    Ir       ir = {.arena = &a, .lanes = LANES};
    uint32_t x = new_value(&ir, 4, 8), at = 0;
    ir.values[x].input = 0;
    uint32_t b = new_layer(&ir, IR_REF, NULL, &x, 1, 4, 8);
    uint32_t c = new_layer(&ir, IR_REF, NULL, &b, 1, 2, 8);
    uint32_t inner = new_layer(&ir, IR_CONCAT, &joins[0], (uint32_t[]){b, c}, 2, 6, 8);
    uint32_t d = new_layer(&ir, IR_REF, NULL, &inner, 1, 5, 8);
    uint32_t outer = new_layer(&ir, IR_CONCAT, &joins[0], (uint32_t[]){d, inner, x}, 3, 15, 8);
    ir.values[outer].output = true;
    ir_remove_dead(&ir);
    Picture p;
    walk(&ir, &p, "nested");
    static const uint32_t rows[] = {5, 9, 5, 0};
    const uint32_t        parts[] = {b, c, inner, d};
    for (int i = 0; i < 4; i++) {
        size_t offset;
        assert_int_equal(memory_plan_root(&p.plan, parts[i], &offset), outer);
        assert_int_equal(offset, rows[i] * 8 * sizeof(float));
    }
    for (uint32_t i = 0; i < ir.n_layers; i++)
        if (ir.layers[i].out[0] == outer) at = i;
    assert_true(memory_plan_in_place(&ir, &p.plan, &ir.layers[at], 1));
    assert_false(memory_plan_in_place(&ir, &p.plan, &ir.layers[at], 2));
    arena_finish(&a);
}

// Networks run the passes of program_make up to the memory plan.
static void zoo_network(const char *name, uint32_t lanes, int64_t sequence, double waste) {
    Model        m;
    ShapedGraph *s = NULL;
    Tensor       in[3];
    Ir           ir;
    Picture      p;
    assert_int_equal(zoo_build(name, &(ZooOptions){.sequence = sequence}, &m), ERR_OK);
    assert_int_equal(model_materialise(&m), ERR_OK);
    for (uint32_t i = 0; i < m.graph->n_inputs; i++)
        in[i] = m.graph->values[m.graph->inputs[i]].type;
    assert_int_equal(shaped_graph_make(m.graph, in, interp_eval, &m.arena, &s), ERR_OK);
    assert_int_equal(lower_graph(s, lanes, false, &m.arena, &ir), ERR_OK);
    fuse_norms(&ir);
    fuse_concats(&ir);
    fuse_elementwise(&ir);
    fuse_channel_scale(&ir);
    layout_assign(&ir);
    size_t least = walk(&ir, &p, name);
    print_message("%s: %zu bytes, at least %zu\n", name, p.plan.bytes, least);
    if ((double)p.plan.bytes > waste * (double)least)
        fail_msg("%s: %zu bytes where %zu are alive at once", name, p.plan.bytes, least);
    model_finish(&m);
}

static void zoo_networks(void **state) {
    (void)state;
    zoo_network("squeezenet1_1", 8, 0, 1.25);
    zoo_network("googlenet", 8, 0, 1.25);
    zoo_network("densenet121", 16, 0, 1.25);
    zoo_network("mobilenet_v3_large", 16, 0, 1.25);
    zoo_network("mobile_bert", 8, 16, 1.25);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layers), cmocka_unit_test(a_line_needs_two_buffers),
        cmocka_unit_test(concatenations_are_in_place), cmocka_unit_test(zoo_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

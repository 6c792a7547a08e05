#include "compile/memory_plan.h"

#include <stdlib.h>

#include "base/err.h"
#include "compile/layout.h"
#include "compile/spec.h"

enum {
    ALIGN = 64,
    SLACK = 64,          // bytes: kernels may read one vector past a row of channels
    MAX_PLANNED = 8192,  // buffers; planning is quadratic, so beyond that no buffer is shared
};

typedef struct Lifetime {
    uint32_t value, first, last;
    size_t   bytes, at;
} Lifetime;

static size_t bytes_of(const Ir *ir, uint32_t v) {
    return layout_bytes(&ir->values[v].type, ir->values[v].layout, ir->lanes);
}

uint32_t memory_plan_root(const MemoryPlan *p, uint32_t v, size_t *offset) {
    *offset = 0;
    while (p->values[v].owner != v) {
        *offset += p->values[v].offset;
        v = p->values[v].owner;
    }
    return v;
}

static bool is_computed(const Ir *ir, uint32_t v) { return ir->values[v].producer != IR_NONE; }

static void alias(MemoryPlan *p, uint32_t v, uint32_t owner, size_t offset) {
    p->values[v] = (PlannedValue){owner, offset};
}

static void alias_views(const Ir *ir, MemoryPlan *p, const IrLayer *l) {
    bool same =
        l->kind == IR_VIEW ||
        (l->kind == IR_LAYOUT && layout_is_noop(ir_type(ir, l->in[0]), ir->values[l->in[0]].layout,
                                                ir->values[l->out[0]].layout, ir->lanes));
    if (same) alias(p, l->out[0], l->in[0], 0);
}

// True if the inputs of a concatenation are contiguous pieces of its output.
static bool concat_parts(const Ir *ir, const IrLayer *l) {
    const Tensor *out = ir_type(ir, l->out[0]);
    int64_t       before = 1;
    if (ir->values[l->out[0]].layout == LAYOUT_PIXELS) return false;
    for (int32_t i = 0; i < spec_concat_axis(ir, l); i++) before *= out->dims[i];
    return before == 1;
}

// Each input is computed in place in the output, unless it aliases another value or is not computed
// by a layer.
static void alias_concat(const Ir *ir, MemoryPlan *p, const IrLayer *l) {
    if (!concat_parts(ir, l)) return;
    size_t at = 0;
    for (uint32_t i = 0; i < l->n_in; i++) {
        size_t   offset = 0, bytes = bytes_of(ir, l->in[i]);
        uint32_t r = memory_plan_root(p, l->in[i], &offset);
        if (is_computed(ir, r) && offset == 0 && bytes_of(ir, r) == bytes && r != l->out[0])
            alias(p, r, l->out[0], at);
        at += bytes;
    }
}

bool memory_plan_in_place(const Ir *ir, const MemoryPlan *p, const IrLayer *concat, uint32_t i) {
    size_t   part, whole;
    uint32_t owner = memory_plan_root(p, concat->out[0], &whole);
    if (!concat_parts(ir, concat) || memory_plan_root(p, concat->in[i], &part) != owner)
        return false;
    for (uint32_t k = 0; k < i; k++) whole += bytes_of(ir, concat->in[k]);
    return part == whole;
}

static void extend_lifetime(const MemoryPlan *p, Lifetime *live, uint32_t value, uint32_t at) {
    size_t   offset;
    uint32_t r = memory_plan_root(p, value, &offset);
    if (live[r].first > at) live[r].first = at;
    if (live[r].last < at) live[r].last = at;
}

static Lifetime *lifetimes(const Ir *ir, const MemoryPlan *p, uint32_t *n) {
    Lifetime *live = arena_new(ir->arena, Lifetime, ir->n_values);
    for (uint32_t i = 0; i < ir->n_values; i++)
        live[i] = (Lifetime){.value = i, .first = UINT32_MAX, .bytes = bytes_of(ir, i) + SLACK};
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        const IrLayer *l = &ir->layers[i];
        for (uint32_t k = 0; k < ir_operand_count(l); k++)
            if (ir_operand(l, k) != IR_NONE) extend_lifetime(p, live, ir_operand(l, k), i);
        for (uint32_t k = 0; k < l->n_out; k++)
            if (l->out[k] != IR_NONE) extend_lifetime(p, live, l->out[k], i);
    }
    for (uint32_t i = 0; i < ir->n_values; i++)
        if (ir->values[i].output) extend_lifetime(p, live, i, ir->n_layers);
    *n = 0;
    for (uint32_t i = 0; i < ir->n_values; i++)
        if (p->values[i].owner == i && is_computed(ir, i) && live[i].first != UINT32_MAX)
            live[(*n)++] = live[i];
    return live;
}

static int by_descending_bytes(const void *a, const void *b) {
    const Lifetime *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static int by_offset(const void *a, const void *b) {
    const Lifetime *x = *(Lifetime *const *)a, *y = *(Lifetime *const *)b;
    return x->at < y->at ? -1 : x->at > y->at;
}

// Best fit: the smallest sufficient gap between simultaneously live buffers, else the end.
static size_t find_gap(const Lifetime *now, Lifetime **others, uint32_t n) {
    size_t end = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    qsort(others, n, sizeof(Lifetime *), by_offset);  // NOLINT(bugprone-sizeof-expression)
    for (uint32_t i = 0; i < n; i++) {
        size_t gap = others[i]->at > end ? others[i]->at - end : 0;
        if (gap >= now->bytes && gap < best_size) best = end, best_size = gap;
        size_t after = (others[i]->at + others[i]->bytes + ALIGN - 1) / ALIGN * ALIGN;
        if (after > end) end = after;
    }
    return best != SIZE_MAX ? best : end;
}

// Larger buffers first: they fit into few gaps later.
static void assign(const Ir *ir, MemoryPlan *p) {
    uint32_t  n = 0;
    Lifetime *live = lifetimes(ir, p, &n), **others = arena_new(ir->arena, Lifetime *, n);
    if (n > 0) qsort(live, n, sizeof *live, by_descending_bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = 0;
        for (uint32_t k = 0; n <= MAX_PLANNED && k < i; k++)
            if (live[k].first <= live[i].last && live[i].first <= live[k].last)
                others[m++] = &live[k];
        live[i].at = n <= MAX_PLANNED ? find_gap(&live[i], others, m)
                                      : (p->bytes + ALIGN - 1) / ALIGN * ALIGN;
        p->offset[live[i].value] = live[i].at;
        if (live[i].at + live[i].bytes > p->bytes) p->bytes = live[i].at + live[i].bytes;
    }
}

void memory_plan_make(const Ir *ir, MemoryPlan *out) {
    *out = (MemoryPlan){.values = arena_new(ir->arena, PlannedValue, ir->n_values),
                        .offset = arena_new(ir->arena, size_t, ir->n_values)};
    for (uint32_t i = 0; i < ir->n_values; i++) out->values[i].owner = i;
    for (uint32_t i = 0; i < ir->n_layers; i++) alias_views(ir, out, &ir->layers[i]);
    // Outer concatenations come later in the list, so nested ones move with them.
    for (uint32_t i = 0; i < ir->n_layers; i++)
        if (ir->layers[i].kind == IR_CONCAT) alias_concat(ir, out, &ir->layers[i]);
    assign(ir, out);
}

// Element-wise layers join the layer that makes one of their arguments, when nobody else reads it.
#include "compile/fuse.h"
#include "compile/spec.h"

// Behind a heavy layer every other argument must run along its output in a simple way.
static bool args_fit(const Ir *ir, const IrLayer *host, const Expr *e, uint32_t at) {
    const Tensor *out = ir_type(ir, host->out[0]);
    int32_t       axis = spec_channel_axis(host->kind, out);
    ChainMode     mode;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (i != at && !spec_arg_mode(ir_type(ir, e->args[i]), out, axis, &mode)) return false;
    return true;
}

static bool can_host(const Ir *ir, const IrLayer *l, uint32_t at) {
    uint32_t       v = l->expr.args[at];
    const IrValue *value = &ir->values[v];
    if (value->maker == IR_NONE || value->readers != 1 || value->output) return false;
    const IrLayer *host = &ir->layers[value->maker];
    if (host->dead || host->n_out != 1) return false;
    if (!tensor_same_shape(&value->type, ir_type(ir, l->out[0]))) return false;
    if (host->kind == IR_CHAIN) return true;
    return ir_is_chain_host(host->kind) && args_fit(ir, host, &l->expr, at);
}

static bool reads(const IrLayer *l, uint32_t value) {
    for (uint32_t i = 0; i < ir_reads(l); i++)
        if (ir_read(l, i) == value) return true;
    return false;
}

// Two readers become one: what both read has one reader less, what was handed over has none.
static void count_joined(Ir *ir, const IrLayer *host, const IrLayer *l) {
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        uint32_t v = l->expr.args[i];
        if (reads(host, v) || v == host->out[0]) ir->values[v].readers--;
    }
}

// The joined layer takes the later place: by then everything it reads is there.
static bool join(Ir *ir, uint32_t at, uint32_t arg) {
    IrLayer *l = &ir->layers[at], *host = &ir->layers[ir->values[l->expr.args[arg]].maker];
    Expr     both;
    if (!expr_join(&host->expr, &l->expr, arg, &both)) return false;
    count_joined(ir, host, l);
    IrLayer now = *host;
    now.out = l->out;
    now.expr = both;
    host->dead = true;
    *l = now;
    return true;
}

// Of several arguments the one made last, so that little has to wait.
static bool join_best(Ir *ir, uint32_t at) {
    const IrLayer *l = &ir->layers[at];
    uint32_t       best = IR_NONE, best_maker = 0;
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        if (!can_host(ir, l, i)) continue;
        uint32_t maker = ir->values[l->expr.args[i]].maker;
        bool     heavy = ir_is_chain_host(ir->layers[maker].kind);
        uint32_t rank = maker + (heavy ? ir->n_layers : 0);
        if (best == IR_NONE || rank > best_maker) best = i, best_maker = rank;
    }
    return best != IR_NONE && join(ir, at, best);
}

void fuse_chains(Ir *ir) {
    ir_count(ir);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < ir->n_layers; i++)
            while (!ir->layers[i].dead && ir->layers[i].kind == IR_CHAIN && join_best(ir, i))
                changed = true;
    }
    ir_sweep(ir);
}

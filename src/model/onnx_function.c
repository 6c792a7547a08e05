#include "model/onnx_function.h"

#include <string.h>

#include "model/onnx_clone.h"
#include "onnx.pb-c.h"

enum { CALLS_NESTED_MAX = 16, IMPORTS_MAX = 256, INLINE_BYTES_MAX = 1 << 27 };

static const char *text(const char *s) { return s != NULL ? s : ""; }

static const char *key_of(Arena *a, const char *domain, const char *name) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    return arena_printf(a, "%s\n%s", domain, name);
}

Err onnx_function_list(OnnxFile *f) {
    map_init(&f->functions, f->arena);
    f->inline_left = INLINE_BYTES_MAX;
    for (size_t i = 0; i < f->proto->n_functions; i++) {
        const Onnx__FunctionProto *p = f->proto->functions[i];
        const char                *key = key_of(f->arena, text(p->domain), text(p->name));
        if (map_get(&f->functions, key) != MAP_NONE)
            return err_set(ERR_INVALID, "function '%s' is defined twice", text(p->name));
        if (p->n_opset_import > IMPORTS_MAX)
            return err_set(ERR_LIMIT, "function '%s' imports more than %d operator sets",
                           text(p->name), IMPORTS_MAX);
        map_put(&f->functions, key, (uint32_t)i);
    }
    return ERR_OK;
}

static const Onnx__FunctionProto *find(OnnxFile *f, const Onnx__NodeProto *p) {
    if (f->proto->n_functions == 0) return NULL;
    size_t      mark = f->arena->used;
    const char *key = key_of(f->arena, text(p->domain), text(p->op_type));
    uint32_t    i = map_get(&f->functions, key);
    arena_rewind(f->arena, mark);
    return i != MAP_NONE ? f->proto->functions[i] : NULL;
}

static void append(Arena *a, OnnxNodes *list, OnnxNode n) {
    if (list->n == list->cap) {
        size_t    cap = list->cap == 0 ? 16 : 2 * list->cap;
        OnnxNode *more = arena_new(a, OnnxNode, cap);
        if (list->n > 0) memcpy(more, list->at, list->n * sizeof n);
        list->at = more;
        list->cap = cap;
    }
    list->at[list->n++] = n;
}

static Err open_call(OnnxFile *f, const Onnx__FunctionProto *fn, const Onnx__NodeProto *call,
                     OnnxCall *c) {
    size_t n = fn->n_input + fn->n_output, cost = 64 * (n + 16);
    if (call->n_input > fn->n_input || call->n_output > fn->n_output)
        return err_set(ERR_INVALID, "passes more inputs or outputs than the function has");
    if (cost > f->inline_left) return err_set(ERR_LIMIT, "the model calls functions too often");
    f->inline_left -= cost;
    *c = (OnnxCall){.file = f, .function = fn, .node = call};
    c->prefix = arena_printf(f->arena, "%s.%u/", text(fn->name), f->n_calls++);
    map_init(&c->inputs, f->arena);
    map_init(&c->outputs, f->arena);
    for (size_t i = 0; i < fn->n_input; i++) map_put(&c->inputs, fn->input[i], (uint32_t)i);
    for (size_t i = 0; i < fn->n_output; i++) map_put(&c->outputs, fn->output[i], (uint32_t)i);
    return ERR_OK;
}

static Err expand(OnnxFile *f, OnnxNode n, OnnxNodes *out);

static Err expand_call(OnnxFile *f, OnnxNode n, const Onnx__FunctionProto *fn, OnnxNodes *out) {
    if (n.scope->calls == CALLS_NESTED_MAX)
        return err_set(ERR_LIMIT, "function calls are nested deeper than %d, or recursive",
                       CALLS_NESTED_MAX);
    OnnxCall c;
    TRY(open_call(f, fn, n.p, &c));
    OnnxScope *inside = arena_new(f->arena, OnnxScope, 1);
    *inside = (OnnxScope){fn->opset_import, fn->n_opset_import, n.scope->calls + 1};
    for (size_t i = 0; i < fn->n_node; i++) {
        Onnx__NodeProto *copy = NULL;
        TRY(onnx_clone(&c, fn->node[i], &copy));
        TRY(expand(f, (OnnxNode){copy, inside, n.index}, out));
    }
    return ERR_OK;
}

static Err expand(OnnxFile *f, OnnxNode n, OnnxNodes *out) {
    const Onnx__FunctionProto *fn = find(f, n.p);
    if (fn == NULL) {
        append(f->arena, out, n);
        return ERR_OK;
    }
    Err e = expand_call(f, n, fn, out);
    if (e == ERR_OK) return e;
    return err_add(e, "node '%s' (index %zu, function %s)", text(n.p->name), n.index,
                   text(fn->name));
}

Err onnx_function_expand(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p,
                         OnnxNodes *out) {
    for (size_t i = 0; i < p->n_node; i++) TRY(expand(f, (OnnxNode){p->node[i], s, i}, out));
    return ERR_OK;
}

// Inlines calls of a model's own functions: each call gets a copy of the function's nodes, with the
// names and attributes of the call. The copies share tensor data with the original.
#include <string.h>

#include "model/onnx/onnx_int.h"
#include "onnx.pb-c.h"

enum { CALLS_NESTED_MAX = 16, IMPORTS_MAX = 256, INLINE_BYTES_MAX = 1 << 27 };

typedef struct OnnxCall {
    OnnxFile                  *file;
    const Onnx__FunctionProto *function;
    const Onnx__NodeProto     *node;             // the call
    const char                *prefix;           // of every name that is not a parameter
    StringMap                  inputs, outputs;  // parameters by name, to their positions
} OnnxCall;

static Err charge(OnnxFile *f, size_t bytes) {
    if (bytes > f->inline_left)
        return err_set(ERR_LIMIT, "the model's functions are too large when inlined; inline or "
                                  "simplify them before export");
    f->inline_left -= bytes;
    return ERR_OK;
}

static Err copy_of(const OnnxCall *c, const void *from, size_t size, void **out) {
    TRY(charge(c->file, size));
    *out = memcpy(arena_alloc(c->file->arena, 1, size, _Alignof(max_align_t)), from, size);
    return ERR_OK;
}

static Err room_for(const OnnxCall *c, size_t n, void **out) {
    TRY(charge(c->file, n * sizeof(void *)));
    *out = arena_new(c->file->arena, void *, n);
    return ERR_OK;
}

// A parameter gets the name of the call's argument; every other name gets the call's prefix.
static Err rename_to(const OnnxCall *c, const char *name, char **out) {
    *out = "";
    if (onnx_text(name)[0] == '\0') return ERR_OK;
    uint32_t in = string_map_get(&c->inputs, name), made = string_map_get(&c->outputs, name);
    if (made < c->node->n_output && c->node->output[made][0] != '\0') {
        *out = c->node->output[made];
    } else if (in != STRING_MAP_NONE) {
        if (in < c->node->n_input) *out = c->node->input[in];
    } else {
        TRY(charge(c->file, strlen(c->prefix) + strlen(name) + 1));
        *out = arena_printf(c->file->arena, "%s%s", c->prefix, name);
    }
    return ERR_OK;
}

static Err rename_all(const OnnxCall *c, char ***names, size_t n) {
    char **from = *names;
    void  *to = NULL;
    TRY(room_for(c, n, &to));
    *names = to;
    for (size_t i = 0; i < n; i++) TRY(rename_to(c, from[i], &(*names)[i]));
    return ERR_OK;
}

static Err clone_infos(const OnnxCall *c, Onnx__ValueInfoProto ***infos, size_t n) {
    Onnx__ValueInfoProto **from = *infos;
    void                  *to = NULL, *one = NULL;
    TRY(room_for(c, n, &to));
    *infos = to;
    for (size_t i = 0; i < n; i++) {
        TRY(copy_of(c, from[i], sizeof **from, &one));
        (*infos)[i] = one;
        TRY(rename_to(c, from[i]->name, &(*infos)[i]->name));
    }
    return ERR_OK;
}

// Bytes that reading the copied tensor takes; its data is shared where possible.
static size_t tensor_cost(const Onnx__TensorProto *t) {
    return sizeof(Tensor) + t->n_int32_data * sizeof(uint16_t) +
           t->n_uint64_data * sizeof(uint32_t) + t->n_string_data * sizeof(Str);
}

static Err clone_tensors(const OnnxCall *c, Onnx__TensorProto ***tensors, size_t n) {
    Onnx__TensorProto **from = *tensors;
    void               *to = NULL, *one = NULL;
    TRY(room_for(c, n, &to));
    *tensors = to;
    for (size_t i = 0; i < n; i++) {
        TRY(charge(c->file, tensor_cost(from[i])));
        TRY(copy_of(c, from[i], sizeof **from, &one));
        (*tensors)[i] = one;
        TRY(rename_to(c, from[i]->name, &(*tensors)[i]->name));
    }
    return ERR_OK;
}

static Err clone_node(const OnnxCall *c, const Onnx__NodeProto *p, Onnx__NodeProto **out);

static Err clone_nodes(const OnnxCall *c, Onnx__NodeProto ***nodes, size_t n) {
    Onnx__NodeProto **from = *nodes;
    void             *to = NULL;
    TRY(room_for(c, n, &to));
    *nodes = to;
    for (size_t i = 0; i < n; i++) TRY(clone_node(c, from[i], &(*nodes)[i]));
    return ERR_OK;
}

static Err clone_graph(const OnnxCall *c, Onnx__GraphProto **graph) {
    void *one = NULL;
    if ((*graph)->n_sparse_initializer > 0)
        return err_set(ERR_UNSUPPORTED, "sparse initializers inside functions are not supported");
    TRY(copy_of(c, *graph, sizeof **graph, &one));
    Onnx__GraphProto *g = *graph = one;
    TRY(clone_infos(c, &g->input, g->n_input));
    TRY(clone_infos(c, &g->output, g->n_output));
    TRY(clone_infos(c, &g->value_info, g->n_value_info));
    TRY(clone_tensors(c, &g->initializer, g->n_initializer));
    return clone_nodes(c, &g->node, g->n_node);
}

static size_t attr_cost(const Onnx__AttributeProto *a) {
    size_t n = a->s.len + (a->t != NULL ? tensor_cost(a->t) : 0);
    for (size_t i = 0; i < a->n_strings; i++) n += a->strings[i].len + sizeof(Str);
    return n;
}

static const Onnx__AttributeProto *given(const OnnxCall *c, const char *name) {
    for (size_t i = 0; i < c->node->n_attribute; i++)
        if (strcmp(onnx_text(c->node->attribute[i]->name), name) == 0) return c->node->attribute[i];
    return NULL;
}

// Since IR 9 functions may have default attributes, in a field unknown to this schema.
static bool has_defaults(const Onnx__FunctionProto *f) {
    for (size_t i = 0; i < f->base.n_unknown_fields; i++)
        if (f->base.unknown_fields[i].tag == 11) return true;
    return false;
}

// A reference to an attribute that the call does not have is dropped: *out is NULL.
static Err clone_attr(const OnnxCall *c, const Onnx__AttributeProto *p,
                      Onnx__AttributeProto **out) {
    const Onnx__AttributeProto *from = p;
    void                       *one = NULL;
    bool                        refers = onnx_text(p->ref_attr_name)[0] != '\0';
    if (refers) from = given(c, p->ref_attr_name);
    *out = NULL;
    if (from == NULL && has_defaults(c->function))
        return err_set(ERR_UNSUPPORTED, "default attributes of functions are not supported; inline "
                                        "the functions before export");
    if (from == NULL) return ERR_OK;
    TRY(charge(c->file, attr_cost(from)));
    TRY(copy_of(c, from, sizeof *from, &one));
    *out = one;
    (*out)->name = p->name;
    if (refers && from->g != NULL)
        return err_set(
            ERR_UNSUPPORTED,
            "functions with a graph as attribute are not supported; inline them before export");
    return (*out)->g != NULL ? clone_graph(c, &(*out)->g) : ERR_OK;
}

static Err clone_attrs(const OnnxCall *c, Onnx__NodeProto *n) {
    Onnx__AttributeProto **from = n->attribute;
    void                  *to = NULL;
    size_t                 total = n->n_attribute, kept = 0;
    TRY(room_for(c, total, &to));
    n->attribute = to;
    for (size_t i = 0; i < total; i++) {
        TRY(clone_attr(c, from[i], &n->attribute[kept]));
        if (n->attribute[kept] != NULL) kept++;
    }
    n->n_attribute = kept;
    return ERR_OK;
}

static Err clone_node(const OnnxCall *c, const Onnx__NodeProto *p, Onnx__NodeProto **out) {
    void *one = NULL;
    TRY(copy_of(c, p, sizeof *p, &one));
    Onnx__NodeProto *n = *out = one;
    const char      *name = onnx_text(p->name)[0] != '\0' ? p->name : onnx_text(p->op_type);
    TRY(charge(c->file, strlen(c->prefix) + strlen(name) + 1));
    n->name = arena_printf(c->file->arena, "%s%s", c->prefix, name);
    TRY(rename_all(c, &n->input, n->n_input));
    TRY(rename_all(c, &n->output, n->n_output));
    return clone_attrs(c, n);
}

static const char *key_of(Arena *a, const char *domain, const char *name) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    return arena_printf(a, "%s\n%s", domain, name);
}

Err onnx_function_list(OnnxFile *f) {
    string_map_init(&f->functions, f->arena);
    f->inline_left = INLINE_BYTES_MAX;
    for (size_t i = 0; i < f->proto->n_functions; i++) {
        const Onnx__FunctionProto *p = f->proto->functions[i];
        const char                *key = key_of(f->arena, onnx_text(p->domain), onnx_text(p->name));
        if (string_map_get(&f->functions, key) != STRING_MAP_NONE)
            return err_set(ERR_INVALID, "function '%s' is defined twice", onnx_text(p->name));
        if (p->n_opset_import > IMPORTS_MAX)
            return err_set(ERR_LIMIT, "function '%s' imports more than %d operator sets",
                           onnx_text(p->name), IMPORTS_MAX);
        string_map_put(&f->functions, key, (uint32_t)i);
    }
    return ERR_OK;
}

static const Onnx__FunctionProto *find(OnnxFile *f, const Onnx__NodeProto *p) {
    if (f->proto->n_functions == 0) return NULL;
    size_t      mark = f->arena->used;
    const char *key = key_of(f->arena, onnx_text(p->domain), onnx_text(p->op_type));
    uint32_t    i = string_map_get(&f->functions, key);
    arena_rewind(f->arena, mark);
    return i != STRING_MAP_NONE ? f->proto->functions[i] : NULL;
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
    if (cost > f->inline_left) return err_set(ERR_LIMIT, "the model has too many function calls");
    f->inline_left -= cost;
    *c = (OnnxCall){.file = f, .function = fn, .node = call};
    c->prefix = arena_printf(f->arena, "%s.%u/", onnx_text(fn->name), f->n_calls++);
    string_map_init(&c->inputs, f->arena);
    string_map_init(&c->outputs, f->arena);
    for (size_t i = 0; i < fn->n_input; i++) string_map_put(&c->inputs, fn->input[i], (uint32_t)i);
    for (size_t i = 0; i < fn->n_output; i++)
        string_map_put(&c->outputs, fn->output[i], (uint32_t)i);
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
        TRY(clone_node(&c, fn->node[i], &copy));
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
    return err_add(e, "node '%s' (index %zu, function %s)", onnx_text(n.p->name), n.index,
                   onnx_text(fn->name));
}

Err onnx_function_expand(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p,
                         OnnxNodes *out) {
    for (size_t i = 0; i < p->n_node; i++) TRY(expand(f, (OnnxNode){p->node[i], s, i}, out));
    return ERR_OK;
}

// Graphs of an ONNX file: attributes, constants, values and nodes.
#include <inttypes.h>
#include <string.h>

#include "model/onnx/onnx_int.h"
#include "onnx.pb-c.h"

enum { GRAPHS_NESTED_MAX = 24 };

static Str terminated(Arena *a, ProtobufCBinaryData b) {
    char *at = arena_new(a, char, b.len + 1);
    if (b.len > 0) memcpy(at, b.data, b.len);
    return (Str){at, b.len};
}

static Err read_strings(OnnxFile *f, const Onnx__AttributeProto *p, Attr *out) {
    Str *all = arena_new(f->arena, Str, p->n_strings + 1);
    for (size_t i = 0; i < p->n_strings; i++) all[i] = terminated(f->arena, p->strings[i]);
    out->v.strings = all;
    out->n = (uint32_t)p->n_strings;
    return ERR_OK;
}

static Err read_tensor(OnnxFile *f, const Onnx__AttributeProto *p, Attr *out) {
    if (p->t == NULL) return err_set(ERR_INVALID, "has no tensor");
    Tensor *t = arena_new(f->arena, Tensor, 1);
    out->v.t = t;
    return onnx_read_tensor(&f->store, p->t, t);
}

static Err read_type(OnnxFile *f, const Onnx__AttributeProto *p, Attr *out) {
    if (p->tp == NULL) return err_set(ERR_INVALID, "has no type");
    Value v = {0};
    TRY(onnx_read_type(f->arena, p->tp, &v));
    Tensor *t = arena_new(f->arena, Tensor, 1);
    *t = v.type;
    t->data = (void *)v.elem;
    out->v.t = t;
    return ERR_OK;
}

static Err read_graph(OnnxFile *f, const OnnxScope *s, const Onnx__AttributeProto *p, Graph *g,
                      Attr *out) {
    if (p->g == NULL) return err_set(ERR_INVALID, "has no graph");
    uint32_t depth = 1;
    for (const Graph *up = g; up != NULL; up = up->parent) depth++;
    if (depth > GRAPHS_NESTED_MAX)
        return err_set(ERR_LIMIT, "graphs are nested deeper than %d", GRAPHS_NESTED_MAX);
    out->v.g = graph_create(f->arena, g, onnx_text(p->g->name));
    return onnx_read_graph(f, s, p->g, out->v.g);
}

// The kinds that the message holds values of, one bit each.
static uint32_t kinds_present(const Onnx__AttributeProto *p) {
    return (uint32_t)(p->has_f != 0) << ATTR_FLOAT | (uint32_t)(p->has_i != 0) << ATTR_INT |
           (uint32_t)(p->has_s != 0) << ATTR_STRING | (uint32_t)(p->t != NULL) << ATTR_TENSOR |
           (uint32_t)(p->g != NULL) << ATTR_GRAPH | (uint32_t)(p->n_floats > 0) << ATTR_FLOATS |
           (uint32_t)(p->n_ints > 0) << ATTR_INTS | (uint32_t)(p->n_strings > 0) << ATTR_STRINGS |
           (uint32_t)(p->tp != NULL) << ATTR_TYPE |
           (uint32_t)(p->n_tensors > 0) << ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS |
           (uint32_t)(p->n_graphs > 0) << ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS |
           (uint32_t)(p->n_type_protos > 0) << ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTOS |
           (uint32_t)(p->sparse_tensor != NULL)
               << ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR |
           (uint32_t)(p->n_sparse_tensors > 0)
               << ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSORS;
}

// The declared kind; very old files declare none and hold values of one kind.
static Err find_kind(const Onnx__AttributeProto *p, int *kind) {
    uint32_t there = kinds_present(p);
    *kind = p->has_type ? (int)p->type : 0;
    if (*kind == 0 && there != 0) *kind = __builtin_ctz(there);
    if (*kind < 1 || *kind > 31) return err_set(ERR_INVALID, "has an unknown kind (%d)", *kind);
    if ((there & ~(1u << *kind)) != 0)
        return err_set(ERR_INVALID, "holds values of another kind than it declares (%d)", *kind);
    return ERR_OK;
}

static Err read_value(OnnxFile *f, const OnnxScope *s, const Onnx__AttributeProto *p, Graph *g,
                      Attr *out) {
    static const int64_t no_ints[1];
    static const float   no_floats[1];
    int                  kind = 0;
    TRY(find_kind(p, &kind));
    out->kind = (AttrKind)kind;
    switch (kind) {
    case ATTR_FLOAT: out->v.f = p->f; return ERR_OK;
    case ATTR_INT: out->v.i = p->i; return ERR_OK;
    case ATTR_STRING: out->v.s = terminated(f->arena, p->s); return ERR_OK;
    case ATTR_FLOATS:
        out->n = (uint32_t)p->n_floats;
        out->v.floats = out->n > 0 ? p->floats : no_floats;
        return ERR_OK;
    case ATTR_INTS:
        out->n = (uint32_t)p->n_ints;
        out->v.ints = out->n > 0 ? p->ints : no_ints;
        return ERR_OK;
    case ATTR_STRINGS: return read_strings(f, p, out);
    case ATTR_TENSOR: return read_tensor(f, p, out);
    case ATTR_TYPE: return read_type(f, p, out);
    case ATTR_GRAPH: return read_graph(f, s, p, g, out);
    default: return err_set(ERR_UNSUPPORTED, "lists of kind %d are not supported", kind);
    }
}

static Err read_attr(OnnxFile *f, const OnnxScope *s, const Onnx__AttributeProto *p, Graph *g,
                     Attr *out) {
    *out = (Attr){.name = onnx_text(p->name)};
    if (out->name[0] == '\0') return err_set(ERR_INVALID, "an attribute has no name");
    Err e = p->ref_attr_name != NULL && p->ref_attr_name[0] != '\0'
                ? err_set(ERR_INVALID, "refers to '%s' outside of a function", p->ref_attr_name)
                : read_value(f, s, p, g, out);
    return e == ERR_OK ? e : err_add(e, "attribute '%s'", out->name);
}

static Tensor list_of(DType t, uint32_t n, const void *data) {
    int64_t dim = n;
    return tensor_of(t, 1, &dim, (void *)data);
}

static Err scalar(OnnxFile *f, DType t, const void *from, Tensor *out) {
    size_t bytes = dtype_size(t);
    *out = tensor_of(t, 0, NULL, arena_alloc(f->arena, 1, bytes, TENSOR_ALIGN));
    memcpy(out->data, from, bytes);
    return ERR_OK;
}

static Err from_attr(OnnxFile *f, const Attr *a, Tensor *out) {
    switch (a->kind) {
    case ATTR_TENSOR: *out = *a->v.t; return ERR_OK;
    case ATTR_FLOAT: return scalar(f, DT_F32, &a->v.f, out);
    case ATTR_INT: return scalar(f, DT_I64, &a->v.i, out);
    case ATTR_STRING: return scalar(f, DT_STR, &a->v.s, out);
    case ATTR_FLOATS: *out = list_of(DT_F32, a->n, a->v.floats); return ERR_OK;
    case ATTR_INTS: *out = list_of(DT_I64, a->n, a->v.ints); return ERR_OK;
    case ATTR_STRINGS: *out = list_of(DT_STR, a->n, a->v.strings); return ERR_OK;
    default: return err_set(ERR_INVALID, "attribute '%s' is not a constant", a->name);
    }
}

static bool has_constant_kind(const Attr *a) {
    static const struct {
        const char *name;
        AttrKind    kind;
    } forms[] = {{"value", ATTR_TENSOR},         {"value_float", ATTR_FLOAT},
                 {"value_floats", ATTR_FLOATS},  {"value_int", ATTR_INT},
                 {"value_ints", ATTR_INTS},      {"value_string", ATTR_STRING},
                 {"value_strings", ATTR_STRINGS}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, a->name) == 0) return forms[i].kind == a->kind;
    return false;
}

static Err read_constant(OnnxFile *f, const Onnx__NodeProto *p, Tensor *out) {
    if (p->n_input != 0 || p->n_output != 1 || p->n_attribute != 1)
        return err_set(ERR_INVALID, "needs no input, one output and one attribute");
    const Onnx__AttributeProto *a = p->attribute[0];
    if (a->sparse_tensor != NULL && a->name != NULL && strcmp(a->name, "sparse_value") == 0)
        return onnx_read_sparse(&f->store, a->sparse_tensor, out);
    if (a->g != NULL) return err_set(ERR_INVALID, "a graph is not a constant");
    Attr attr;
    TRY(read_attr(f, NULL, a, NULL, &attr));
    if (!has_constant_kind(&attr))
        return err_set(ERR_INVALID, "attribute '%s' of kind %d is not a constant", attr.name,
                       attr.kind);
    return from_attr(f, &attr, out);
}

enum { OPSET_NEWEST = 25, ATTRS_MAX = 256 };

static bool is_default(const char *domain) {
    return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

int64_t onnx_scope_version(const OnnxScope *s, const char *domain) {
    for (size_t i = 0; i < s->n_imports; i++) {
        const char *d = onnx_text(s->imports[i]->domain);
        if (strcmp(d, domain) == 0 || (is_default(d) && is_default(domain)))
            return s->imports[i]->version;
    }
    return 0;
}

// A name is defined once per graph, by an initializer, an input or a node.
static Err define(Graph *g, const char *name, const char *what, uint32_t *v) {
    if (name[0] == '\0') return err_set(ERR_INVALID, "%s has no name", what);
    if (graph_find(g, name) != NO_VALUE)
        return err_set(ERR_INVALID, "%s '%s': the name is already defined", what, name);
    *v = graph_value(g, name);
    return ERR_OK;
}

static Err read_initializers(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    uint32_t v = NO_VALUE;
    Tensor   t;
    for (size_t i = 0; i < p->n_initializer; i++) {
        const char *name = onnx_text(p->initializer[i]->name);
        TRY(define(g, name, "initializer", &v));
        TRY(onnx_read_tensor(&f->store, p->initializer[i], &t));
        graph_const(g, name, t, NULL);
    }
    for (size_t i = 0; i < p->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = p->sparse_initializer[i];
        const char *name = sparse->values != NULL ? onnx_text(sparse->values->name) : "";
        TRY(define(g, name, "sparse initializer", &v));
        TRY(onnx_read_sparse(&f->store, sparse, &t));
        graph_const(g, name, t, NULL);
    }
    return ERR_OK;
}

// Old files list initializers among the inputs too: those are constants.
static Err read_inputs(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = onnx_text(p->input[i]->name);
        uint32_t    v = graph_find(g, name);
        if (v != NO_VALUE && g->values[v].constant) continue;
        TRY(define(g, name, "input", &v));
        Err e = p->input[i]->type != NULL
                    ? onnx_read_type(f->arena, p->input[i]->type, &g->values[v])
                    : ERR_OK;
        if (e != ERR_OK) return err_add(e, "input '%s'", name);
        graph_input(g, v);
    }
    return ERR_OK;
}

static bool is_constant(const Onnx__NodeProto *p) {
    return strcmp(onnx_text(p->op_type), "Constant") == 0 && is_default(onnx_text(p->domain));
}

static Err name_node(Err e, const OnnxNode *n) {
    if (e == ERR_OK) return e;
    return err_add(e, "node '%s' (index %zu, %s)", onnx_text(n->p->name), n->index,
                   onnx_text(n->p->op_type));
}

static Err define_outputs(OnnxFile *f, const Onnx__NodeProto *p, Graph *g) {
    uint32_t v = NO_VALUE;
    for (size_t i = 0; i < p->n_output; i++)
        if (p->output[i][0] != '\0') TRY(define(g, p->output[i], "output", &v));
    if (!is_constant(p)) return ERR_OK;
    Tensor t;
    TRY(read_constant(f, p, &t));
    if (p->output[0][0] != '\0') graph_const(g, p->output[0], t, NULL);
    return ERR_OK;
}

// value_info: declared types of intermediate values; unsupported ones stay undeclared.
static void read_value_info(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    for (size_t i = 0; i < p->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = p->value_info[i];
        uint32_t                    v = graph_find(g, onnx_text(info->name));
        if (v == NO_VALUE || info->type == NULL) continue;
        if (g->values[v].constant || g->values[v].given) continue;
        if (g->values[v].type.dtype != DT_NONE) continue;
        Err e = onnx_read_type(f->arena, info->type, &g->values[v]);
        (void)e;
    }
}

static Err find_op(OnnxFile *f, const OnnxScope *s, const Onnx__NodeProto *p, Node *n) {
    const char *domain = onnx_text(p->domain), *name = onnx_text(p->op_type);
    uint32_t    op = is_default(domain) ? string_map_get(&f->ops, name) : STRING_MAP_NONE;
    if (op == STRING_MAP_NONE) op = op_find(domain, name);
    if (op == OP_COUNT)
        return err_set(ERR_UNSUPPORTED, "operator %s of domain '%s' is not supported", name,
                       domain);
    if (is_default(domain)) string_map_put(&f->ops, op_info((OpId)op)->name, op);
    int64_t version = onnx_scope_version(s, domain);
    if (version <= 0)
        return err_set(ERR_INVALID, "the file imports no operator set for domain '%s'", domain);
    if (version > OPSET_NEWEST)
        return err_set(ERR_UNSUPPORTED,
                       "operator set %" PRId64 " of domain '%s' is not supported; export the "
                       "model with %d or older",
                       version, domain, OPSET_NEWEST);
    if (version < op_info((OpId)op)->since)
        return err_set(ERR_INVALID, "operator set %" PRId64 " has no %s; it was added in %u",
                       version, name, op_info((OpId)op)->since);
    n->op = (OpId)op;
    n->version = (int32_t)version;
    return ERR_OK;
}

static uint32_t resolve(Graph *g, const char *name) {
    uint32_t v = graph_find(g, name);
    return v != NO_VALUE ? v : graph_capture(g, name);
}

static Err read_edges(OnnxFile *f, const Onnx__NodeProto *p, Graph *g, Node *n) {
    uint32_t *in = arena_new(f->arena, uint32_t, p->n_input);
    uint32_t *out = arena_new(f->arena, uint32_t, p->n_output);
    for (size_t i = 0; i < p->n_input; i++) {
        in[i] = p->input[i][0] != '\0' ? resolve(g, p->input[i]) : NO_VALUE;
        if (in[i] == NO_VALUE && p->input[i][0] != '\0')
            return err_set(ERR_INVALID, "reads '%s', which nothing produces", p->input[i]);
    }
    for (size_t i = 0; i < p->n_output; i++)
        out[i] = p->output[i][0] != '\0' ? graph_find(g, p->output[i]) : NO_VALUE;
    n->in = in;
    n->out = out;
    n->n_in = (uint32_t)p->n_input;
    n->n_out = (uint32_t)p->n_output;
    return ERR_OK;
}

static Err read_attrs(OnnxFile *f, const OnnxScope *s, const Onnx__NodeProto *p, Graph *g,
                      Node *n) {
    if (p->n_attribute > ATTRS_MAX)
        return err_set(ERR_LIMIT, "has more than %d attributes", ATTRS_MAX);
    Attr *attrs = arena_new(f->arena, Attr, p->n_attribute);
    for (size_t i = 0; i < p->n_attribute; i++) {
        TRY(read_attr(f, s, p->attribute[i], g, &attrs[i]));
        for (size_t k = 0; k < i; k++)
            if (strcmp(attrs[k].name, attrs[i].name) == 0)
                return err_set(ERR_INVALID, "has attribute '%s' twice", attrs[i].name);
    }
    n->attrs = attrs;
    n->n_attr = (uint32_t)p->n_attribute;
    return ERR_OK;
}

static Err read_node(OnnxFile *f, const OnnxNode *item, Graph *g) {
    const Onnx__NodeProto *p = item->p;
    if (is_constant(p)) return ERR_OK;
    Node n = {.name = onnx_text(p->name)};
    if (n.name[0] == '\0')
        n.name = arena_printf(f->arena, "%s_%zu", onnx_text(p->op_type), item->index);
    TRY(find_op(f, item->scope, p, &n));
    TRY(read_edges(f, p, g, &n));
    TRY(read_attrs(f, item->scope, p, g, &n));
    TRY(op_check(&n));
    graph_node(g, n);
    return ERR_OK;
}

static Err read_outputs(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    for (size_t i = 0; i < p->n_output; i++) {
        const Onnx__ValueInfoProto *info = p->output[i];
        uint32_t                    v = resolve(g, onnx_text(info->name));
        if (v == NO_VALUE)
            return err_set(ERR_INVALID, "nothing produces output '%s'", onnx_text(info->name));
        graph_output(g, v);
        if (info->type == NULL || g->values[v].constant || g->values[v].type.dtype != DT_NONE)
            continue;
        Err e = onnx_read_type(f->arena, info->type, &g->values[v]);
        if (e != ERR_OK) return err_add(e, "output '%s'", onnx_text(info->name));
    }
    return ERR_OK;
}

Err onnx_read_graph(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p, Graph *g) {
    OnnxNodes nodes = {0};
    TRY(onnx_function_expand(f, s, p, &nodes));
    TRY(read_initializers(f, p, g));
    TRY(read_inputs(f, p, g));
    for (size_t i = 0; i < nodes.n; i++) {
        const OnnxNode *n = &nodes.at[i];
        TRY(name_node(define_outputs(f, n->p, g), n));
    }
    for (size_t i = 0; i < nodes.n; i++) {
        const OnnxNode *n = &nodes.at[i];
        TRY(name_node(read_node(f, n, g), n));
    }
    TRY(read_outputs(f, p, g));
    read_value_info(f, p, g);
    return graph_sort(g);
}

#include "model/onnx_graph.h"

#include <inttypes.h>
#include <string.h>

#include "model/onnx_constant.h"
#include "model/onnx_function.h"
#include "model/onnx_type.h"
#include "onnx.pb-c.h"

enum { OPSET_NEWEST = 25, ATTRS_MAX = 256 };

static const char *text(const char *s) { return s != NULL ? s : ""; }

static bool is_default(const char *domain) {
    return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

int64_t onnx_scope_version(const OnnxScope *s, const char *domain) {
    for (size_t i = 0; i < s->n_imports; i++) {
        const char *d = text(s->imports[i]->domain);
        if (strcmp(d, domain) == 0 || (is_default(d) && is_default(domain)))
            return s->imports[i]->version;
    }
    return 0;
}

// Every name has one origin. A second one is refused, whoever it belongs to.
static Err define(Graph *g, const char *name, const char *what, uint32_t *v) {
    if (name[0] == '\0') return err_set(ERR_INVALID, "%s has no name", what);
    if (graph_find(g, name) != NO_VALUE)
        return err_set(ERR_INVALID, "%s '%s': the name is taken already", what, name);
    *v = graph_value(g, name);
    return ERR_OK;
}

static Err read_initializers(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    uint32_t v = NO_VALUE;
    Tensor   t;
    for (size_t i = 0; i < p->n_initializer; i++) {
        const char *name = text(p->initializer[i]->name);
        TRY(define(g, name, "initializer", &v));
        TRY(onnx_tensor(&f->store, p->initializer[i], &t));
        graph_const(g, name, t, NULL);
    }
    for (size_t i = 0; i < p->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = p->sparse_initializer[i];
        const char *name = sparse->values != NULL ? text(sparse->values->name) : "";
        TRY(define(g, name, "sparse initializer", &v));
        TRY(onnx_tensor_sparse(&f->store, sparse, &t));
        graph_const(g, name, t, NULL);
    }
    return ERR_OK;
}

// Old files list initializers among the inputs: those are constants, not inputs.
static Err read_inputs(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = text(p->input[i]->name);
        uint32_t    v = graph_find(g, name);
        if (v != NO_VALUE && g->values[v].constant) continue;
        TRY(define(g, name, "input", &v));
        Err e = p->input[i]->type != NULL ? onnx_type(f->arena, p->input[i]->type, &g->values[v])
                                          : ERR_OK;
        if (e != ERR_OK) return err_add(e, "input '%s'", name);
        graph_input(g, v);
    }
    return ERR_OK;
}

static bool is_constant(const Onnx__NodeProto *p) {
    return strcmp(text(p->op_type), "Constant") == 0 && is_default(text(p->domain));
}

static Err in_node(Err e, const OnnxNode *n) {
    if (e == ERR_OK) return e;
    return err_add(e, "node '%s' (index %zu, %s)", text(n->p->name), n->index, text(n->p->op_type));
}

static Err define_outputs(OnnxFile *f, const Onnx__NodeProto *p, Graph *g) {
    uint32_t v = NO_VALUE;
    for (size_t i = 0; i < p->n_output; i++)
        if (p->output[i][0] != '\0') TRY(define(g, p->output[i], "output", &v));
    if (!is_constant(p)) return ERR_OK;
    Tensor t;
    TRY(onnx_constant(f, p, &t));
    if (p->output[0][0] != '\0') graph_const(g, p->output[0], t, NULL);
    return ERR_OK;
}

// What the file says about values in the middle; what cannot be represented is left open.
static void read_value_info(OnnxFile *f, const Onnx__GraphProto *p, Graph *g) {
    for (size_t i = 0; i < p->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = p->value_info[i];
        uint32_t                    v = graph_find(g, text(info->name));
        if (v == NO_VALUE || info->type == NULL) continue;
        if (g->values[v].constant || g->values[v].given) continue;
        if (g->values[v].type.dtype != DT_NONE) continue;
        Err e = onnx_type(f->arena, info->type, &g->values[v]);
        (void)e;
    }
}

static Err find_op(OnnxFile *f, const OnnxScope *s, const Onnx__NodeProto *p, Node *n) {
    const char *domain = text(p->domain), *name = text(p->op_type);
    uint32_t    op = is_default(domain) ? map_get(&f->ops, name) : MAP_NONE;
    if (op == MAP_NONE) op = op_find(domain, name);
    if (op == OP_COUNT)
        return err_set(ERR_UNSUPPORTED, "operator %s of domain '%s' is not supported", name,
                       domain);
    if (is_default(domain)) map_put(&f->ops, op_info((OpId)op)->name, op);
    int64_t version = onnx_scope_version(s, domain);
    if (version <= 0)
        return err_set(ERR_INVALID, "the file imports no operator set for domain '%s'", domain);
    if (version > OPSET_NEWEST)
        return err_set(ERR_UNSUPPORTED,
                       "operator set %" PRId64 " of domain '%s' is not known; export the model "
                       "with %d or older",
                       version, domain, OPSET_NEWEST);
    if (version < op_info((OpId)op)->since)
        return err_set(ERR_INVALID, "operator set %" PRId64 " has no %s, it came with %u", version,
                       name, op_info((OpId)op)->since);
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
        TRY(onnx_attr(f, s, p->attribute[i], g, &attrs[i]));
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
    Node n = {.name = text(p->name)};
    if (n.name[0] == '\0') n.name = arena_printf(f->arena, "%s_%zu", text(p->op_type), item->index);
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
        uint32_t                    v = resolve(g, text(info->name));
        if (v == NO_VALUE)
            return err_set(ERR_INVALID, "output '%s' is produced by nothing", text(info->name));
        graph_output(g, v);
        if (info->type == NULL || g->values[v].constant || g->values[v].type.dtype != DT_NONE)
            continue;
        Err e = onnx_type(f->arena, info->type, &g->values[v]);
        if (e != ERR_OK) return err_add(e, "output '%s'", text(info->name));
    }
    return ERR_OK;
}

Err onnx_graph(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p, Graph *g) {
    OnnxNodes nodes = {0};
    TRY(onnx_function_expand(f, s, p, &nodes));
    TRY(read_initializers(f, p, g));
    TRY(read_inputs(f, p, g));
    for (size_t i = 0; i < nodes.n; i++) {
        const OnnxNode *n = &nodes.at[i];
        TRY(in_node(define_outputs(f, n->p, g), n));
    }
    for (size_t i = 0; i < nodes.n; i++) {
        const OnnxNode *n = &nodes.at[i];
        TRY(in_node(read_node(f, n, g), n));
    }
    TRY(read_outputs(f, p, g));
    read_value_info(f, p, g);
    return graph_sort(g);
}

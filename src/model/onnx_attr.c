#include <string.h>

#include "model/onnx_graph.h"
#include "model/onnx_type.h"
#include "onnx.pb-c.h"

enum { GRAPHS_NESTED_MAX = 24 };

static const char *text(const char *s) { return s != NULL ? s : ""; }

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
    return onnx_tensor(&f->store, p->t, t);
}

static Err read_type(OnnxFile *f, const Onnx__AttributeProto *p, Attr *out) {
    if (p->tp == NULL) return err_set(ERR_INVALID, "has no type");
    Value v = {0};
    TRY(onnx_type(f->arena, p->tp, &v));
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
    out->v.g = graph_create(f->arena, g, text(p->g->name));
    return onnx_graph(f, s, p->g, out->v.g);
}

// Every kind that the message holds a value of, one bit each.
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

// The declared kind; very old files declare none, then the one kind that is there.
static Err find_kind(const Onnx__AttributeProto *p, int *kind) {
    uint32_t there = kinds_present(p);
    *kind = p->has_type ? (int)p->type : 0;
    if (*kind == 0 && there != 0) *kind = __builtin_ctz(there);
    if (*kind < 1 || *kind > 31) return err_set(ERR_INVALID, "has no kind we know (%d)", *kind);
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

Err onnx_attr(OnnxFile *f, const OnnxScope *s, const Onnx__AttributeProto *p, Graph *g, Attr *out) {
    *out = (Attr){.name = text(p->name)};
    if (out->name[0] == '\0') return err_set(ERR_INVALID, "an attribute has no name");
    Err e = p->ref_attr_name != NULL && p->ref_attr_name[0] != '\0'
                ? err_set(ERR_INVALID, "refers to '%s' outside of a function", p->ref_attr_name)
                : read_value(f, s, p, g, out);
    return e == ERR_OK ? e : err_add(e, "attribute '%s'", out->name);
}

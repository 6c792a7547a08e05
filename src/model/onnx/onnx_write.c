// Writes a model as ONNX: protobuf fields, then tensors and types, then nodes, graphs and the
// model.
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "model/onnx/onnx.h"
#include "model/onnx/onnx_wire.h"

// Protobuf fields into a stream, or counted only: a message is preceded by its size.
typedef struct Emit {
    FILE    *out;  // NULL: count only
    uint64_t n;    // bytes so far
} Emit;

typedef void EmitBody(Emit *e, const void *self);  // emits the same bytes every time

static void emit_raw(Emit *e, const void *at, size_t n) {
    e->n += n;
    if (e->out != NULL && n > 0)
        (void)fwrite(at, 1, n, e->out);  // file_commit reports the error of the stream
}

static void varint(Emit *e, uint64_t v) {
    uint8_t bytes[10];
    size_t  n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    emit_raw(e, bytes, n);
}

static void tag(Emit *e, uint32_t field, ProtoWireType type) {
    varint(e, field << 3 | (uint32_t)type);
}

static void emit_int(Emit *e, uint32_t field, int64_t v) {
    tag(e, field, PROTO_VARINT);
    varint(e, (uint64_t)v);
}

static void emit_float(Emit *e, uint32_t field, float v) {
    tag(e, field, PROTO_32);
    emit_raw(e, &v, sizeof v);
}

// The tag and length of a field; the caller emits its n bytes next.
static void emit_head(Emit *e, uint32_t field, uint64_t n) {
    tag(e, field, PROTO_BYTES);
    varint(e, n);
}

static void emit_bytes(Emit *e, uint32_t field, const void *at, size_t n) {
    emit_head(e, field, n);
    emit_raw(e, at, n);
}

static void emit_text(Emit *e, uint32_t field, const char *s) {
    emit_bytes(e, field, s, strlen(s));
}

static void emit_message(Emit *e, uint32_t field, EmitBody *body, const void *self) {
    Emit count = {0};
    body(&count, self);
    emit_head(e, field, count.n);
    if (e->out == NULL)
        e->n += count.n;
    else
        body(e, self);
}

enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_STRINGS = 6, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_OPTIONAL = 9, TYPE_ELEM = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2, INFO_NAME = 1, INFO_TYPE = 2 };

typedef struct EmitTensor {
    const char       *name;  // NULL: none
    const Tensor     *t;
    const RandomFill *fill;     // NULL: t has data
    Arena            *scratch;  // for the data of one fill
} EmitTensor;

static void emit_fill(Emit *e, const EmitTensor *x, size_t bytes) {
    if (e->out == NULL) {
        e->n += bytes;
        return;
    }
    size_t mark = x->scratch->used;
    void  *data = arena_alloc(x->scratch, 1, bytes, TENSOR_ALIGN);
    random_fill_make(x->fill, x->t, data);
    emit_raw(e, data, bytes);
    arena_rewind(x->scratch, mark);
}

static void emit_strings(Emit *e, const Tensor *t) {
    const Str *s = t->data;
    int64_t    n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) emit_bytes(e, TENSOR_STRINGS, s[i].at, s[i].len);
}

static void emit_tensor(Emit *e, const void *self) {
    const EmitTensor *x = self;
    size_t            bytes = 0;
    CHECK(tensor_measure(x->t, &bytes) == ERR_OK);
    for (int32_t i = 0; i < x->t->rank; i++) emit_int(e, TENSOR_DIMS, x->t->dims[i]);
    emit_int(e, TENSOR_TYPE, x->t->dtype);
    if (x->t->dtype == DT_STR) emit_strings(e, x->t);
    if (x->name != NULL) emit_text(e, TENSOR_NAME, x->name);
    if (x->t->dtype == DT_STR) return;
    emit_head(e, TENSOR_RAW, bytes);
    if (x->t->data != NULL)
        emit_raw(e, x->t->data, bytes);
    else
        emit_fill(e, x, bytes);
}

typedef struct Dim {
    int64_t     value;
    const char *symbol;
} Dim;

static void emit_dim(Emit *e, const void *self) {
    const Dim *d = self;
    if (d->value >= 0)
        emit_int(e, DIM_VALUE, d->value);
    else if (d->symbol != NULL)
        emit_text(e, DIM_PARAM, d->symbol);
}

static void emit_shape(Emit *e, const void *self) {
    const Value *v = self;
    for (int32_t i = 0; i < v->type.rank; i++) {
        Dim d = {v->type.dims[i], v->symbols != NULL ? v->symbols[i] : NULL};
        emit_message(e, SHAPE_DIM, emit_dim, &d);
    }
}

static void emit_tensor_type(Emit *e, const void *self) {
    const Value *v = self;
    if (v->type.dtype != DT_NONE) emit_int(e, TYPE_ELEM, v->type.dtype);
    if (v->type.rank >= 0) emit_message(e, TYPE_SHAPE, emit_shape, v);
}

static EmitBody emit_type;

static void emit_nested_type(Emit *e, const void *self) {
    const Value *v = self;
    if (v->elem == NULL) return;
    Value inner = {.type = *v->elem, .elem = v->elem->data};
    emit_message(e, TYPE_ELEM, emit_type, &inner);
}

static void emit_type(Emit *e, const void *self) {
    const Value *v = self;
    if (v->type.dtype == DT_SEQ)
        emit_message(e, TYPE_SEQUENCE, emit_nested_type, v);
    else if (v->type.dtype == DT_OPT)
        emit_message(e, TYPE_OPTIONAL, emit_nested_type, v);
    else if (v->type.dtype != DT_NONE || v->type.rank >= 0)
        emit_message(e, TYPE_TENSOR, emit_tensor_type, v);
}

static void emit_info(Emit *e, const void *self) {
    const Value *v = self;
    emit_text(e, INFO_NAME, v->name);
    if (v->type.dtype != DT_NONE || v->type.rank >= 0) emit_message(e, INFO_TYPE, emit_type, v);
}

enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_IMPORT = 8 };
enum { IMPORT_DOMAIN = 1, IMPORT_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_CONST = 5, GRAPH_IN = 11, GRAPH_OUT, GRAPH_INFO };
enum { NODE_IN = 1, NODE_OUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7 };
enum { ATTR_FIELD_NAME = 1, ATTR_FIELD_TP = 14, ATTR_FIELD_KIND = 20 };
enum { IR_VERSION = 8, OPSET_DEFAULT = 17, IMPORTS_MAX = 16, FILE_BYTES_MAX = INT32_MAX };

typedef struct Import {
    const char *domain;
    int32_t     version;
} Import;

typedef struct Writer {
    const Model *m;
    Arena        scratch;
    Import       imports[IMPORTS_MAX];
    uint32_t     n_imports;
} Writer;

// The graph, node or attribute to emit; each level sets the fields it needs.
typedef struct EmitPart {
    Writer      *w;
    const Graph *g;
    const Node  *n;
    const Attr  *a;
} EmitPart;

static Err add_import(Writer *w, const char *domain, int32_t version) {
    for (uint32_t i = 0; i < w->n_imports; i++) {
        if (strcmp(w->imports[i].domain, domain) != 0) continue;
        if (w->imports[i].version == version) return ERR_OK;
        return err_set(ERR_UNSUPPORTED, "uses versions %d and %d of operator set '%s'",
                       w->imports[i].version, version, domain);
    }
    CHECK(w->n_imports < IMPORTS_MAX);
    w->imports[w->n_imports++] = (Import){domain, version};
    return ERR_OK;
}

static Err check_values(const Graph *g) {
    for (uint32_t i = 0; i < g->n_values; i++) {
        const Value *v = &g->values[i];
        size_t       bytes = 0;
        if (!v->constant) continue;
        if (v->type.dtype == DT_SEQ || v->type.dtype == DT_OPT)
            return err_set(ERR_UNSUPPORTED, "constant '%s' is not a tensor", v->name);
        Err e = tensor_measure(&v->type, &bytes);
        if (e != ERR_OK) return err_add(e, "constant '%s'", v->name);
    }
    return ERR_OK;
}

// Everything that can fail is checked before the first byte is written.
static Err check_graph(Writer *w, const Graph *g) {
    TRY(check_values(g));
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        Err         e = add_import(w, op_info(n->op)->domain, n->version);
        for (uint32_t k = 0; k < n->n_attr && e == ERR_OK; k++)
            if (n->attrs[k].kind == ATTR_GRAPH) e = check_graph(w, n->attrs[k].v.g);
        if (e != ERR_OK) return op_failed(n, e);
    }
    return ERR_OK;
}

static EmitBody emit_graph;

static void emit_type_attr(Emit *e, const Attr *a) {
    Value v = {.type = *a->v.t, .elem = a->v.t->data};
    emit_message(e, ATTR_FIELD_TP, emit_type, &v);
}

// The field number of a value is its AttributeType plus 1, except for types.
static void emit_attr(Emit *e, const void *self) {
    const EmitPart *p = self;
    const Attr     *a = p->a;
    uint32_t        field = (uint32_t)a->kind + 1;
    emit_text(e, ATTR_FIELD_NAME, a->name);
    switch (a->kind) {
    case ATTR_FLOAT: emit_float(e, field, a->v.f); break;
    case ATTR_INT: emit_int(e, field, a->v.i); break;
    case ATTR_STRING: emit_bytes(e, field, a->v.s.at, a->v.s.len); break;
    case ATTR_TENSOR: emit_message(e, field, emit_tensor, &(EmitTensor){.t = a->v.t}); break;
    case ATTR_GRAPH: emit_message(e, field, emit_graph, &(EmitPart){.w = p->w, .g = a->v.g}); break;
    case ATTR_TYPE: emit_type_attr(e, a); break;
    case ATTR_FLOATS:
        for (uint32_t i = 0; i < a->n; i++) emit_float(e, field, a->v.floats[i]);
        break;
    case ATTR_INTS:
        for (uint32_t i = 0; i < a->n; i++) emit_int(e, field, a->v.ints[i]);
        break;
    case ATTR_STRINGS:
        for (uint32_t i = 0; i < a->n; i++)
            emit_bytes(e, field, a->v.strings[i].at, a->v.strings[i].len);
        break;
    }
    emit_int(e, ATTR_FIELD_KIND, a->kind);
}

static const char *name_of(const Graph *g, uint32_t v) {
    return v != NO_VALUE ? g->values[v].name : "";
}

static void emit_node(Emit *e, const void *self) {
    const EmitPart *p = self;
    const Node     *n = p->n;
    for (uint32_t i = 0; i < n->n_in; i++) emit_text(e, NODE_IN, name_of(p->g, n->in[i]));
    for (uint32_t i = 0; i < n->n_out; i++) emit_text(e, NODE_OUT, name_of(p->g, n->out[i]));
    emit_text(e, NODE_NAME, n->name);
    emit_text(e, NODE_OP, op_info(n->op)->name);
    for (uint32_t i = 0; i < n->n_attr; i++)
        emit_message(e, NODE_ATTR, emit_attr, &(EmitPart){.w = p->w, .a = &n->attrs[i]});
    if (op_info(n->op)->domain[0] != '\0') emit_text(e, NODE_DOMAIN, op_info(n->op)->domain);
}

static void emit_consts(Emit *e, Writer *w, const Graph *g) {
    for (uint32_t i = 0; i < g->n_values; i++) {
        const Value *v = &g->values[i];
        if (!v->constant) continue;
        EmitTensor t = {v->name, &v->type, v->fill, &w->scratch};
        emit_message(e, GRAPH_CONST, emit_tensor, &t);
    }
}

// value_info: the types of intermediate values; inputs and outputs carry theirs.
static void emit_value_infos(Emit *e, Writer *w, const Graph *g) {
    size_t mark = w->scratch.used;
    bool  *emitted = arena_new(&w->scratch, bool, g->n_values);
    for (uint32_t i = 0; i < g->n_outputs; i++) emitted[g->outputs[i]] = true;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const Value *v = &g->values[i];
        bool         known = v->type.dtype != DT_NONE || v->type.rank >= 0;
        if (!known || emitted[i] || v->constant || v->producer == NO_NODE) continue;
        emit_message(e, GRAPH_INFO, emit_info, v);
    }
    arena_rewind(&w->scratch, mark);
}

static void emit_graph(Emit *e, const void *self) {
    const EmitPart *p = self;
    const Graph    *g = p->g;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        emit_message(e, GRAPH_NODE, emit_node, &(EmitPart){.w = p->w, .g = g, .n = &g->nodes[i]});
    emit_text(e, GRAPH_NAME, g->name[0] != '\0' ? g->name : "graph");
    emit_consts(e, p->w, g);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        emit_message(e, GRAPH_IN, emit_info, &g->values[g->inputs[i]]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        emit_message(e, GRAPH_OUT, emit_info, &g->values[g->outputs[i]]);
    emit_value_infos(e, p->w, g);
}

static void emit_import(Emit *e, const void *self) {
    const Import *i = self;
    emit_text(e, IMPORT_DOMAIN, i->domain);
    emit_int(e, IMPORT_VERSION, i->version);
}

static void emit_model(Emit *e, const void *self) {
    const EmitPart *p = self;
    const Writer   *w = p->w;
    bool            named = w->m->producer != NULL && w->m->producer[0] != '\0';
    emit_int(e, MODEL_IR, IR_VERSION);
    emit_text(e, MODEL_PRODUCER, named ? w->m->producer : "cotenant");
    emit_message(e, MODEL_GRAPH, emit_graph, p);
    for (uint32_t i = 0; i < w->n_imports; i++)
        emit_message(e, MODEL_IMPORT, emit_import, &w->imports[i]);
}

static Err measure(Writer *w, const EmitPart *part) {
    Emit e = {0};
    TRY(check_graph(w, w->m->graph));
    if (w->m->opset > 0) TRY(add_import(w, "", w->m->opset));
    if (w->n_imports == 0) TRY(add_import(w, "", OPSET_DEFAULT));
    emit_model(&e, part);
    if (e.n <= FILE_BYTES_MAX) return ERR_OK;
    return err_set(ERR_LIMIT, "the model needs %ju bytes; an ONNX file holds at most 2 GiB",
                   (uintmax_t)e.n);
}

static Err write_file(Writer *w, const char *path) {
    EmitPart   part = {.w = w, .g = w->m->graph};
    AtomicFile f;
    Err        e = measure(w, &part);
    if (e != ERR_OK) return err_add(e, "cannot write %s", path);
    TRY(file_begin(&f, path));
    emit_model(&(Emit){.out = f.out}, &part);
    return file_commit(&f);
}

Err onnx_write(const Model *m, const char *path) {
    Writer w = {.m = m};
    TRY(arena_init(&w.scratch, (size_t)1 << 36));
    Err e = write_file(&w, path);
    arena_finish(&w.scratch);
    return e;
}

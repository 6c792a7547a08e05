// Reads an ONNX file: loads the bytes, checks and unpacks the message, builds the graph.
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/file.h"
#include "base/tensor.h"
#include "model/onnx/onnx.h"
#include "model/onnx/onnx_int.h"
#include "model/onnx/onnx_wire.h"
#include "onnx.pb-c.h"

// Memory per field and per byte of the wire format: small messages unpack to far more than their
// bytes, packed integers to at most eight times as much.
enum { BYTES_PER_FIELD = 112, BYTES_PER_BYTE = 8, BYTES_SPARE = 1 << 16 };

typedef struct Budget {
    Arena *arena;
    size_t left;
} Budget;

// Large blocks are weights, used in place, so they are aligned like tensors.
static void *budget_alloc(void *self, size_t n) {
    Budget *b = self;
    size_t  align = n >= TENSOR_ALIGN ? TENSOR_ALIGN : _Alignof(max_align_t);
    if (n > b->left) return NULL;
    b->left -= n;
    return arena_try(b->arena, 1, n, align);
}

static void budget_free(void *self, void *p) {
    (void)self;
    (void)p;
}

// Checks the bytes, then unpacks the message into the arena under a memory budget. The message
// borrows nothing from the bytes.
static Err unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n, Arena *a,
                  void **out) {
    size_t fields = 0;
    TRY(onnx_wire_check(type, bytes, n, &fields));
    Budget             b = {a, n * BYTES_PER_BYTE + fields * BYTES_PER_FIELD + BYTES_SPARE};
    ProtobufCAllocator alloc = {.alloc = budget_alloc, .free = budget_free, .allocator_data = &b};
    ProtobufCMessage  *m = protobuf_c_message_unpack(type, &alloc, n, bytes);
    if (m == NULL)
        return err_set(ERR_LIMIT, "%s needs more memory than a message of %zu bytes may use",
                       type->short_name, n);
    *out = m;
    return ERR_OK;
}

// SequenceProto and OptionalProto are in a schema that libonnx-dev does not install; their few
// fields are read from the wire format.

enum { FIELD_TENSOR = 3, FIELD_SEQUENCE = 5, FIELD_OPTIONAL = 7, NESTED_MAX = 8 };

static Err read_tensor(const void *bytes, size_t n, Arena *a, Tensor *out) {
    void *p = NULL;
    TRY(unpack(&onnx__tensor_proto__descriptor, bytes, n, a, &p));
    OnnxStore s = onnx_store(a, NULL);
    return onnx_read_tensor(&s, p, out);
}

static bool is_element(const ProtoField *f) {
    return f->type == PROTO_BYTES && (f->number == FIELD_TENSOR || f->number == FIELD_SEQUENCE ||
                                      f->number == FIELD_OPTIONAL);
}

static Err count_elements(const uint8_t *at, const uint8_t *end, int64_t *n) {
    const uint8_t *base = at;
    while (at < end) {
        ProtoField f;
        TRY(onnx_wire_next(base, &at, end, &f));
        if (is_element(&f)) ++*n;
    }
    return ERR_OK;
}

static Err read_nested(const uint8_t *at, const uint8_t *end, DType kind, int depth, Arena *a,
                       Tensor *out);

static Err read_element(const ProtoField *f, int depth, Arena *a, Tensor *out) {
    if (f->number == FIELD_TENSOR) return read_tensor(f->at, f->len, a, out);
    DType kind = f->number == FIELD_SEQUENCE ? DT_SEQ : DT_OPT;
    return read_nested(f->at, f->at + f->len, kind, depth + 1, a, out);
}

static Err read_nested(const uint8_t *at, const uint8_t *end, DType kind, int depth, Arena *a,
                       Tensor *out) {
    if (depth > NESTED_MAX) return err_set(ERR_LIMIT, "nested deeper than %d", NESTED_MAX);
    int64_t n = 0;
    TRY(count_elements(at, end, &n));
    if (kind == DT_OPT && n > 1) return err_set(ERR_INVALID, "an optional has %d values", (int)n);
    Tensor *elements = arena_try(a, (size_t)n, sizeof(Tensor), TENSOR_ALIGN);
    if (elements == NULL) return err_set(ERR_LIMIT, "out of memory for the elements");
    *out = tensor_of(kind, 1, &n, elements);
    const uint8_t *base = at;
    for (int64_t i = 0; at < end;) {
        ProtoField f;
        TRY(onnx_wire_next(base, &at, end, &f));
        if (is_element(&f)) TRY(read_element(&f, depth, a, &elements[i++]));
    }
    return ERR_OK;
}

Err onnx_parse_value(const void *bytes, size_t n, DType kind, Arena *a, Tensor *out) {
    const uint8_t *at = bytes;
    if (kind == DT_SEQ || kind == DT_OPT) return read_nested(at, at + n, kind, 1, a, out);
    return read_tensor(bytes, n, a, out);
}

enum { IMPORTS_MAX = 256 };
#define FILE_BYTES_MAX ((size_t)INT32_MAX)  // protobuf's own limit

// Loads the file into an arena of its own, which is freed once the message is unpacked.
static Err load(const char *path, Arena *a, char **bytes, size_t *n) {
    TRY(arena_init_growing(a, 1 << 20, FILE_BYTES_MAX + (1 << 20)));
    Err e = file_read(path, FILE_BYTES_MAX, a, bytes, n);
    if (e != ERR_OK) arena_finish(a);
    return e == ERR_LIMIT ? err_add(e, "store weights beyond 2 GiB as external data") : e;
}

static Err check_imports(const Onnx__ModelProto *p) {
    if (p->n_opset_import > IMPORTS_MAX)
        return err_set(ERR_LIMIT, "imports more than %d operator sets", IMPORTS_MAX);
    return ERR_OK;
}

static Err build(const Onnx__ModelProto *p, const OnnxPlace *place, Model *m) {
    if (p->graph == NULL) return err_set(ERR_PARSE, "has no graph; it is not an ONNX model");
    TRY(check_imports(p));
    // Before IR version 3 there was one operator set, which files do not name.
    static Onnx__OperatorSetIdProto first = {.version = 1};
    Onnx__OperatorSetIdProto       *implied[] = {&first};
    bool                            bare = p->n_opset_import == 0 && p->ir_version < 3;
    OnnxScope                       s = {.imports = bare ? implied : p->opset_import,
                                         .n_imports = bare ? 1 : p->n_opset_import};
    OnnxFile f = {.arena = &m->arena, .proto = p, .store = onnx_store(&m->arena, place)};
    string_map_init(&f.ops, &m->arena);
    TRY(onnx_function_list(&f));
    m->ir_version = p->ir_version;
    m->producer = p->producer_name != NULL ? p->producer_name : "";
    int64_t opset = onnx_scope_version(&s, "");
    m->opset = opset > 0 && opset <= INT32_MAX ? (int32_t)opset : 0;
    m->graph->name = p->graph->name != NULL ? p->graph->name : "";
    TRY(onnx_read_graph(&f, &s, p->graph, m->graph));
    m->external = f.store.external_used > 0;
    return ERR_OK;
}

Err onnx_read_bytes(const void *bytes, size_t n, const char *name, const OnnxPlace *place,
                    Model *m) {
    void *p = NULL;
    Err   e = model_init(m, name);
    if (e == ERR_OK) e = unpack(&onnx__model_proto__descriptor, bytes, n, &m->arena, &p);
    if (e == ERR_OK) e = build(p, place, m);
    if (e == ERR_OK) return e;
    e = err_add(e, "%s", name);
    model_finish(m);
    return e;
}

Err onnx_read(const char *path, Model *m) {
    Arena  a;
    char  *bytes = NULL;
    size_t n = 0;
    *m = (Model){0};
    TRY(load(path, &a, &bytes, &n));
    Err e = onnx_read_bytes(bytes, n, path, &(OnnxPlace){.path = path}, m);
    arena_finish(&a);
    return e;
}

Err onnx_read_value(const char *path, const Tensor *expect, Arena *a, Tensor *out) {
    Arena  file;
    char  *bytes = NULL;
    size_t n = 0;
    TRY(load(path, &file, &bytes, &n));
    Err e = onnx_parse_value(bytes, n, expect != NULL ? expect->dtype : DT_NONE, a, out);
    arena_finish(&file);
    return e == ERR_OK ? e : err_add(e, "%s", path);
}

#include "model/onnx_read.h"

#include <string.h>

#include "base/file.h"
#include "model/onnx_function.h"
#include "model/onnx_graph.h"
#include "model/onnx_proto.h"
#include "model/onnx_value.h"
#include "onnx.pb-c.h"

enum { IMPORTS_MAX = 256 };
#define FILE_BYTES_MAX ((size_t)INT32_MAX)  // protobuf's own limit

// The whole file in an arena of its own, so that it can be dropped once it is unpacked.
static Err load(const char *path, Arena *a, char **bytes, size_t *n) {
    TRY(arena_init(a, FILE_BYTES_MAX + (1 << 16)));
    Err e = file_read(path, FILE_BYTES_MAX, a, bytes, n);
    if (e != ERR_OK) arena_finish(a);
    return e == ERR_LIMIT ? err_add(e, "weights beyond 2 GiB belong into external data") : e;
}

static Err check_imports(const Onnx__ModelProto *p) {
    if (p->n_opset_import > IMPORTS_MAX)
        return err_set(ERR_LIMIT, "imports more than %d operator sets", IMPORTS_MAX);
    return ERR_OK;
}

static Err build(const Onnx__ModelProto *p, const char *dir, Model *m) {
    if (p->graph == NULL) return err_set(ERR_PARSE, "holds no graph; it is no ONNX model");
    TRY(check_imports(p));
    // Before IR 3 there was one operator set and no need to name it.
    static Onnx__OperatorSetIdProto first = {.version = 1};
    Onnx__OperatorSetIdProto       *implied[] = {&first};
    bool                            bare = p->n_opset_import == 0 && p->ir_version < 3;
    OnnxScope                       s = {.imports = bare ? implied : p->opset_import,
                                         .n_imports = bare ? 1 : p->n_opset_import};
    OnnxFile f = {.arena = &m->arena, .proto = p, .store = onnx_store(&m->arena, dir)};
    map_init(&f.ops, &m->arena);
    TRY(onnx_function_list(&f));
    m->ir_version = p->ir_version;
    m->producer = p->producer_name != NULL ? p->producer_name : "";
    int64_t opset = onnx_scope_version(&s, "");
    m->opset = opset > 0 && opset <= INT32_MAX ? (int32_t)opset : 0;
    m->graph->name = p->graph->name != NULL ? p->graph->name : "";
    TRY(onnx_graph(&f, &s, p->graph, m->graph));
    m->external = f.store.external_used > 0;
    return ERR_OK;
}

Err onnx_read_bytes(const void *bytes, size_t n, const char *name, const char *dir, Model *m) {
    void *p = NULL;
    Err   e = model_init(m, name);
    if (e == ERR_OK) e = onnx_unpack(&onnx__model_proto__descriptor, bytes, n, &m->arena, &p);
    if (e == ERR_OK) e = build(p, dir, m);
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
    const char *slash = strrchr(path, '/');
    char       *dir = arena_str(&a, slash == NULL ? "./" : path);
    if (slash != NULL) dir[slash - path + 1] = '\0';
    Err e = onnx_read_bytes(bytes, n, path, dir, m);
    arena_finish(&a);
    return e;
}

Err onnx_read_value(const char *path, const Tensor *expect, Arena *a, Tensor *out) {
    Arena  file;
    char  *bytes = NULL;
    size_t n = 0;
    TRY(load(path, &file, &bytes, &n));
    Err e = onnx_value(bytes, n, expect != NULL ? expect->dtype : DT_NONE, a, out);
    arena_finish(&file);
    return e == ERR_OK ? e : err_add(e, "%s", path);
}

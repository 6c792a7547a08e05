#include "model/net_builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "model/op.h"

enum { OPSET = 17 };

void net_init(NetBuilder *n, Graph *g, uint64_t seed) { *n = (NetBuilder){.g = g, .seed = {seed}}; }

void net_push_scope(NetBuilder *n, const char *fmt, ...) {
    size_t at = strlen(n->scope), room = sizeof n->scope - at;
    CHECK(n->depth < sizeof n->marks / sizeof *n->marks);
    n->marks[n->depth++] = at;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(n->scope + at, room, fmt, args);
    va_end(args);
    CHECK(len >= 0 && (size_t)len + 1 < room);
    n->scope[at + (size_t)len] = '.';
    n->scope[at + (size_t)len + 1] = '\0';
}

void net_pop_scope(NetBuilder *n) {
    CHECK(n->depth > 0);
    n->scope[n->marks[--n->depth]] = '\0';
}

static const char *unique_name(NetBuilder *n, const char *name) {
    const char *full = arena_printf(n->g->arena, "%s%s", n->scope, name);
    for (int i = 1; graph_find(n->g, full) != NO_VALUE; i++)
        full = arena_printf(n->g->arena, "%s%s_%d", n->scope, name, i);
    return full;
}

// "layer1.0.conv1" becomes "/layer1/0/conv1", as PyTorch's exporter names nodes.
static const char *node_name(NetBuilder *n, const char *value) {
    char *path = arena_printf(n->g->arena, "/%s", value);
    for (char *c = path; *c != '\0'; c++)
        if (*c == '.') *c = '/';
    return path;
}

static void set_stat(NetBuilder *n, uint32_t x, NetStat s) {
    if (x >= n->cap) {
        uint32_t more = 2 * x + 64;
        NetStat *now = arena_new(n->g->arena, NetStat, more);
        if (n->cap > 0) memcpy(now, n->stats, n->cap * sizeof *now);
        n->stats = now;
        n->cap = more;
    }
    n->stats[x] = s;
}

void net_set_expected(NetBuilder *n, uint32_t x, double mean, double square) {
    set_stat(n, x, (NetStat){(float)mean, (float)square});
}

int64_t net_dim(const NetBuilder *n, uint32_t x, int32_t axis) {
    const Tensor *t = &n->g->values[x].type;
    return t->dims[axis < 0 ? axis + t->rank : axis];
}

uint32_t net_input(NetBuilder *n, const char *name, DType t, int32_t rank, const int64_t *dims) {
    uint32_t v = graph_value(n->g, name);
    n->g->values[v].type = tensor_of(t, rank, dims, NULL);
    graph_input(n->g, v);
    set_stat(n, v, (NetStat){0, 1});
    return v;
}

void net_output(NetBuilder *n, uint32_t x, const char *name) {
    CHECK(graph_find(n->g, name) == NO_VALUE);
    n->g->values[x].name = name;
    string_map_put(&n->g->names, name, x);
    graph_output(n->g, x);
}

uint32_t net_weight(NetBuilder *n, const char *name, int32_t rank, const int64_t *dims, double mean,
                    double spread) {
    const char *full = arena_printf(n->g->arena, "%s%s", n->scope, name);
    CHECK(graph_find(n->g, full) == NO_VALUE);
    RandomFill *f = arena_new(n->g->arena, RandomFill, 1);
    *f = (RandomFill){(float)mean, (float)spread,
                      rng_fork(n->seed, hash_fnv(HASH_FNV_START, full, strlen(full)))};
    uint32_t v = graph_const(n->g, full, tensor_of(DT_F32, rank, dims, NULL), f);
    net_set_expected(n, v, mean, mean * mean + spread * spread / 3);
    return v;
}

uint32_t net_const_ints(NetBuilder *n, const char *name, const int64_t *values, int64_t count) {
    int64_t *data = arena_alloc(n->g->arena, (size_t)count, sizeof *data, TENSOR_ALIGN);
    memcpy(data, values, (size_t)count * sizeof *data);
    Tensor t = tensor_of(DT_I64, 1, &count, data);
    return graph_const(n->g, unique_name(n, name), t, NULL);
}

uint32_t net_const_scalar(NetBuilder *n, float value) {
    const char *name = arena_printf(n->g->arena, "scalar.%g", (double)value);
    uint32_t    old = graph_find(n->g, name);
    if (old != NO_VALUE) return old;
    float *data = arena_alloc(n->g->arena, 1, sizeof *data, TENSOR_ALIGN);
    *data = value;
    uint32_t v = graph_const(n->g, name, tensor_of(DT_F32, 0, NULL, data), NULL);
    set_stat(n, v, (NetStat){value, value * value});
    return v;
}

uint32_t net_const(NetBuilder *n, const char *name, Tensor t) {
    size_t bytes = (size_t)tensor_count(&t) * dtype_size(t.dtype);
    void  *data = arena_alloc(n->g->arena, 1, bytes, TENSOR_ALIGN);
    memcpy(data, t.data, bytes);
    t.data = data;
    uint32_t v = graph_const(n->g, unique_name(n, name), t, NULL);
    set_stat(n, v, (NetStat){0, 1});
    return v;
}

Attr net_attr_int(const char *name, int64_t value) {
    return (Attr){.name = name, .kind = ATTR_INT, .v.i = value};
}

Attr net_attr_float(const char *name, float value) {
    return (Attr){.name = name, .kind = ATTR_FLOAT, .v.f = value};
}

Attr net_attr_str(const char *name, const char *value) {
    return (Attr){.name = name, .kind = ATTR_STRING, .v.s = {value, strlen(value)}};
}

Attr net_attr_ints(const char *name, const int64_t *values, uint32_t count) {
    return (Attr){.name = name, .kind = ATTR_INTS, .n = count, .v.ints = values};
}

static const void *copied(Arena *a, const void *from, size_t count, size_t size) {
    void *to = arena_alloc(a, count, size, _Alignof(max_align_t));
    if (count > 0) memcpy(to, from, count * size);
    return to;
}

static const Attr *copied_attrs(Arena *a, const Attr *attrs, uint32_t count) {
    Attr *to = arena_new(a, Attr, count);
    for (uint32_t i = 0; i < count; i++) {
        to[i] = attrs[i];
        if (to[i].kind == ATTR_INTS)
            to[i].v.ints = copied(a, to[i].v.ints, to[i].n, sizeof(int64_t));
    }
    return to;
}

static int32_t version_of(OpId op) { return op_info(op)->domain[0] == '\0' ? OPSET : 1; }

void net_node_outputs(NetBuilder *n, NetNode d, const NetOutput *o, uint32_t count, uint32_t *out) {
    Arena      *a = n->g->arena;
    const char *name = NULL;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = NO_VALUE;
        if (o[i].name == NULL) continue;
        const char *own = unique_name(n, o[i].name);
        if (name == NULL) name = own;
        out[i] = graph_value(n->g, own);
        n->g->values[out[i]].type = o[i].type;
        set_stat(n, out[i], o[i].stat);
    }
    CHECK(name != NULL);
    graph_node(n->g, (Node){.name = node_name(n, name),
                            .op = d.op,
                            .version = version_of(d.op),
                            .n_in = d.n_in,
                            .n_out = count,
                            .n_attr = d.n_attr,
                            .in = copied(a, d.in, d.n_in, sizeof *d.in),
                            .out = copied(a, out, count, sizeof *out),
                            .attrs = copied_attrs(a, d.attrs, d.n_attr)});
}

uint32_t net_node(NetBuilder *n, NetNode d, Tensor out, NetStat s) {
    NetOutput o[2] = {{0}};
    uint32_t  at = d.second ? 1 : 0, values[2];
    o[at] = (NetOutput){d.name, out, s};
    net_node_outputs(n, d, o, at + 1, values);
    return values[at];
}

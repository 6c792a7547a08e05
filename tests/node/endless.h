// A tenant whose interpreted loop never ends.
#pragma once

#include "tests/node/tenants.h"

static inline uint32_t endless_value(Graph *g, const char *name, DType t) {
    uint32_t v = graph_value(g, name);
    g->values[v].type = (Tensor){.dtype = t};
    graph_input(g, v);
    return v;
}

// A compiled step, then the interpreted loop: while (true) x = x + x.
static inline void endless_build(TestTenant *t) {
    NetBuilder n;
    *t = (TestTenant){0};
    tenant_check(model_init(&t->model, "endless"));
    Graph *g = t->model.graph, *body = graph_create(g->arena, g, "body");
    net_init(&n, g, 1);
    uint32_t x = net_activation(&n, NET_TANH, net_input(&n, "x", DT_F32, 1, (int64_t[]){4}));
    (void)endless_value(body, "i", DT_I64);
    uint32_t  go = endless_value(body, "go", DT_BOOL), v = graph_value(body, "v");
    uint32_t *io = arena_new(g->arena, uint32_t, 7);
    Attr     *attr = arena_new(g->arena, Attr, 1);
    graph_input(body, v);
    graph_output(body, go);
    io[4] = io[5] = v;
    io[6] = graph_value(body, "w");
    (void)graph_node(body, (Node){.name = "twice",
                                  .op = OP_Add,
                                  .version = 14,
                                  .n_in = 2,
                                  .n_out = 1,
                                  .in = io + 4,
                                  .out = io + 6});
    graph_output(body, io[6]);
    *attr = (Attr){.name = "body", .kind = ATTR_GRAPH, .v.g = body};
    io[0] = io[1] = NO_VALUE;
    io[2] = x;
    io[3] = graph_value(g, "y");
    (void)graph_node(g, (Node){.name = "forever",
                               .op = OP_Loop,
                               .version = 17,
                               .n_in = 3,
                               .n_out = 1,
                               .n_attr = 1,
                               .in = io,
                               .out = io + 3,
                               .attrs = attr});
    graph_output(g, io[3]);
    tenant_check(graph_sort(g));
    tenant_make(t, false);
}

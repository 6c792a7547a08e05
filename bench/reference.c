// How fast is the reference interpreter? Milliseconds and GMAC/s per network.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/table.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/work.h"
#include "model/zoo/zoo.h"

enum { REPEATS = 3 };

static const char *const networks[] = {"lstm_kws",        "squeezenet1_1", "mobilenet_v2",
                                       "efficientnet_b0", "resnet18",      "resnet50"};

typedef struct Measured {
    TimeNs  least, load;
    int64_t macs;
} Measured;

static Err fill_inputs(const Graph *g, Arena *a, Tensor *in) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        size_t bytes = 0;
        in[i] = g->values[g->inputs[i]].type;
        TRY(tensor_measure(&in[i], &bytes));
        in[i].data = arena_alloc(a, 1, bytes, TENSOR_ALIGN);
    }
    return ERR_OK;
}

static Err measure(Model *m, Arena *a, Measured *out) {
    Clock        clock = clock_monotonic();
    const Graph *g = m->graph;
    ShapedGraph *s = NULL;
    Work         w = {0};
    Tensor      *in = arena_new(a, Tensor, g->n_inputs), *y = arena_new(a, Tensor, g->n_outputs);
    TimeNs       start = clock_now(clock);
    TRY(model_materialise(m));
    TRY(fold_constants(m, interp_eval));
    TRY(fill_inputs(g, a, in));
    TRY(shaped_graph_make(g, in, interp_eval, a, &s));
    out->load = clock_now(clock) - start;
    TRY(work_total(s, a, &w));
    out->macs = w.macs;
    for (int i = 0; i < REPEATS; i++) {
        start = clock_now(clock);
        TRY(interp_run(s, in, &(InterpLimits){0}, a, y));
        TimeNs took = clock_now(clock) - start;
        if (i == 0 || took < out->least) out->least = took;
    }
    return ERR_OK;
}

static Err add_network(const char *name, Table *table) {
    Model    m = {0};
    Arena    a = {0};
    Measured x = {0};
    TRY(zoo_build(name, NULL, &m));
    Err e = arena_init(&a, (size_t)1 << 34);
    if (e == ERR_OK) e = measure(&m, &a, &x);
    arena_finish(&a);
    model_finish(&m);
    TRY(e);
    table_row(table);
    table_text(table, name);
    table_int(table, x.load);
    table_int(table, x.least);
    table_real(table, (double)x.macs / (double)x.least);
    return ERR_OK;
}

int main(void) {
    static const Column cols[] = {
        {.key = "name", .head = "network"},
        {.key = "load_ns", .head = "weights", .unit = "ms", .scale = 1e6, .decimals = 1},
        {.key = "run_ns", .head = "run", .unit = "ms", .scale = 1e6, .decimals = 1},
        {.key = "gmacs", .head = "GMAC/s", .decimals = 2},
    };
    Arena a = {0};
    Table table;
    Err   e = arena_init(&a, 1 << 24);
    table_init(&table, &a, cols, 4);
    for (size_t i = 0; e == ERR_OK && i < sizeof networks / sizeof *networks; i++)
        e = add_network(networks[i], &table);
    if (e == ERR_OK) e = table_print(&table, stdout);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    arena_finish(&a);
    return e != ERR_OK;
}

// How many requests per second does the engine process if the model costs nothing? One thread
// submits, and workers report results to it, as to a server's loop. Run it with taskset -c 0 for
// one core. bench_submit [REQUESTS] [POLICY] [SPIN NS OF IDLE WORKERS]
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/sync.h"
#include "base/table.h"
#include "model/net_builder.h"
#include "node/node_model.h"
#include "node/live/node_live.h"
#include "policy/policies.h"

enum { WINDOWS = 4 };

typedef struct Trivial {  // a model of one small layer
    Model        model;
    ShapedGraph *shaped;
    Program      program;
    NodeModel    table;
    Tensor       input;
} Trivial;

static Err build(Trivial *t, Arena *a) {
    NetBuilder n;
    TimeNs     light[NODE_COUNTS * 8] = {0};
    TRY(model_init(&t->model, "trivial"));
    net_init(&n, t->model.graph, 1);
    uint32_t x = net_input(&n, "x", DT_F32, 1, (int64_t[]){16});
    net_output(&n, net_activation(&n, NET_RELU, x), "y");
    TRY(model_materialise(&t->model));
    t->input = t->model.graph->values[t->model.graph->inputs[0]].type;
    TRY(tensor_alloc(&t->input, a));
    TRY(shaped_graph_make(t->model.graph, &t->input, interp_eval, &t->model.arena, &t->shaped));
    TRY(program_make(&t->program, t->shaped, &(ProgramOptions){0}));
    for (uint32_t i = 0; i < NODE_COUNTS * 8; i++) light[i] = 1000;
    Pressure      pressure = {0};
    ModelMeasured m = {.pressure = &pressure, .n_counts = 1, .counts = {1}, .light_ns = light};
    return model_of_profiles(&t->program, "trivial", &m, a, &t->table);
}

typedef struct Load {
    NodeLive        *live;
    _Atomic uint32_t answered, asleep;
} Load;

static void answered(void *self, const EngineResult *a) {
    Load *l = self;
    (void)a;
    atomic_fetch_add(&l->answered, 1);
    if (atomic_load(&l->asleep) != 0) futex_wake(&l->answered, 1);
}

// Sleeps until one more result arrives.
static void wait_for(Load *l, uint32_t seen) {
    atomic_store(&l->asleep, 1);
    while (atomic_load(&l->answered) == seen) futex_wait(&l->answered, seen);
    atomic_store(&l->asleep, 0);
}

// At most `window` requests are in flight.
static double rate(NodeLive *live, uint32_t n, uint32_t window) {
    Load   l = {.live = live};
    TimeNs begin = clock_now(clock_monotonic());
    for (uint32_t i = 0; i < n;) {
        uint32_t done = atomic_load(&l.answered);
        if (i - done >= window) {
            wait_for(&l, done);
            continue;
        }
        TimeNs t = clock_now(clock_monotonic());
        i += node_live_submit(live, &(EngineRequest){.arrival = t,
                                                     .deadline = t + 1000000000,
                                                     .expire = t + 1000000000,
                                                     .done = answered,
                                                     .self = &l});
    }
    for (uint32_t done = 0; (done = atomic_load(&l.answered)) < n;) wait_for(&l, done);
    return n / ((double)(clock_now(clock_monotonic()) - begin) / 1e9);
}

static Err measure(Arena *a, const NodePolicy *p, uint32_t n, TimeNs spin_ns, Table *table) {
    static const uint32_t windows[WINDOWS] = {1, 8, 64, 512};
    static const uint8_t  slices[256];
    static Trivial        t;
    NodeLive             *live = NULL;
    uint32_t              number = 0;
    void                 *values = arena_alloc(a, 1, p->settings_size + 1, 64);
    settings_default(&(Settings){p->rows, p->n_rows, values, a});
    TRY(build(&t, a));
    TRY(node_live_create(&live, &(NodeLiveOptions){.spin_ns = spin_ns}));
    NodeMachine m = {.n_cores = node_live_cores(live),
                     .n_slices = 1,
                     .slice_of = slices,
                     .slice_bytes = 1e7f,
                     .dram_bytes_ns = 10,
                     .dispatch_ns = 1000};
    LiveTenant  tenant = {
         .tenant = {&t.table, "trivial", 10000000, 1}, .program = &t.program, .inputs = &t.input};
    Err e = node_live_join(live, &tenant, &number);
    if (e == ERR_OK) e = node_live_set_policy(live, p, values, &m);
    for (uint32_t i = 0; e == ERR_OK && i < WINDOWS; i++) {
        table_row(table);
        table_text(table, p->name);
        table_int(table, windows[i]);
        table_real(table, rate(live, n, windows[i]));
    }
    node_live_destroy(live);
    program_finish(&t.program);
    model_finish(&t.model);
    return e;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "policy", .head = "policy"},
        {.key = "window", .head = "at once"},
        {.key = "rate", .head = "requests/s", .decimals = 0},
    };
    Arena             a;
    Table             t;
    uint32_t          n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 50000;
    const NodePolicy *p = policies_node_find(argc > 2 ? argv[2] : "slack");
    Err               e = arena_init(&a, (size_t)1 << 32);
    if (p == NULL) e = err_set(ERR_ARG, "no such policy");
    if (e == ERR_OK) {
        table_init(&t, &a, cols, sizeof cols / sizeof *cols);
        e = measure(&a, p, n, argc > 3 ? strtol(argv[3], NULL, 10) : 0, &t);
    }
    if (e == ERR_OK) e = table_print(&t, stdout);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    arena_finish(&a);
    return e != ERR_OK;
}

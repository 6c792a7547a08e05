// What does a run cost beyond its kernels? A network of 16-64-4 (or another file): time of a run in
// the caller's thread and of a request through the live engine, against its kernels alone.
// bench_run_cost [FILE.onnx] [RUNS] [steps]; with the third argument each kernel's time is printed.
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/stats.h"
#include "base/sync.h"
#include "model/net_builder.h"
#include "node/live/node_live.h"
#include "node/node_model.h"
#include "node/source.h"
#include "policy/policies.h"

enum { RUNS = 20000, BATCH = 50, OUTPUTS = 16, LAYERS = 4096, SPIN_NS = 200000 };

typedef struct Subject {
    Source       source;
    Arena        arena;
    ShapedGraph *shaped;
    Program      program;
    RunMemory    mem;
    NodeModel    table;
    Tensor      *inputs;
    uint32_t     runs;
} Subject;

typedef struct Engine {
    NodeLive        *live;
    _Atomic uint32_t answered;
} Engine;

static double now_us(void) { return (double)clock_monotonic_ns() / 1e3; }

static void build_mlp(Model *m) {
    NetBuilder n;
    net_init(&n, m->graph, 1);
    uint32_t x = net_input(&n, "x", DT_F32, 2, (int64_t[]){1, 16});
    x = net_activation(&n, NET_RELU, net_linear(&n, "hidden", x, 64));
    net_output(&n, net_linear(&n, "out", x, 4), "y");
}

static Err read_model(Subject *s, const char *file) {
    if (file != NULL) return source_read(&s->source, file, &(SourceOptions){0});
    TRY(model_init(&s->source.model, "mlp_16_64_4"));
    build_mlp(&s->source.model);
    return model_materialise(&s->source.model);
}

// Open dimensions are 1, inputs are 0.
static Err make_inputs(Subject *s) {
    const Graph *g = s->source.model.graph;
    if (g->n_outputs > OUTPUTS) return err_set(ERR_LIMIT, "more than %d outputs", OUTPUTS);
    s->inputs = arena_new(&s->arena, Tensor, g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = &s->inputs[i];
        *t = g->values[g->inputs[i]].type;
        for (int32_t d = 0; d < t->rank; d++)
            if (t->dims[d] < 0) t->dims[d] = 1;
        TRY(tensor_alloc(t, &s->arena));
    }
    return ERR_OK;
}

static Err prepare(Subject *s, const char *file) {
    TRY(read_model(s, file));
    TRY(arena_init_growing(&s->arena, 1 << 20, (size_t)1 << 36));
    TRY(make_inputs(s));
    TRY(shaped_graph_make(s->source.model.graph, s->inputs, interp_eval, &s->arena, &s->shaped));
    TRY(program_make(&s->program, s->shaped, &(ProgramOptions){.packed = s->source.packed}));
    if (s->program.n_steps > LAYERS || s->program.done != NULL)
        return err_set(ERR_UNSUPPORTED, "the network has an interpreted tail or too many layers");
    return run_memory_init(&s->mem, &s->program, 1);
}

// A step's time is that of BATCH calls in a row over their number, so that the clock costs nothing.
static double kernel_us(Subject *s, uint32_t layer) {
    double least = 1e9;
    for (uint32_t k = 0; k < s->runs / BATCH; k++) {
        double began = now_us();
        for (uint32_t i = 0; i < BATCH; i++)
            program_run_layer(&s->program, &s->mem, layer, 0, 0, 1, NULL);
        double us = (now_us() - began) / BATCH;
        if (us < least) least = us;
    }
    return least;
}

static double kernels_us(Subject *s, bool print) {
    double all = 0;
    program_begin(&s->program, &s->mem, s->inputs);
    for (uint32_t l = 0; l < s->program.n_steps; l++) {
        const Step *step = &s->program.steps[l];
        double      us = kernel_us(s, l);
        if (print) printf("%9.2f us  %-16s %s\n", us, step->kind->name, step->name);
        all += us;
    }
    return all;
}

static Err run_us(Subject *s, double *us) {
    for (uint32_t i = 0; i < s->runs; i++) {
        Tensor out[OUTPUTS];
        double began = now_us();
        TRY(program_run(&s->program, &s->mem, NULL, s->inputs, NULL, out));
        us[i] = now_us() - began;
    }
    return ERR_OK;
}

static void answered(void *self, const EngineResult *a) {
    Engine *e = self;
    (void)a;
    atomic_fetch_add(&e->answered, 1);
}

// One request at a time; the caller spins, as a server's loop that has more to do.
static void request_us(Engine *e, uint32_t n, double *us) {
    for (uint32_t i = 0; i < n; i++) {
        TimeNs        t = clock_monotonic_ns();
        EngineRequest ask = {.arrival = t, .deadline = t + 1000000000, .done = answered, .self = e};
        while (!node_live_submit(e->live, &ask)) spin_pause();
        while (atomic_load(&e->answered) == i) spin_pause();
        us[i] = (double)(clock_monotonic_ns() - t) / 1e3;
    }
}

static Err make_table(Subject *s, double all_us) {
    Pressure      pressure = {0};
    uint32_t      n = s->program.n_steps;
    TimeNs       *light = arena_new(&s->arena, TimeNs, (size_t)n * NODE_COUNTS);
    ModelMeasured m = {.pressure = &pressure, .n_counts = 1, .counts = {1}, .light_ns = light};
    for (uint32_t i = 0; i < n * NODE_COUNTS; i++) light[i] = 1 + (TimeNs)(all_us * 1e3 / n);
    return model_of_profiles(&s->program, "subject", &m, &s->arena, &s->table);
}

static Err serve(Subject *s, Engine *e, double *us) {
    static const uint8_t slices[256];
    const NodePolicy    *p = policies_node_find("slack");
    void                *values = arena_alloc(&s->arena, 1, p->settings_size + 1, 64);
    uint32_t             number = 0;
    LiveTenant           t = {
                  .tenant = {&s->table, "subject", 10000000, 1}, .program = &s->program, .inputs = s->inputs};
    settings_default(&(Settings){p->rows, p->n_rows, values, &s->arena});
    NodeMachine m = {.n_cores = node_live_cores(e->live),
                     .n_slices = 1,
                     .slice_of = slices,
                     .slice_bytes = 1e7f,
                     .dram_bytes_ns = 10,
                     .dispatch_ns = 1000};
    TRY(node_live_join(e->live, &t, &number));
    TRY(node_live_set_policy(e->live, p, values, &m));
    request_us(e, s->runs, us);
    return ERR_OK;
}

static Err tell(const char *what, Subject *s, double *us, double kernels) {
    double *sorted = NULL;
    TRY(stats_sort(&s->arena, us, s->runs, &sorted));
    double p50 = stats_percentile(sorted, s->runs, 50), p90 = stats_percentile(sorted, s->runs, 90);
    printf("%-22s %8.2f %8.2f %8.2f %12.2f\n", what, sorted[0], p50, p90, p50 - kernels);
    return ERR_OK;
}

static Err bench(Subject *s, const char *file, bool steps) {
    Engine e = {0};
    TRY(prepare(s, file));
    double *us = arena_new(&s->arena, double, s->runs), kernels = kernels_us(s, steps);
    printf("%-22s %8s %8s %8s %12s\n", "[us]", "least", "p50", "p90", "p50 - kernels");
    printf("%-22s %8.2f\n", "kernels", kernels);
    TRY(run_us(s, us));
    TRY(tell("run, caller's thread", s, us, kernels));
    TRY(make_table(s, kernels));
    TRY(node_live_create(&e.live, &(NodeLiveOptions){.spin_ns = SPIN_NS}));
    Err err = serve(s, &e, us);
    node_live_destroy(e.live);
    return err == ERR_OK ? tell("request, live engine", s, us, kernels) : err;
}

int main(int argc, char **argv) {
    static Subject s;
    long           n = argc > 2 ? strtol(argv[2], NULL, 10) : RUNS;
    s.runs = n >= BATCH && n <= 10000000 ? (uint32_t)n : RUNS;
    Err e = bench(&s, argc > 1 ? argv[1] : NULL, argc > 3);
    if (e != ERR_OK) (void)fprintf(stderr, "bench_run_cost: %s\n", err_why());
    return e != ERR_OK;
}

// Which version of a layer wins when a neighbour presses on cache and memory? Measured beside what
// the model says, for matrix products of bert_base. Usage: bench_pressure [SECONDS per layer]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/tensor.h"
#include "compile/sweep.h"
#include "kernel/gemm.h"
#include "kernel/probe.h"

enum { VERSIONS_MAX = 512, COLUMNS = 4 + 2 * PROFILE_KEPT };

typedef struct Layer {
    Gemm       gemm;
    const Isa *isa;
    CacheSizes caches;
} Layer;

typedef struct Bench {
    Cpu         cpu;
    const Isa  *isa;
    Pressure    pressure;
    TuneOptions tune;
    Bubble     *bubble;
    double      seconds;
} Bench;

static void run(void *self, const Version *v, Part part) {
    Gemm g = ((Layer *)self)->gemm;
    g.version = *v;
    ((Layer *)self)->isa->gemm(&g, part);
}

static uint32_t tasks(void *self, const Version *v) {
    const Layer *l = self;
    return gemm_tasks(&l->gemm.shape, l->isa, v);
}

static Traffic traffic(void *self, const Version *v, uint32_t parts) {
    const Layer *l = self;
    return gemm_traffic(&l->gemm.shape, l->isa, v, &l->caches, parts);
}

static float *numbers(Arena *a, size_t n) {
    float *x = arena_alloc(a, n, sizeof *x, TENSOR_ALIGN);
    for (size_t i = 0; i < n; i++) x[i] = (float)(i % 17) - 8;
    return x;
}

static void make_layer(const Bench *b, uint32_t m, uint32_t n, uint32_t k, Arena *a, Layer *l) {
    size_t padded = gemm_pack_bytes(n, k, b->isa);
    float *packed = arena_alloc(a, 1, padded, TENSOR_ALIGN);
    Finish f = {.lo = -INFINITY, .hi = INFINITY};
    gemm_pack(n, k, numbers(a, (size_t)n * k), n, false, 1, b->isa, packed);
    *l = (Layer){.isa = b->isa, .caches = probe_caches(&b->cpu)};
    l->gemm = (Gemm){.shape = gemm_shape(m, n, k),
                     .a = numbers(a, (size_t)m * k),
                     .b = packed,
                     .y = numbers(a, (size_t)m * n),
                     .finish = f};
}

static TuneLayer tune_layer(Layer *l, const char *key, Arena *a) {
    Version *all = arena_new(a, Version, VERSIONS_MAX);
    uint32_t n = gemm_versions(&l->gemm.shape, l->isa, &l->caches, all, VERSIONS_MAX);
    size_t   scratch = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = gemm_scratch(&l->gemm.shape, l->isa, &all[i]);
        if (bytes > scratch) scratch = bytes;
    }
    const GemmShape *s = &l->gemm.shape;
    return (TuneLayer){.key = key,
                       .candidates = all,
                       .n = n,
                       .macs = (double)s->m * s->n * s->k,
                       .scratch_bytes_max = scratch,
                       .self = l,
                       .run = run,
                       .tasks = tasks,
                       .traffic = traffic};
}

static void print_versions(const Profile *p) {
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const Candidate *c = &p->candidates[p->kept[i]];
        char             text[128];
        version_text(&c->version, text, sizeof text);
        printf("  v%u  %8.1f us  %5u tasks  %8.0f KB in L3  %8.0f KB beyond L2  %s\n", i,
               (double)c->time_ns[0] / 1e3, c->tasks, (double)c->traffic.l3_bytes / 1024,
               (double)c->traffic.beyond_l2_bytes / 1024, text);
    }
}

static uint32_t least(const double *x, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > 0 && (x[best] <= 0 || x[i] < x[best])) best = i;
    return best;
}

// What the model says of its own levels, which go further than one neighbour can press.
static uint32_t model_winner(const Bench *b, const Profile *p, uint32_t level) {
    double times[PROFILE_KEPT];
    for (uint32_t i = 0; i < p->n_kept; i++)
        times[i] = pressure_time(&b->pressure, &p->candidates[p->kept[i]], 0, p->counts[0],
                                 pressure_share(level));
    return least(times, p->n_kept);
}

static Err print_levels(const Bench *b, const Profile *p, const SweepLevel *levels, Arena *a) {
    Column cols[COLUMNS] = {
        {.key = "level", .head = "level"},
        {.key = "bubble_bytes", .head = "bubble", .unit = "MB", .scale = 1 << 20, .decimals = 1},
        {.key = "bubble_gbs", .head = "rate", .unit = "GB/s", .decimals = 1},
    };
    uint32_t n = 3;
    for (uint32_t i = 0; i < p->n_kept; i++) {
        cols[n++] = (Column){.key = arena_printf(a, "v%u_ns", i),
                             .head = arena_printf(a, "v%u", i),
                             .unit = "us",
                             .align = ALIGN_RIGHT};
        cols[n++] = (Column){.key = arena_printf(a, "v%u_model_ns", i),
                             .head = "model",
                             .scale = 1e3,
                             .decimals = 1};
    }
    cols[n++] = (Column){.key = "wins", .head = "wins (model at this level)"};
    Table t;
    table_init(&t, a, cols, n);
    for (uint32_t level = 0; level < PRESSURE_LEVELS; level++) {
        const SweepLevel *l = &levels[level];
        table_row(&t);
        table_int(&t, level);
        table_int(&t, (int64_t)l->bubble_bytes);
        table_real(&t, l->bubble_gbs);
        for (uint32_t i = 0; i < p->n_kept; i++) {
            table_textf(&t, "%s%.1f", l->samples[i] > 0 ? "" : "~", l->time_ns[i] / 1e3);
            table_real(&t, l->model_ns[i]);
        }
        table_textf(&t, "v%u (v%u)", least(l->time_ns, p->n_kept), model_winner(b, p, level));
    }
    return table_print(&t, stdout);
}

static Err bench_layer(const Bench *b, const char *name, uint32_t m, uint32_t n, uint32_t k) {
    Arena      a = {0};
    Layer      l;
    Profile    p;
    SweepLevel levels[PRESSURE_LEVELS];
    TRY(arena_init(&a, (size_t)1 << 30));
    make_layer(b, m, n, k, &a, &l);
    TuneLayer   t = tune_layer(&l, name, &a);
    TuneOptions o = b->tune;
    o.seconds = b->seconds;
    Err e = tune_layers(&t, 1, &o, &a, &p);
    printf("\n%s: %u x %u x %u, %u of %u versions kept\n", name, m, n, k, p.n_kept, p.n);
    print_versions(&p);
    if (e == ERR_OK)
        e = sweep_layer(&t, &o, &p, 0, b->bubble, b->seconds / PRESSURE_LEVELS, levels);
    if (e == ERR_OK) e = print_levels(b, &p, levels, &a);
    arena_finish(&a);
    return e;
}

static Err bench_all(Bench *b, const uint32_t cpus[2]) {
    Probe probe;
    TRY(team_create(&b->tune.team, 2, cpus));
    TRY(probe_machine(&b->cpu, b->isa, b->tune.team, true, (ProgressSink){0}, &probe));
    team_destroy(b->tune.team);
    b->pressure = pressure_of(&b->cpu, &probe);
    TRY(team_create(&b->tune.team, 1, cpus));
    TRY(bubble_create(&b->bubble, b->isa, (int32_t)cpus[1], 2 * b->pressure.l3_bytes));
    TRY(bench_layer(b, "bert_base query", 128, 768, 768));
    TRY(bench_layer(b, "bert_base up", 128, 3072, 768));
    TRY(bench_layer(b, "bert_base down", 128, 768, 3072));
    bubble_destroy(b->bubble);
    team_destroy(b->tune.team);
    return ERR_OK;
}

int main(int argc, char **argv) {
    Arena    a = {0};
    uint32_t cpus[2];
    Bench    b = {.seconds = argc > 1 ? strtod(argv[1], NULL) : 2};
    Err      e = arena_init(&a, 1 << 24);
    if (e == ERR_OK) e = isa_choose(&b.isa);
    if (e == ERR_OK) e = cpu_read(&a, &cgroup_roots, &b.cpu);
    b.tune = (TuneOptions){
        .n_counts = 1, .counts = {1}, .l2_bytes = probe_caches(&b.cpu).l2, .pressure = &b.pressure};
    if (e == ERR_OK && cpu_pick(&b.cpu, 2, cpus) < 2)
        puts("a neighbour needs a second core, and there is only one");
    else if (e == ERR_OK)
        e = bench_all(&b, cpus);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    arena_finish(&a);
    return e != ERR_OK;
}

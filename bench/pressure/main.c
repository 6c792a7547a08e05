// Which version of a layer is fastest while a co-runner uses cache and memory bandwidth? Measured
// next to the model's prediction, for layers of resnet50 and bert_base. Usage: bench_pressure
// [SECONDS per layer]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/tensor.h"
#include "bench/pressure/sweep.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"
#include "kernel/probe.h"
#include "kernel/winograd.h"

enum { VERSIONS_MAX = 1024, COLUMNS = 4 + 2 * PROFILE_KEPT };

typedef struct Row {  // a square convolution, or with size 0 a matrix product m x n x k
    const char *name;
    uint32_t    size, kernel, in, out;
    uint32_t    m, n, k;
} Row;

static const Row rows[] = {
    {"resnet50 conv 56x56 3x3 64", 56, 3, 64, 64, 0, 0, 0},
    {"resnet50 conv 56x56 1x1 64-256", 56, 1, 64, 256, 0, 0, 0},
    {"resnet50 conv 28x28 3x3 128", 28, 3, 128, 128, 0, 0, 0},
    {"resnet50 conv 14x14 3x3 256", 14, 3, 256, 256, 0, 0, 0},
    {"resnet50 conv 14x14 1x1 1024-256", 14, 1, 1024, 256, 0, 0, 0},
    {"resnet50 conv 7x7 3x3 512", 7, 3, 512, 512, 0, 0, 0},
    {"resnet50 conv 7x7 1x1 512-2048", 7, 1, 512, 2048, 0, 0, 0},
    {"bert_base query", 0, 0, 0, 0, 128, 768, 768},
    {"bert_base up", 0, 0, 0, 0, 128, 3072, 768},
    {"bert_base down", 0, 0, 0, 0, 128, 768, 3072},
};

typedef struct Layer {
    const Isa *isa;
    CacheSizes caches;
    Arena     *arena;
    Gemm       gemm;
    Conv       conv;
    float     *weights;             // not packed
    float     *packed[ALGO_COUNT];  // NULL until a version needs them
} Layer;

typedef struct Bench {
    Cpu         cpu;
    const Isa  *isa;
    Pressure    pressure;
    TuneOptions tune;
    Bubble     *bubble;
    double      seconds;
} Bench;

static bool is_winograd(const Version *v) {
    return v->algo == ALGO_WINOGRAD2 || v->algo == ALGO_WINOGRAD4;
}

static float *numbers(Arena *a, size_t n) {
    float *x = arena_alloc(a, n, sizeof *x, TENSOR_ALIGN);
    for (size_t i = 0; i < n; i++) x[i] = (float)(i % 17) - 8;
    return x;
}

static void conv_run(void *self, const Version *v, Part part) {
    const Layer *l = self;
    Conv         c = l->conv;
    c.version = *v;
    c.weights = l->packed[v->algo];
    if (is_winograd(v)) {
        Winograd w = {c.shape, c.version, c.epilogue, c.x, c.weights, c.y};
        l->isa->winograd(&w, part);
    } else {
        l->isa->conv(&c, part);
    }
}

static Err conv_prepare(void *self, const Version *v) {
    Layer           *l = self;
    const ConvShape *s = &l->conv.shape;
    if (l->packed[v->algo] != NULL) return ERR_OK;
    size_t bytes = is_winograd(v) ? winograd_pack_bytes(s, l->isa, (Algo)v->algo)
                                  : conv_pack_bytes(s, l->isa, false);
    float *packed = arena_alloc(l->arena, 1, bytes, TENSOR_ALIGN);
    if (is_winograd(v))
        winograd_pack(s, l->isa, (Algo)v->algo, l->weights, packed);
    else
        conv_pack(s, l->isa, false, l->weights, packed);
    l->packed[v->algo] = packed;
    return ERR_OK;
}

static uint32_t conv_count(void *self, const Version *v) {
    const Layer     *l = self;
    const ConvShape *s = &l->conv.shape;
    return is_winograd(v) ? winograd_tasks(s, l->isa, v) : conv_tasks(s, l->isa, v);
}

static Traffic conv_moved(void *self, const Version *v, uint32_t parts) {
    const Layer     *l = self;
    const ConvShape *s = &l->conv.shape;
    return is_winograd(v) ? winograd_traffic(s, l->isa, v, &l->caches, parts)
                          : conv_traffic(s, l->isa, v, &l->caches, parts);
}

static TuneLayer make_conv(Layer *l, const Row *r) {
    uint32_t  pad = r->kernel / 2, size = r->size, lanes = l->isa->lanes, n = 0;
    ConvShape s = {1, r->in, size, size, r->out, size, size, r->kernel, r->kernel,
                   1, 1,     1,    1,    pad,    pad,  1,    .id = 0};
    size_t    area = (size_t)size * size, taps = (size_t)r->kernel * r->kernel, scratch = 0;
    Version  *all = arena_new(l->arena, Version, VERSIONS_MAX);
    l->weights = numbers(l->arena, (size_t)r->in * r->out * taps);
    l->conv = (Conv){.shape = s, .epilogue = {.lo = 0, .hi = INFINITY}};
    l->conv.x = numbers(l->arena, (r->in + lanes - 1) / lanes * lanes * area);
    l->conv.y = numbers(l->arena, (r->out + lanes - 1) / lanes * lanes * area);
    n = conv_versions(&s, l->isa, false, &l->caches, all, VERSIONS_MAX / 2);
    if (winograd_fits(&s))
        n += winograd_versions(&s, l->isa, &l->caches, all + n, VERSIONS_MAX / 2);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = is_winograd(&all[i]) ? winograd_scratch(&s, l->isa, &all[i])
                                            : conv_scratch(&s, l->isa, &all[i]);
        if (bytes > scratch) scratch = bytes;
    }
    return (TuneLayer){.key = r->name,
                       .candidates = all,
                       .n = n,
                       .self = l,
                       .run = conv_run,
                       .macs = (double)(area * taps) * r->in * r->out,
                       .prepare = conv_prepare,
                       .scratch_bytes_max = scratch,
                       .tasks = conv_count,
                       .traffic = conv_moved};
}

static void gemm_run(void *self, const Version *v, Part part) {
    const Layer *l = self;
    Gemm         g = l->gemm;
    g.version = *v;
    l->isa->gemm(&g, part);
}

static uint32_t gemm_count(void *self, const Version *v) {
    const Layer *l = self;
    return gemm_tasks(&l->gemm.shape, l->isa, v);
}

static Traffic gemm_moved(void *self, const Version *v, uint32_t parts) {
    const Layer *l = self;
    return gemm_traffic(&l->gemm.shape, l->isa, v, &l->caches, parts);
}

static TuneLayer make_gemm(Layer *l, const Row *r) {
    GemmShape s = gemm_shape(r->m, r->n, r->k);
    Version  *all = arena_new(l->arena, Version, VERSIONS_MAX);
    float    *packed = arena_alloc(l->arena, 1, gemm_pack_bytes(r->n, r->k, l->isa), TENSOR_ALIGN);
    size_t    scratch = 0;
    gemm_pack(r->n, r->k, numbers(l->arena, (size_t)r->n * r->k), r->n, false, 1, l->isa, packed);
    l->gemm = (Gemm){.shape = s, .b = packed, .epilogue = {.lo = -INFINITY, .hi = INFINITY}};
    l->gemm.a = numbers(l->arena, (size_t)r->m * r->k);
    l->gemm.y = numbers(l->arena, (size_t)r->m * r->n);
    uint32_t n = gemm_versions(&s, l->isa, &l->caches, all, VERSIONS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = gemm_scratch(&s, l->isa, &all[i]);
        if (bytes > scratch) scratch = bytes;
    }
    return (TuneLayer){.key = r->name,
                       .candidates = all,
                       .n = n,
                       .self = l,
                       .run = gemm_run,
                       .macs = (double)r->m * r->n * r->k,
                       .scratch_bytes_max = scratch,
                       .tasks = gemm_count,
                       .traffic = gemm_moved};
}

static void print_versions(const TuneLayer *l, const LayerProfile *p) {
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const Candidate *c = &p->candidates[p->kept[i]];
        char             text[128];
        version_text(&c->version, text, sizeof text);
        printf("  v%u %8.1f us %6.1f GFLOP/s %5u tasks %7.0f KB in L3 %7.0f KB beyond L2  %s\n", i,
               (double)c->time_ns[0] / 1e3, 2 * l->macs / (double)c->time_ns[0], c->tasks,
               (double)c->traffic.l3_bytes / 1024, (double)c->traffic.beyond_l2_bytes / 1024, text);
    }
}

static uint32_t least(const double *x, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > 0 && (x[best] <= 0 || x[i] < x[best])) best = i;
    return best;
}

// The model's prediction for its own levels, which exceed the pressure of one co-runner.
static uint32_t model_winner(const Bench *b, const LayerProfile *p, uint32_t level) {
    double times[PROFILE_KEPT];
    for (uint32_t i = 0; i < p->n_kept; i++)
        times[i] = pressure_time(&b->pressure, &p->candidates[p->kept[i]], 0, p->counts[0],
                                 pressure_share(level));
    return least(times, p->n_kept);
}

static Err print_levels(const Bench *b, const LayerProfile *p, const SweepLevel *levels, Arena *a) {
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

static Err bench_layer(const Bench *b, const Row *r) {
    Arena        a = {0};
    LayerProfile p = {0};
    SweepLevel   levels[PRESSURE_LEVELS];
    TRY(arena_init(&a, (size_t)1 << 30));
    Layer       l = {.isa = b->isa, .caches = probe_caches(&b->cpu), .arena = &a};
    TuneLayer   t = r->size > 0 ? make_conv(&l, r) : make_gemm(&l, r);
    TuneOptions o = b->tune;
    o.seconds = b->seconds;
    Err e = tune_layers(&t, 1, &o, &a, &p);
    printf("\n%s: %u of %u versions kept, %s\n", r->name, p.n_kept, p.n,
           p.finished ? "search finished" : "search cut short");
    print_versions(&t, &p);
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
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) TRY(bench_layer(b, &rows[i]));
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
        puts("a co-runner needs a second core, but there is only one");
    else if (e == ERR_OK)
        e = bench_all(&b, cpus);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    arena_finish(&a);
    return e != ERR_OK;
}

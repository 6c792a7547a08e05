// What does an element cost in element-wise programs, softmax, normalisations and reductions?
// Nanoseconds per element in L1 and beyond the caches, and bandwidth relative to a triad.
//
// bench_elements [--json] [WORD...]: only rows with a word in their kind or name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/table.h"
#include "kernel/elementwise.h"
#include "kernel/normalize.h"

enum { BIG = 1 << 23, NEAR = 1024, LEAST_SAMPLES = 5, SAMPLE_NS = 20000, PATIENCE_NS = 10000000 };

typedef struct Bench {
    const Isa *isa;
    Clock      clock;
    float     *x, *y, *z;  // BIG each
    double     triad;      // bytes per nanosecond beyond the caches
} Bench;

// One measurement: `run` processes `numbers` elements and moves `bytes` bytes for each.
typedef struct Job {
    const char        *kind, *name;
    double             numbers, bytes;
    ElementwiseProgram program;
    ElementwisePlan    map;
    Normalize          row;
    Reduce             reduce;
    void (*run)(const Bench *b, const struct Job *j);
} Job;

static void run_map(const Bench *b, const Job *j) {
    const float *in[] = {b->x, b->y};
    ewise_plan_run(&j->map, b->isa, in, b->z, (Part){0, 1, NULL});
}

static void run_normalize(const Bench *b, const Job *j) {
    const bool          scales = j->row.op > NORMALIZE_LOG_SOFTMAX && j->row.inner == 1;
    const NormalizeArgs d = {
        .x = b->x, .y = b->z, .scale = scales ? b->y : NULL, .bias = scales ? b->y : NULL};
    b->isa->normalize(&j->row, &d, (Part){0, 1, NULL});
}

static void run_reduce(const Bench *b, const Job *j) {
    b->isa->reduce(&j->reduce, b->x, b->z, (Part){0, 1, NULL});
}

// Shortest time of one run; samples are long enough for the clock.
static double measure(const Bench *b, const Job *j) {
    TimeNs start = clock_now(b->clock);
    j->run(b, j);
    const TimeNs once = clock_now(b->clock) - start + 1;
    const int    rounds = once < SAMPLE_NS ? (int)(SAMPLE_NS / once) + 1 : 1;
    const TimeNs end = clock_now(b->clock) + PATIENCE_NS;
    TimeNs       least = INT64_MAX;
    for (int i = 0; i < LEAST_SAMPLES || clock_now(b->clock) < end; i++) {
        start = clock_now(b->clock);
        for (int k = 0; k < rounds; k++) j->run(b, j);
        const TimeNs took = clock_now(b->clock) - start;
        if (took < least) least = took;
    }
    return (double)least / rounds;
}

static void report(const Bench *b, const Job *j, Table *t) {
    const double ns = measure(b, j), rate = j->numbers * j->bytes / ns;
    table_row(t);
    table_text(t, j->kind);
    table_text(t, j->name);
    table_real(t, ns);
    table_real(t, ns / j->numbers);
    table_real(t, rate);
    if (j->numbers >= BIG)
        table_real(t, rate / b->triad);
    else
        table_missing(t);
}

static bool wanted(const Job *j, int n, char **words) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (strncmp(words[i], "--", 2) == 0) continue;
        any = true;
        if (strstr(j->kind, words[i]) != NULL || strstr(j->name, words[i]) != NULL) return true;
    }
    return !any;
}

// Bounds and parameters are valid for every operator; elements are between -4 and 4.
static void make_op(const Bench *b, ElementwiseOp op, int64_t n, Job *j) {
    const Tensor shape = tensor_of(DT_F32, 1, &n, NULL), *args[] = {&shape, &shape};
    const bool   two = ewise_op_operands(op) == 2;
    *j = (Job){.kind = n == BIG ? "far" : "near", .name = ewise_op_name(op), .run = run_map};
    j->numbers = (double)n;
    j->bytes = two ? 12 : 8;
    j->program = (ElementwiseProgram){
        1, two ? 2 : 1, {{.op = (uint8_t)op, .a = EWISE_ARG, .p = 0.1F, .q = 1}}};
    j->program.steps[0].b = two ? EWISE_ARG + 1 : 0;
    j->program.steps[0].lo = -128, j->program.steps[0].hi = 127;
    ewise_plan_broadcast(&j->map, &j->program, b->isa, &shape, args);
}

// A product with a broadcast argument.
typedef struct MapRow {
    const char *name;
    int32_t     rank;
    int64_t     dims[3], arg[3];
} MapRow;

static const MapRow map_rows[] = {
    {"8", 1, {8}, {8}},
    {"256x56x56", 3, {256, 56, 56}, {256, 56, 56}},
    {"128x768, 768", 2, {128, 768}, {1, 768}},
    {"96x112x112, 96x1x1", 3, {96, 112, 112}, {96, 1, 1}},
    {"1280x7x7, 1280x1x1", 3, {1280, 7, 7}, {1280, 1, 1}},
    {"10000x4, 4", 2, {10000, 4}, {1, 4}},
    {"10000x4, 10000x1", 2, {10000, 4}, {10000, 1}},
};

static void make_map(const Bench *b, const MapRow *r, Job *j) {
    const Tensor y = tensor_of(DT_F32, r->rank, r->dims, NULL);
    const Tensor arg = tensor_of(DT_F32, r->rank, r->arg, NULL), *args[] = {&y, &arg};
    *j = (Job){.kind = "broadcast", .name = r->name, .run = run_map};
    j->numbers = (double)tensor_count(&y);
    j->bytes = 8 + 4 * (double)tensor_count(&arg) / j->numbers;
    j->program =
        (ElementwiseProgram){1, 2, {{.op = EWISE_MUL, .a = EWISE_ARG, .b = EWISE_ARG + 1}}};
    ewise_plan_broadcast(&j->map, &j->program, b->isa, &y, args);
}

static const struct {
    const char *name;
    NormalizeOp op;
    size_t      rows, n, inner;
} normalize_rows[] = {
    {"softmax 1536x128", NORMALIZE_SOFTMAX, 1536, 128, 1},
    {"softmax 197x197", NORMALIZE_SOFTMAX, 197, 197, 1},
    {"softmax 1x1000", NORMALIZE_SOFTMAX, 1, 1000, 1},
    {"softmax 8732x21", NORMALIZE_SOFTMAX, 8732, 21, 1},
    {"softmax 21 of 21x4096", NORMALIZE_SOFTMAX, 1, 21, 4096},
    {"log softmax 1x1000", NORMALIZE_LOG_SOFTMAX, 1, 1000, 1},
    {"layer norm 128x768", NORMALIZE_VARIANCE, 128, 768, 1},
    {"RMS norm 128x768", NORMALIZE_RMS, 128, 768, 1},
    {"L2 norm 512 of 512x1600", NORMALIZE_L2, 1, 512, 1600},
};

static const struct {
    const char *name;
    Reduce      reduce;
} reduce_rows[] = {
    {"mean 1280x49", {REDUCE_MEAN, 1280, 49, 1}},
    {"mean of blocks 160x49", {REDUCE_MEAN, 160, 49, 8}},
    {"max 1x1000000", {REDUCE_MAX, 1, 1000000, 1}},
    {"sum 1000 of 1000x1000", {REDUCE_SUM, 1, 1000, 1000}},
    {"mean 50176 of 50176x3", {REDUCE_MEAN, 1, 50176, 3}},
    {"log sum exp 100x1000", {REDUCE_LOG_SUM_EXP, 100, 1000, 1}},
};

static void bench_ops(const Bench *b, int n, char **words, Table *t) {
    Job j;
    for (ElementwiseOp op = 0; op < EWISE_OPS; op++) {
        make_op(b, op, NEAR, &j);
        if (wanted(&j, n, words)) report(b, &j, t);
        make_op(b, op, BIG, &j);
        if (op <= EWISE_AFFINE && op != EWISE_POW && wanted(&j, n, words)) report(b, &j, t);
    }
    for (size_t i = 0; i < sizeof map_rows / sizeof *map_rows; i++) {
        make_map(b, &map_rows[i], &j);
        if (wanted(&j, n, words)) report(b, &j, t);
    }
}

static void bench_rows(const Bench *b, int n, char **words, Table *t) {
    for (size_t i = 0; i < sizeof normalize_rows / sizeof *normalize_rows; i++) {
        const size_t numbers =
            normalize_rows[i].rows * normalize_rows[i].n * normalize_rows[i].inner;
        Job j = {.kind = "normalize", .name = normalize_rows[i].name, .run = run_normalize};
        j.numbers = (double)numbers, j.bytes = 8;
        j.row = normalize_axis(normalize_rows[i].op, normalize_rows[i].rows, normalize_rows[i].n,
                               normalize_rows[i].inner, 1e-5F);
        if (wanted(&j, n, words)) report(b, &j, t);
    }
    for (size_t i = 0; i < sizeof reduce_rows / sizeof *reduce_rows; i++) {
        const Reduce *f = &reduce_rows[i].reduce;
        Job           j = {.kind = "reduce", .name = reduce_rows[i].name, .run = run_reduce};
        j.numbers = (double)(f->outer * f->n * f->inner), j.bytes = 4;
        j.reduce = *f;
        if (wanted(&j, n, words)) report(b, &j, t);
    }
}

static Err start(Arena *a, Bench *b) {
    Rng r = {1};
    TRY(isa_choose(&b->isa));
    b->clock = clock_monotonic();
    b->x = arena_try(a, BIG, sizeof *b->x, TENSOR_ALIGN);
    b->y = arena_try(a, BIG, sizeof *b->y, TENSOR_ALIGN);
    b->z = arena_try(a, BIG, sizeof *b->z, TENSOR_ALIGN);
    if (b->x == NULL || b->y == NULL || b->z == NULL)
        return err_set(ERR_LIMIT, "no memory for the arrays");
    for (size_t i = 0; i < BIG; i++) b->x[i] = b->y[i] = b->z[i] = rng_unit(&r) * 8 - 4;
    for (int i = 0; i < LEAST_SAMPLES; i++) {
        const TimeNs begin = clock_now(b->clock);
        b->isa->probe_triad(b->x, b->y, BIG, b->z);
        const double rate = 12.0 * BIG / (double)(clock_now(b->clock) - begin);
        if (rate > b->triad) b->triad = rate;
    }
    return ERR_OK;
}

static Err show(const Bench *b, const Table *t, bool json) {
    if (!json) {
        printf("%s, triad %.1f GB/s\n", b->isa->name, b->triad);
        return table_print(t, stdout);
    }
    json_t *rows = NULL;
    TRY(table_json(t, &rows));
    json_t *all =
        json_pack("{s:s, s:f, s:o}", "isa", b->isa->name, "triad_gbs", b->triad, "elements", rows);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for the JSON text");
    json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return ERR_OK;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "kind", .head = "kind"},
        {.key = "name", .head = "what"},
        {.key = "ns", .head = "time", .unit = "us", .scale = 1e3, .decimals = 2},
        {.key = "ns_per_number", .head = "per element", .unit = "ns", .decimals = 3},
        {.key = "gbs", .head = "GB/s", .decimals = 1},
        {.key = "triad_share", .head = "of triad", .unit = "%", .scale = 0.01, .decimals = 0},
    };
    bool  json = false;
    Arena a = {0};
    Bench b = {0};
    Table t;
    Err   e = arena_init(&a, (size_t)1 << 30);
    for (int i = 1; i < argc; i++) json = json || strcmp(argv[i], "--json") == 0;
    table_init(&t, &a, cols, sizeof cols / sizeof *cols);
    if (e == ERR_OK) e = start(&a, &b);
    if (e == ERR_OK) {
        bench_ops(&b, argc - 1, argv + 1, &t);
        bench_rows(&b, argc - 1, argv + 1, &t);
        e = show(&b, &t, json);
    }
    if (e != ERR_OK) fprintf(stderr, "bench_elements: %s\n", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}

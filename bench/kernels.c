// How close to the machine's peak is each kernel? GFLOP/s per family and shape: of the version that
// is guessed without measuring, and of the best in the family's space.
//
// bench_kernels [--json] [--quick] [WORD...]: rows whose family or name contains one of the words.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/rng.h"
#include "base/table.h"
#include "base/tensor.h"
#include "kernel/attend.h"
#include "kernel/conv.h"
#include "kernel/deconv.h"
#include "kernel/gemm.h"
#include "kernel/probe.h"
#include "kernel/recur.h"
#include "kernel/wino.h"

enum { MAX_VERSIONS = 64, LEAST_SAMPLES = 5, SAMPLE_NS = 1500000 };

typedef struct Bench {
    const Isa *isa;
    CacheSizes caches;
    Clock      clock;
    TimeNs     patience;  // for each version
    double     peak;      // the best seen so far
} Bench;

// One kernel on one shape. A family fills it in.
typedef struct Job {
    double   flops;
    Version  versions[MAX_VERSIONS];
    uint32_t n_versions;
    TimeNs   least[MAX_VERSIONS];
    size_t   scratch_bytes;
    void    *scratch;
    void (*run)(const Bench *b, const struct Job *j, const Version *v, Part part);
    uint32_t (*tasks)(const Bench *b, const struct Job *j, const Version *v);
    union {
        Conv   conv;
        Gemm   gemm;
        Attend attend;
        Recur  recur;
        struct {
            Wino         call;
            const float *packed[ALGO_COUNT];
        } wino;
        Deconv deconv;
    } of;
    Arena *arena;  // of this job
} Job;

static float *numbers(Arena *a, size_t n) {
    float *x = arena_alloc(a, n, sizeof *x, TENSOR_ALIGN);
    Rng    r = {n};
    for (size_t i = 0; i < n; i++) x[i] = rng_unit(&r) - 0.5F;
    return x;
}

static void need(Job *j, size_t scratch_bytes) {
    if (scratch_bytes > j->scratch_bytes) j->scratch_bytes = scratch_bytes;
}

// Convolutions.

typedef struct ConvRow {
    const char *name;
    uint32_t    ic, size, oc, k, stride, pad;
    bool        plain;
} ConvRow;

static const ConvRow conv_rows[] = {
    {"resnet50 56x56 1x1 64-64", 64, 56, 64, 1, 1, 0, false},
    {"resnet50 56x56 3x3 64-64", 64, 56, 64, 3, 1, 1, false},
    {"resnet50 56x56 1x1 64-256", 64, 56, 256, 1, 1, 0, false},
    {"resnet50 56x56 1x1 256-64", 256, 56, 64, 1, 1, 0, false},
    {"resnet50 56x56 1x1 256-128", 256, 56, 128, 1, 1, 0, false},
    {"resnet50 56x56 3x3/2 128-128", 128, 56, 128, 3, 2, 1, false},
    {"resnet50 56x56 1x1/2 256-512", 256, 56, 512, 1, 2, 0, false},
    {"resnet50 28x28 1x1 128-512", 128, 28, 512, 1, 1, 0, false},
    {"resnet50 28x28 1x1 512-128", 512, 28, 128, 1, 1, 0, false},
    {"resnet50 28x28 3x3 128-128", 128, 28, 128, 3, 1, 1, false},
    {"resnet50 28x28 1x1 512-256", 512, 28, 256, 1, 1, 0, false},
    {"resnet50 28x28 3x3/2 256-256", 256, 28, 256, 3, 2, 1, false},
    {"resnet50 28x28 1x1/2 512-1024", 512, 28, 1024, 1, 2, 0, false},
    {"resnet50 14x14 1x1 256-1024", 256, 14, 1024, 1, 1, 0, false},
    {"resnet50 14x14 1x1 1024-256", 1024, 14, 256, 1, 1, 0, false},
    {"resnet50 14x14 3x3 256-256", 256, 14, 256, 3, 1, 1, false},
    {"resnet50 14x14 1x1 1024-512", 1024, 14, 512, 1, 1, 0, false},
    {"resnet50 14x14 3x3/2 512-512", 512, 14, 512, 3, 2, 1, false},
    {"resnet50 14x14 1x1/2 1024-2048", 1024, 14, 2048, 1, 2, 0, false},
    {"resnet50 7x7 1x1 512-2048", 512, 7, 2048, 1, 1, 0, false},
    {"resnet50 7x7 1x1 2048-512", 2048, 7, 512, 1, 1, 0, false},
    {"resnet50 7x7 3x3 512-512", 512, 7, 512, 3, 1, 1, false},
    {"resnet50 224x224 7x7/2 3-64 plain", 3, 224, 64, 7, 2, 3, true},
    {"mobilenet 224x224 3x3/2 3-32 plain", 3, 224, 32, 3, 2, 1, true},
    {"vgg16 224x224 3x3 3-64 plain", 3, 224, 64, 3, 1, 1, true},
    {"alexnet 224x224 11x11/4 3-64 plain", 3, 224, 64, 11, 4, 2, true},
    {"mobilenet_v2 112x112 1x1 32-16", 32, 112, 16, 1, 1, 0, false},
    {"mobilenet_v2 112x112 1x1 16-96", 16, 112, 96, 1, 1, 0, false},
    {"mobilenet_v2 56x56 1x1 96-24", 96, 56, 24, 1, 1, 0, false},
    {"mobilenet_v2 56x56 1x1 24-144", 24, 56, 144, 1, 1, 0, false},
    {"mobilenet_v2 28x28 1x1 192-32", 192, 28, 32, 1, 1, 0, false},
    {"mobilenet_v2 14x14 1x1 384-64", 384, 14, 64, 1, 1, 0, false},
    {"mobilenet_v2 14x14 1x1 96-576", 96, 14, 576, 1, 1, 0, false},
    {"mobilenet_v2 7x7 1x1 160-960", 160, 7, 960, 1, 1, 0, false},
    {"mobilenet_v2 7x7 1x1 960-320", 960, 7, 320, 1, 1, 0, false},
    {"vgg16 224x224 3x3 64-64", 64, 224, 64, 3, 1, 1, false},
    {"vgg16 28x28 3x3 512-512", 512, 28, 512, 3, 1, 1, false},
    {"googlenet 14x14 5x5 32-128", 32, 14, 128, 5, 1, 2, false},
    {"classifier 1x1 1x1 2048-1000", 2048, 1, 1000, 1, 1, 0, false},
};

static void run_conv(const Bench *b, const Job *j, const Version *v, Part part) {
    Conv c = j->of.conv;
    c.version = *v;
    b->isa->conv(&c, part);
}

static uint32_t tasks_conv(const Bench *b, const Job *j, const Version *v) {
    return conv_tasks(&j->of.conv.shape, b->isa, v);
}

static void make_conv(const Bench *b, const void *of, Job *j) {
    const ConvRow *r = of;
    uint32_t       lanes = b->isa->lanes, out = (r->size + 2 * r->pad - r->k) / r->stride + 1;
    ConvShape      s = {1,    r->ic,     r->size,   r->size, r->oc, out,    out,    r->k,
                        r->k, r->stride, r->stride, 1,       1,     r->pad, r->pad, 1};
    size_t         in = (size_t)(r->ic + lanes - 1) / lanes * lanes * r->size * r->size;
    size_t         columns = (size_t)(r->oc + lanes - 1) / lanes * lanes;
    float *packed = numbers(j->arena, conv_pack_bytes(&s, b->isa, r->plain) / sizeof(float));
    j->flops = 2.0 * out * out * r->oc * r->ic * r->k * r->k;
    j->run = run_conv;
    j->tasks = tasks_conv;
    conv_pack(&s, b->isa, r->plain, numbers(j->arena, (size_t)r->oc * r->ic * r->k * r->k), packed);
    j->of.conv = (Conv){.shape = s,
                        .finish = {.bias = numbers(j->arena, columns), .lo = 0, .hi = INFINITY},
                        .x = numbers(j->arena, in),
                        .weights = packed,
                        .y = numbers(j->arena, columns * out * out)};
    j->n_versions = conv_versions(&s, b->isa, r->plain, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++) need(j, conv_scratch(&s, b->isa, &j->versions[i]));
}

// Products: a row is m x k times packed weights k x n, or stacks of products of two tensors.

typedef struct GemmRow {
    const char *name;
    uint32_t    m, n, k, stack;  // stack 0: packed weights
    bool        turned;          // b of a stack
} GemmRow;

static const GemmRow gemm_rows[] = {
    {"bert 128x768 768-768", 128, 768, 768, 0, false},
    {"bert 128x768 768-2304", 128, 2304, 768, 0, false},
    {"bert 128x768 768-3072", 128, 3072, 768, 0, false},
    {"bert 128x3072 3072-768", 128, 768, 3072, 0, false},
    {"bert 16x768 768-3072", 16, 3072, 768, 0, false},
    {"bert 64x3072 3072-768", 64, 768, 3072, 0, false},
    {"vit 197x192 192-768", 197, 768, 192, 0, false},
    {"bert scores 12 of 128x64 64-128", 128, 128, 64, 12, true},
    {"bert values 12 of 128x128 128-64", 128, 64, 128, 12, false},
    {"odd 37x101 101-67", 37, 67, 101, 0, false},
    {"resnet50 1x2048 2048-1000", 1, 1000, 2048, 0, false},
    {"dlrm 4x512 512-256", 4, 256, 512, 0, false},
    {"vgg16 1x25088 25088-4096", 1, 4096, 25088, 0, false},
};

static void run_gemm(const Bench *b, const Job *j, const Version *v, Part part) {
    Gemm g = j->of.gemm;
    g.version = *v;
    b->isa->gemm(&g, part);
}

static uint32_t tasks_gemm(const Bench *b, const Job *j, const Version *v) {
    return gemm_tasks(&j->of.gemm.shape, b->isa, v);
}

static void make_gemm(const Bench *b, const void *of, Job *j) {
    const GemmRow *r = of;
    GemmShape      s = gemm_shape(r->m, r->n, r->k);
    size_t         stack = r->stack > 0 ? r->stack : 1;
    float         *weights = numbers(j->arena, stack * r->n * r->k), *packed = weights;
    if (r->stack == 0) {
        packed = numbers(j->arena, gemm_pack_bytes(r->n, r->k, b->isa) / sizeof(float));
        gemm_pack(r->n, r->k, weights, r->n, false, 1, b->isa, packed);
    } else {
        s.packed = false;
        s.stack[2] = r->stack;
        s.a.stack[2] = (size_t)r->m * r->k;
        s.b = (GemmSide){r->turned ? r->k : r->n, {0, 0, (size_t)r->n * r->k}, r->turned};
        s.y.stack[2] = (size_t)r->m * r->n;
    }
    j->flops = 2.0 * r->m * r->n * r->k * (double)stack;
    j->run = run_gemm;
    j->tasks = tasks_gemm;
    j->of.gemm = (Gemm){.shape = s,
                        .finish = {.lo = -INFINITY, .hi = INFINITY},
                        .a = numbers(j->arena, stack * r->m * r->k),
                        .b = packed,
                        .y = numbers(j->arena, stack * r->m * r->n)};
    j->n_versions = gemm_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++) need(j, gemm_scratch(&s, b->isa, &j->versions[i]));
}

// Attention: queries, keys and values side by side, as one product leaves them.

typedef struct AttendRow {
    const char *name;
    uint32_t    heads, places, size;
} AttendRow;

static const AttendRow attend_rows[] = {
    {"bert 12 heads 128 places", 12, 128, 64},
    {"bert 12 heads 512 places", 12, 512, 64},
    {"vit 3 heads 197 places", 3, 197, 64},
};

static void run_attend(const Bench *b, const Job *j, const Version *v, Part part) {
    Attend a = j->of.attend;
    a.version = *v;
    b->isa->attend(&a, part);
}

static uint32_t tasks_attend(const Bench *b, const Job *j, const Version *v) {
    return attend_tasks(&j->of.attend.shape, b->isa, v);
}

static void make_attend(const Bench *b, const void *of, Job *j) {
    const AttendRow *r = of;
    size_t           wide = (size_t)r->heads * r->size;
    float           *x = numbers(j->arena, 3 * wide * r->places);
    AttendSide       side = {0, r->size, 3 * wide};
    AttendShape      s = {.batch = 1, .heads = r->heads, .kv_heads = r->heads, .scale = 0.125F};
    s.queries = s.keys = r->places;
    s.size = s.v_size = r->size;
    s.q = s.k = s.v = side;
    s.y = (AttendSide){0, r->size, wide};
    j->flops = 4.0 * r->places * r->places * (double)wide;
    j->run = run_attend;
    j->tasks = tasks_attend;
    j->of.attend = (Attend){.shape = s,
                            .q = x,
                            .k = x + wide,
                            .v = x + 2 * wide,
                            .y = numbers(j->arena, wide * r->places)};
    j->n_versions = attend_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        need(j, attend_scratch(&s, b->isa, &j->versions[i]));
}

// Recurrence.

typedef struct RecurRow {
    const char *name;
    RecurKind   kind;
    uint32_t    steps, batch, input, hidden;
} RecurRow;

static const RecurRow recur_rows[] = {
    {"keyword lstm 49 steps 10-118", RECUR_LSTM, 49, 1, 10, 118},
    {"lstm 32 steps 128-128", RECUR_LSTM, 32, 1, 128, 128},
    {"lstm 16 sequences 50 steps 256-256", RECUR_LSTM, 50, 16, 256, 256},
    {"gru 49 steps 40-128", RECUR_GRU, 49, 1, 40, 128},
};

static void run_recur(const Bench *b, const Job *j, const Version *v, Part part) {
    Recur r = j->of.recur;
    r.version = *v;
    b->isa->recur(&r, part);
}

static uint32_t tasks_recur(const Bench *b, const Job *j, const Version *v) {
    return recur_tasks(&j->of.recur.shape, b->isa, v);
}

static void make_recur(const Bench *b, const void *of, Job *j) {
    const RecurRow *r = of;
    RecurShape      s = {.kind = r->kind, .steps = r->steps, .batch = r->batch, .input = r->input};
    size_t          gates = (r->kind == RECUR_LSTM ? 4 : 3) * (size_t)r->hidden;
    s.hidden = r->hidden;
    s.directions = 1;
    s.clip = INFINITY;
    RecurWeights w = {.w = numbers(j->arena, gates * r->input),
                      .r = numbers(j->arena, gates * r->hidden),
                      .b = numbers(j->arena, 2 * gates)};
    float       *packed = numbers(j->arena, recur_pack_bytes(&s, b->isa) / sizeof(float));
    recur_pack(&s, &w, b->isa, packed);
    j->flops = 2.0 * r->steps * r->batch * (double)gates * (r->input + r->hidden);
    j->run = run_recur;
    j->tasks = tasks_recur;
    j->of.recur = (Recur){.shape = s,
                          .packed = packed,
                          .x = numbers(j->arena, (size_t)r->steps * r->batch * r->input),
                          .y = numbers(j->arena, (size_t)r->steps * r->batch * r->hidden)};
    j->n_versions = recur_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        need(j, recur_scratch(&s, b->isa, &j->versions[i]));
}

// Winograd. Its flops are those of the direct convolution, so that shares beyond 100 % are what it
// saves.

typedef struct WinoRow {
    const char *name;
    uint32_t    ic, size, oc;
} WinoRow;

static const WinoRow wino_rows[] = {
    {"resnet50 56x56 3x3 64-64", 64, 56, 64},
    {"resnet50 28x28 3x3 128-128", 128, 28, 128},
    {"resnet50 14x14 3x3 256-256", 256, 14, 256},
    {"resnet50 7x7 3x3 512-512", 512, 7, 512},
    {"vgg16 224x224 3x3 64-64", 64, 224, 64},
    {"vgg16 112x112 3x3 64-128", 64, 112, 128},
    {"vgg16 112x112 3x3 128-128", 128, 112, 128},
    {"vgg16 56x56 3x3 128-256", 128, 56, 256},
    {"vgg16 56x56 3x3 256-256", 256, 56, 256},
    {"vgg16 28x28 3x3 256-512", 256, 28, 512},
    {"vgg16 28x28 3x3 512-512", 512, 28, 512},
    {"vgg16 14x14 3x3 512-512", 512, 14, 512},
    {"googlenet 56x56 3x3 64-192", 64, 56, 192},
    {"googlenet 28x28 3x3 96-128", 96, 28, 128},
    {"googlenet 14x14 3x3 112-224", 112, 14, 224},
    {"googlenet 7x7 3x3 192-384", 192, 7, 384},
    {"squeezenet1_1 55x55 3x3 16-64", 16, 55, 64},
    {"squeezenet1_1 27x27 3x3 32-128", 32, 27, 128},
    {"squeezenet1_1 13x13 3x3 64-256", 64, 13, 256},
    {"tiny_yolo_v2 208x208 3x3 16-32", 16, 208, 32},
    {"tiny_yolo_v2 52x52 3x3 64-128", 64, 52, 128},
    {"tiny_yolo_v2 13x13 3x3 512-1024", 512, 13, 1024},
    {"densenet121 28x28 3x3 128-32", 128, 28, 32},
};

static void run_wino(const Bench *b, const Job *j, const Version *v, Part part) {
    Wino w = j->of.wino.call;
    w.version = *v;
    w.weights = j->of.wino.packed[v->algo];
    b->isa->wino_run(&w, part);
}

static uint32_t tasks_wino(const Bench *b, const Job *j, const Version *v) {
    return wino_tasks(&j->of.wino.call.shape, b->isa, v);
}

static void make_wino(const Bench *b, const void *of, Job *j) {
    const WinoRow *r = of;
    uint32_t       lanes = b->isa->lanes, n = r->size;
    ConvShape      s = {1, r->ic, n, n, r->oc, n, n, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    size_t         in = (size_t)(r->ic + lanes - 1) / lanes * lanes * n * n;
    size_t         columns = (size_t)(r->oc + lanes - 1) / lanes * lanes;
    const float   *weights = numbers(j->arena, (size_t)r->oc * r->ic * 9);
    j->flops = 2.0 * n * n * r->oc * r->ic * 9;
    j->run = run_wino;
    j->tasks = tasks_wino;
    j->of.wino.call =
        (Wino){.shape = s,
               .finish = {.bias = numbers(j->arena, columns), .lo = 0, .hi = INFINITY},
               .x = numbers(j->arena, in),
               .y = numbers(j->arena, columns * n * n)};
    for (int a = ALGO_WINOGRAD2; a <= ALGO_WINOGRAD4; a++) {
        size_t count = wino_pack_bytes(&s, b->isa, (Algo)a) / sizeof(float);
        float *packed = arena_alloc(j->arena, count, sizeof *packed, TENSOR_ALIGN);
        wino_pack(&s, b->isa, (Algo)a, weights, packed);
        j->of.wino.packed[a] = packed;
    }
    j->n_versions = wino_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++) {
        size_t bytes = wino_scratch(&s, b->isa, &j->versions[i]);
        if (bytes > j->scratch_bytes) j->scratch_bytes = bytes;
    }
}

// Transposed convolutions.

static const ConvRow deconv_rows[] = {
    {"unet 28x28 2x2/2 256-128", 256, 28, 128, 2, 2, 0, false},
    {"dcgan 16x16 4x4/2 256-128", 256, 16, 128, 4, 2, 1, false},
    {"ppocr 80x80 2x2/2 24-24", 24, 80, 24, 2, 2, 0, false},
};

static void run_deconv(const Bench *b, const Job *j, const Version *v, Part part) {
    Deconv c = j->of.deconv;
    c.version = *v;
    b->isa->deconv(&c, part);
}

static uint32_t tasks_deconv(const Bench *b, const Job *j, const Version *v) {
    return deconv_tasks(&j->of.deconv.shape, b->isa, v);
}

static void make_deconv(const Bench *b, const void *of, Job *j) {
    const ConvRow *r = of;
    uint32_t       lanes = b->isa->lanes, out = (r->size - 1) * r->stride + r->k - 2 * r->pad;
    ConvShape      s = {1,    r->ic,     r->size,   r->size, r->oc, out,    out,    r->k,
                        r->k, r->stride, r->stride, 1,       1,     r->pad, r->pad, 1};
    size_t         columns = (size_t)(r->oc + lanes - 1) / lanes * lanes;
    size_t         in = (size_t)(r->ic + lanes - 1) / lanes * lanes * r->size * r->size;
    j->flops = 2.0 * r->size * r->size * r->oc * r->ic * r->k * r->k;
    j->run = run_deconv;
    j->tasks = tasks_deconv;
    j->of.deconv = (Deconv){.shape = s,
                            .finish = {.bias = numbers(j->arena, columns), .lo = 0, .hi = INFINITY},
                            .x = numbers(j->arena, in),
                            .weights = numbers(j->arena, deconv_pack_bytes(&s, b->isa) / 4),
                            .y = numbers(j->arena, columns * out * out)};
    j->n_versions = deconv_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++) {
        size_t bytes = deconv_scratch(&s, b->isa, &j->versions[i]);
        if (bytes > j->scratch_bytes) j->scratch_bytes = bytes;
    }
}

// Measuring.

typedef struct Family {
    const char *name;
    const void *rows;
    size_t      row_bytes, n_rows;
    void (*make)(const Bench *b, const void *row, Job *j);
} Family;

#define ROWS(array) array, sizeof *(array), sizeof(array) / sizeof *(array)
static const Family families[] = {
    {"conv", ROWS(conv_rows), make_conv},       {"gemm", ROWS(gemm_rows), make_gemm},
    {"attend", ROWS(attend_rows), make_attend}, {"recur", ROWS(recur_rows), make_recur},
    {"winograd", ROWS(wino_rows), make_wino},   {"deconv", ROWS(deconv_rows), make_deconv}};

// The least of many short samples: what others on the machine do only ever adds.
static TimeNs measure_part(const Bench *b, const Job *j, const Version *v, Part part,
                           TimeNs patience) {
    TimeNs least = INT64_MAX, end = clock_now(b->clock) + patience;
    for (int i = 0; i < LEAST_SAMPLES || clock_now(b->clock) < end; i++) {
        TimeNs start = clock_now(b->clock);
        j->run(b, j, v, part);
        TimeNs took = clock_now(b->clock) - start;
        if (took < least) least = took;
    }
    return least;
}

// A long run is cut into parts that are measured by themselves: on a busy machine nothing longer
// than a millisecond or two passes undisturbed.
static void measure(Bench *b, Job *j, uint32_t v) {
    const Version *version = &j->versions[v];
    uint32_t       tasks = j->tasks(b, j, version);
    TimeNs         sum = 0;
    TimeNs         whole = measure_part(b, j, version, (Part){0, 1, j->scratch}, 0);
    uint32_t       n = (uint32_t)(whole / SAMPLE_NS) + 1;
    if (n > tasks) n = tasks;
    for (uint32_t i = 0; i < n; i++)
        sum += measure_part(b, j, version, (Part){i, n, j->scratch}, b->patience / n);
    if (j->least[v] == 0 || sum < j->least[v]) j->least[v] = sum;
    if (v % 8 == 0) b->peak = fmax(b->peak, probe_fma_peak(b->isa));
}

static void report(const Bench *b, const Job *j, const char *family, const char *name, Table *t) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < j->n_versions; i++)
        if (j->least[i] < j->least[best]) best = i;
    const Version *v = &j->versions[best];
    double         guess = j->flops / (double)j->least[0], top = j->flops / (double)j->least[best];
    table_row(t);
    table_text(t, family);
    table_text(t, name);
    table_int(t, j->least[0]);
    table_real(t, guess);
    table_real(t, guess / b->peak);
    table_real(t, top);
    table_real(t, top / b->peak);
    table_int(t, j->n_versions);
    table_textf(t, "%s %ux%u r%u c%u d%u%s%s", algo_name(v->algo), v->tile_rows, v->tile_vecs,
                v->rows, v->columns, v->depth, v->order == ORDER_INPUT ? " input" : "",
                v->pack > 0 ? " packed" : "");
}

static Err bench_row(Bench *b, const Family *f, const void *row, const char *name, Table *t) {
    Arena a = {0};
    TRY(arena_init(&a, (size_t)1 << 32));
    Job j = {.arena = &a};
    f->make(b, row, &j);
    j.scratch = arena_alloc(&a, j.scratch_bytes + 1, 1, TENSOR_ALIGN);
    for (uint32_t v = 0; v < j.n_versions; v++) {
        measure(b, &j, v);
        if (v % 8 == 7 || v + 1 == j.n_versions) measure(b, &j, 0);
    }
    report(b, &j, f->name, name, t);
    arena_finish(&a);
    return ERR_OK;
}

static bool wanted(const char *family, const char *name, int n, char **words) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (strncmp(words[i], "--", 2) == 0) continue;
        any = true;
        if (strstr(family, words[i]) != NULL || strstr(name, words[i]) != NULL) return true;
    }
    return !any;
}

static bool flag(int n, char **words, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], name) == 0) return true;
    return false;
}

static Err bench_all(Bench *b, int n, char **words, Table *t) {
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (size_t i = 0; i < families[f].n_rows; i++) {
            const void *row = (const char *)families[f].rows + i * families[f].row_bytes;
            const char *name = *(const char *const *)row;
            if (wanted(families[f].name, name, n, words))
                TRY(bench_row(b, &families[f], row, name, t));
        }
    return ERR_OK;
}

static Err start(Arena *a, bool quick, Bench *b) {
    Cpu cpu = {0};
    TRY(isa_choose(&b->isa));
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    b->caches = probe_caches(&cpu);
    b->clock = clock_steady();
    b->patience = quick ? 2000000 : 20000000;
    b->peak = probe_fma_peak(b->isa);
    return ERR_OK;
}

static Err show(const Bench *b, const Table *t, bool json) {
    if (!json) {
        printf("%s, FMA peak %.1f GFLOP/s\n", b->isa->name, b->peak);
        return table_print(t, stdout);
    }
    json_t *rows = NULL;
    TRY(table_json(t, &rows));
    json_t *all = json_pack("{s:s, s:f, s:o}", "isa", b->isa->name, "fma_peak_gflops", b->peak,
                            "kernels", rows);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for the JSON text");
    json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return ERR_OK;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "family", .head = "family"},
        {.key = "name", .head = "shape"},
        {.key = "guess_ns", .head = "guess", .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "guess_gflops", .head = "GFLOP/s", .decimals = 1},
        {.key = "guess_share", .head = "of peak", .unit = "%", .scale = 0.01, .decimals = 1},
        {.key = "best_gflops", .head = "best", .decimals = 1},
        {.key = "best_share", .head = "of peak", .unit = "%", .scale = 0.01, .decimals = 1},
        {.key = "versions", .head = "versions"},
        {.key = "best", .head = "by"},
    };
    Arena a = {0};
    Bench b = {0};
    Table t;
    Err   e = arena_init(&a, (size_t)1 << 30);
    table_init(&t, &a, cols, sizeof cols / sizeof *cols);
    if (e == ERR_OK) e = start(&a, flag(argc, argv, "--quick"), &b);
    if (e == ERR_OK) e = bench_all(&b, argc - 1, argv + 1, &t);
    if (e == ERR_OK) e = show(&b, &t, flag(argc, argv, "--json"));
    if (e != ERR_OK) fprintf(stderr, "bench_kernels: %s\n", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}

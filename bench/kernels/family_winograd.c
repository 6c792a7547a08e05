// Winograd convolution. FLOPs are those of the direct convolution, so that shares of peak above 100
// % show the saved multiplications.
#include <math.h>

#include "base/tensor.h"
#include "bench/kernels/job.h"

typedef struct WinogradRow {
    const char *name;
    uint32_t    ic, size, oc;
} WinogradRow;

static const WinogradRow winograd_rows[] = {
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

static void run_winograd(const Bench *b, const Job *j, const Version *v, Part part) {
    Winograd w = j->of.winograd.call;
    w.version = *v;
    w.weights = j->of.winograd.packed[v->algo];
    b->isa->winograd(&w, part);
}

static uint32_t tasks_winograd(const Bench *b, const Job *j, const Version *v) {
    return winograd_tasks(&j->of.winograd.call.shape, b->isa, v);
}

static void make_winograd(const Bench *b, const void *of, Job *j) {
    const WinogradRow *r = of;
    uint32_t           lanes = b->isa->lanes, n = r->size;
    ConvShape          s = {1, r->ic, n, n, r->oc, n, n, 3, 3, 1, 1, 1, 1, 1, 1, 1, .id = 0};
    size_t             in = (size_t)(r->ic + lanes - 1) / lanes * lanes * n * n;
    size_t             columns = (size_t)(r->oc + lanes - 1) / lanes * lanes;
    const float       *weights = job_numbers(j, (size_t)r->oc * r->ic * 9);
    j->flops = 2.0 * n * n * r->oc * r->ic * 9;
    j->run = run_winograd;
    j->tasks = tasks_winograd;
    j->of.winograd.call =
        (Winograd){.shape = s,
                   .epilogue = {.bias = job_numbers(j, columns), .lo = 0, .hi = INFINITY},
                   .x = job_numbers(j, in),
                   .y = job_numbers(j, columns * n * n)};
    for (int a = ALGO_WINOGRAD2; a <= ALGO_WINOGRAD4; a++) {
        size_t count = winograd_pack_bytes(&s, b->isa, (Algo)a) / sizeof(float);
        float *packed = arena_alloc(j->arena, count, sizeof *packed, TENSOR_ALIGN);
        winograd_pack(&s, b->isa, (Algo)a, weights, packed);
        j->of.winograd.packed[a] = packed;
    }
    j->n_versions = winograd_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, winograd_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_winograd = {"winograd", ROWS(winograd_rows), make_winograd};

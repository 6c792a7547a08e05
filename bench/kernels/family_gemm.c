// Products: a row is m x k times packed weights k x n, or stacks of products of two tensors.
#include <math.h>

#include "bench/kernels/job.h"

typedef struct GemmRow {
    const char *name;
    uint32_t    m, n, k, batch;  // batch 0: packed weights
    bool        transposed;      // b of a batch
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
    size_t         batch = r->batch > 0 ? r->batch : 1;
    float         *weights = job_numbers(j, batch * r->n * r->k), *packed = weights;
    if (r->batch == 0) {
        packed = job_numbers(j, gemm_pack_bytes(r->n, r->k, b->isa) / sizeof(float));
        gemm_pack(r->n, r->k, weights, r->n, false, 1, b->isa, packed);
    } else {
        s.packed = false;
        s.batch[2] = r->batch;
        s.a.batch[2] = (size_t)r->m * r->k;
        s.b =
            (GemmOperand){r->transposed ? r->k : r->n, {0, 0, (size_t)r->n * r->k}, r->transposed};
        s.y.batch[2] = (size_t)r->m * r->n;
    }
    j->flops = 2.0 * r->m * r->n * r->k * (double)batch;
    j->run = run_gemm;
    j->tasks = tasks_gemm;
    j->of.gemm = (Gemm){.shape = s,
                        .epilogue = {.lo = -INFINITY, .hi = INFINITY},
                        .a = job_numbers(j, batch * r->m * r->k),
                        .b = packed,
                        .y = job_numbers(j, batch * r->m * r->n)};
    j->n_versions = gemm_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, gemm_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_gemm = {"gemm", ROWS(gemm_rows), make_gemm};

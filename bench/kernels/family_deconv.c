// Transposed convolutions.
#include <math.h>

#include "bench/kernels/job.h"

typedef struct DeconvRow {
    const char *name;
    uint32_t    ic, size, oc, k, stride, pad;
} DeconvRow;

static const DeconvRow deconv_rows[] = {
    {"unet 28x28 2x2/2 256-128", 256, 28, 128, 2, 2, 0},
    {"dcgan 16x16 4x4/2 256-128", 256, 16, 128, 4, 2, 1},
    {"ppocr 80x80 2x2/2 24-24", 24, 80, 24, 2, 2, 0},
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
    const DeconvRow *r = of;
    uint32_t         lanes = b->isa->lanes, out = (r->size - 1) * r->stride + r->k - 2 * r->pad;
    ConvShape        s = {1,         r->ic,     r->size, r->size, r->oc,  out,    out, r->k,   r->k,
                          r->stride, r->stride, 1,       1,       r->pad, r->pad, 1,   .id = 0};
    size_t           columns = (size_t)(r->oc + lanes - 1) / lanes * lanes;
    size_t           in = (size_t)(r->ic + lanes - 1) / lanes * lanes * r->size * r->size;
    j->flops = 2.0 * r->size * r->size * r->oc * r->ic * r->k * r->k;
    j->run = run_deconv;
    j->tasks = tasks_deconv;
    j->of.deconv = (Deconv){.shape = s,
                            .epilogue = {.bias = job_numbers(j, columns), .lo = 0, .hi = INFINITY},
                            .x = job_numbers(j, in),
                            .weights = job_numbers(j, deconv_pack_bytes(&s, b->isa) / 4),
                            .y = job_numbers(j, columns * out * out)};
    j->n_versions = deconv_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, deconv_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_deconv = {"deconv", ROWS(deconv_rows), make_deconv};

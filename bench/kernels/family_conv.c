// Convolutions.
#include <math.h>

#include "bench/kernels/job.h"

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
    ConvShape      s = {1,         r->ic,     r->size, r->size, r->oc,  out,    out, r->k,   r->k,
                        r->stride, r->stride, 1,       1,       r->pad, r->pad, 1,   .id = 0};
    size_t         in = (size_t)(r->ic + lanes - 1) / lanes * lanes * r->size * r->size;
    size_t         columns = (size_t)(r->oc + lanes - 1) / lanes * lanes;
    float         *packed = job_numbers(j, conv_pack_bytes(&s, b->isa, r->plain) / sizeof(float));
    j->flops = 2.0 * out * out * r->oc * r->ic * r->k * r->k;
    j->run = run_conv;
    j->tasks = tasks_conv;
    conv_pack(&s, b->isa, r->plain, job_numbers(j, (size_t)r->oc * r->ic * r->k * r->k), packed);
    j->of.conv = (Conv){.shape = s,
                        .epilogue = {.bias = job_numbers(j, columns), .lo = 0, .hi = INFINITY},
                        .x = job_numbers(j, in),
                        .weights = packed,
                        .y = job_numbers(j, columns * out * out)};
    j->n_versions = conv_versions(&s, b->isa, r->plain, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, conv_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_conv = {"conv", ROWS(conv_rows), make_conv};

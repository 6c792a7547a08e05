// Job: one kernel on one shape to measure, and the families of kernels that create jobs.
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "kernel/fused_attention.h"
#include "kernel/conv.h"
#include "kernel/deconv.h"
#include "kernel/gemm.h"
#include "kernel/gated_rnn.h"
#include "kernel/winograd.h"

enum { MAX_VERSIONS = 64 };

typedef struct Bench {
    const Isa *isa;
    CacheSizes caches;
    Clock      clock;
    TimeNs     budget;  // per version
    double     peak;    // highest measured FMA rate, GFLOP/s
} Bench;

// Filled in by a family.
typedef struct Job {
    double   flops;
    Version  versions[MAX_VERSIONS];
    uint32_t n_versions;
    TimeNs   shortest[MAX_VERSIONS];
    size_t   scratch_bytes;
    void    *scratch;
    void (*run)(const Bench *b, const struct Job *j, const Version *v, Part part);
    uint32_t (*tasks)(const Bench *b, const struct Job *j, const Version *v);
    union {
        Conv           conv;
        Gemm           gemm;
        FusedAttention attention;
        GatedRnn       rnn;
        struct {
            Winograd     call;
            const float *packed[ALGO_COUNT];
        } winograd;
        Deconv deconv;
    } of;
    Arena *arena;  // of this job
} Job;

typedef struct Family {
    const char *name;
    const void *rows;
    size_t      row_bytes, n_rows;
    void (*make)(const Bench *b, const void *row, Job *j);
} Family;

#define ROWS(array) array, sizeof *(array), sizeof(array) / sizeof *(array)

extern const Family family_conv, family_gemm, family_attention, family_rnn, family_winograd,
    family_deconv;

float *job_numbers(Job *j, size_t n);           // random, seeded, aligned
void   job_need(Job *j, size_t scratch_bytes);  // raises scratch_bytes to at least this

// Arguments of the program: words select rows by family or name (none: all), flags start with --.
bool bench_wanted(const char *family, const char *name, int n, char **words);
bool bench_flag(int n, char **words, const char *name);

#include "bench/kernels/job.h"

#include "base/rng.h"
#include "base/tensor.h"

float *job_numbers(Job *j, size_t n) {
    float *x = arena_alloc(j->arena, n, sizeof *x, TENSOR_ALIGN);
    Rng    r = {n};
    for (size_t i = 0; i < n; i++) x[i] = rng_unit(&r) - 0.5F;
    return x;
}

void job_need(Job *j, size_t scratch_bytes) {
    if (scratch_bytes > j->scratch_bytes) j->scratch_bytes = scratch_bytes;
}

#include "bench/kernels/job.h"

#include <string.h>

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

bool bench_wanted(const char *family, const char *name, int n, char **words) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (strncmp(words[i], "--", 2) == 0) continue;
        any = true;
        if (strstr(family, words[i]) != NULL || strstr(name, words[i]) != NULL) return true;
    }
    return !any;
}

bool bench_flag(int n, char **words, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], name) == 0) return true;
    return false;
}

#include "bench/kernels/timing.h"

#include <math.h>

#include "base/cpu.h"
#include "kernel/probe.h"

enum { SAMPLES_MIN = 5, SAMPLE_NS = 1500000 };

// The shortest of many samples: other load on the machine only adds time.
static TimeNs measure_part(const Bench *b, const Job *j, const Version *v, Part part,
                           TimeNs budget) {
    TimeNs shortest = INT64_MAX, end = clock_now(b->clock) + budget;
    for (int i = 0; i < SAMPLES_MIN || clock_now(b->clock) < end; i++) {
        TimeNs start = clock_now(b->clock);
        j->run(b, j, v, part);
        TimeNs took = clock_now(b->clock) - start;
        if (took < shortest) shortest = took;
    }
    return shortest;
}

// A long run is measured in parts: on a busy machine only samples of a millisecond or two run
// undisturbed.
void timing_measure(Bench *b, Job *j, uint32_t v) {
    const Version *version = &j->versions[v];
    uint32_t       tasks = j->tasks(b, j, version);
    TimeNs         sum = 0;
    TimeNs         whole = measure_part(b, j, version, (Part){0, 1, j->scratch}, 0);
    uint32_t       n = (uint32_t)(whole / SAMPLE_NS) + 1;
    if (n > tasks) n = tasks;
    for (uint32_t i = 0; i < n; i++)
        sum += measure_part(b, j, version, (Part){i, n, j->scratch}, b->budget / n);
    if (j->shortest[v] == 0 || sum < j->shortest[v]) j->shortest[v] = sum;
    if (v % 8 == 0) b->peak = fmax(b->peak, probe_fma_peak(b->isa));
}

uint32_t timing_best(const Job *j) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < j->n_versions; i++)
        if (j->shortest[i] < j->shortest[best]) best = i;
    return best;
}

Err timing_start(Arena *a, bool quick, Bench *b) {
    Cpu cpu = {0};
    TRY(isa_choose(&b->isa));
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    b->caches = probe_caches(&cpu);
    b->clock = clock_monotonic();
    b->budget = quick ? 2000000 : 20000000;
    b->peak = probe_fma_peak(b->isa);
    return ERR_OK;
}

// What a reader of traces accepts keeps its promises, and our own format gives it back unchanged.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/trace/job_trace.h"
#include "cluster/trace/trace_stats.h"
#include "tests/fuzz/fuzz.h"

static inline void trace_fuzz_promise(int kept) {
    if (!kept) abort();
}

static inline void trace_fuzz_check(const JobList *l) {
    for (uint32_t i = 0; i < l->n; i++) {
        const Job *j = &l->at[i];
        trace_fuzz_promise(j->submit >= 0 && j->submit <= JOB_TIME_MAX);
        trace_fuzz_promise(j->work >= JOB_UNKNOWN && j->work <= JOB_TIME_MAX);
        trace_fuzz_promise(j->gpus <= JOB_GPUS_MAX && j->id != NULL);
        trace_fuzz_promise(j->gpu_milli == (j->gpus > 0 ? 1000u : 0u) ||
                           (j->gpus == 1 && j->gpu_milli > 0 && j->gpu_milli < 1000));
        trace_fuzz_promise(j->model == JOB_NONE || j->model < l->n_models);
        trace_fuzz_promise(j->tenant == JOB_NONE || j->tenant < l->n_tenants);
        trace_fuzz_promise(i == 0 || j[-1].submit < j->submit ||
                           (j[-1].submit == j->submit && j[-1].row < j->row));
    }
}

static inline void trace_fuzz_same(const JobList *l, const JobList *m) {
    trace_fuzz_promise(l->n == m->n);
    for (uint32_t i = 0; i < l->n; i++) {
        const Job *a = &l->at[i], *b = &m->at[i];
        trace_fuzz_promise(strcmp(a->id, b->id) == 0 && a->submit == b->submit);
        trace_fuzz_promise(a->work == b->work && a->gpus == b->gpus && a->class == b->class);
        trace_fuzz_promise(a->gpu_milli == b->gpu_milli && a->cores_milli == b->cores_milli);
        trace_fuzz_promise(a->memory_mib == b->memory_mib && a->priority == b->priority);
        trace_fuzz_promise(a->iterations == b->iterations && a->iteration == b->iteration);
        trace_fuzz_promise(a->deadline == b->deadline);
        trace_fuzz_promise(strcmp(job_model(l, a), job_model(m, b)) == 0);
        trace_fuzz_promise(strcmp(job_tenant(l, a), job_tenant(m, b)) == 0);
    }
}

static inline void trace_fuzz_round(const JobList *l, Arena *a) {
    char   *text = NULL;
    size_t  len = 0;
    JobList again;
    FILE   *f = open_memstream(&text, &len);
    trace_fuzz_promise(f != NULL);
    trace_write(f, l);
    trace_fuzz_promise(fclose(f) == 0);
    trace_fuzz_promise(trace_parse("again", text, len, "plain", NULL, a, &again) == ERR_OK);
    trace_fuzz_same(l, &again);
    free(text);
}

static inline void trace_fuzz_one(const char *format, const uint8_t *data, size_t size) {
    static const IterationTime rate[] = {{"m", 1, 0.5, 10}};
    const IterationTimes       rates = {(IterationTime *)(uintptr_t)rate, 1};
    JobTraceOptions            o = {.rates = &rates};
    Arena                      a;
    JobList                    l;
    TraceStats                 s;
    if (arena_init(&a, (size_t)1 << 26) != ERR_OK) abort();
    if (trace_parse("fuzz", (const char *)data, size, format, &o, &a, &l) == ERR_OK) {
        trace_fuzz_check(&l);
        trace_fuzz_round(&l, &a);
        trace_fuzz_promise(trace_stats(&l, &a, &s) == ERR_OK && s.jobs == l.n);
    }
    arena_finish(&a);
}

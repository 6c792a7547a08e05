#include "cli/repeat.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/term.h"
#include "base/stats.h"

typedef struct Engine {
    const ShapedGraph    *shaped;
    const ProgramOptions *options;
    const Tensor         *inputs;
    Program               program;
    RunMemory             mem;
    Team                 *team;
    bool                  reference;
} Engine;

static Err engine_open(Engine *e, uint32_t threads) {
    if (e->reference) return ERR_OK;
    TRY(program_make(&e->program, e->shaped, e->options));
    if (threads > 1) TRY(team_create(&e->team, threads, NULL));
    return run_memory_init(&e->mem, &e->program, threads);
}

static void engine_close(Engine *e) {
    team_destroy(e->team);
    run_memory_finish(&e->mem);
    program_finish(&e->program);
}

static Err engine_run(Engine *e, Arena *a, Tensor *outputs) {
    if (e->reference) return interp_run(e->shaped, e->inputs, &e->options->limits, a, outputs);
    return program_run(&e->program, &e->mem, e->team, e->inputs, a, outputs);
}

static Err time_runs(Repeat *r, Engine *e, Arena *a, Tensor *outputs) {
    Clock    clock = clock_monotonic();
    Progress bar;
    double  *ms = arena_try_new(a, double, (size_t)r->times);
    if (ms == NULL) return err_set(ERR_LIMIT, "no memory for %lld times", (long long)r->times);
    size_t mark = a->used;
    progress_begin(&bar, stderr, clock, "running", r->times);
    Err err = ERR_OK;
    for (int64_t i = 0; err == ERR_OK && i < r->times; i++) {
        arena_rewind(a, mark);
        TimeNs start = clock_now(clock);
        err = engine_run(e, a, outputs);
        ms[i] = (double)(clock_now(clock) - start) / 1e6;
        progress_step(&bar, 1);
    }
    progress_end(&bar);
    return err != ERR_OK ? err : stats_sort(a, ms, (size_t)r->times, &r->ms);
}

Err repeat_run(Repeat *r, const ShapedGraph *s, const Tensor *inputs, const ProgramOptions *o,
               Arena *a, Tensor *outputs) {
    Engine e = {.shaped = s, .options = o, .inputs = inputs, .reference = r->reference};
    Err    err = engine_open(&e, (uint32_t)r->threads);
    if (err == ERR_OK) err = engine_run(&e, a, outputs);
    if (err == ERR_OK && r->times > 0) err = time_runs(r, &e, a, outputs);
    engine_close(&e);
    return err;
}

void repeat_print(const Repeat *r) {
    if (r->times == 0) return;
    size_t n = (size_t)r->times;
    printf("%zu runs, %lld thread%s, %s: min %.3f ms, p50 %.3f, p90 %.3f, p99 %.3f, max %.3f\n", n,
           (long long)r->threads, r->threads == 1 ? "" : "s",
           r->reference ? "reference" : "compiled", r->ms[0], stats_percentile(r->ms, n, 50),
           stats_percentile(r->ms, n, 90), stats_percentile(r->ms, n, 99), r->ms[n - 1]);
}

json_t *repeat_json(const Repeat *r) {
    if (r->times == 0) return NULL;
    size_t n = (size_t)r->times;
    return json_pack("{s:I,s:I,s:b,s:f,s:f,s:f,s:f,s:f}", "runs", (json_int_t)r->times, "threads",
                     (json_int_t)r->threads, "reference", r->reference, "min_ms", r->ms[0],
                     "p50_ms", stats_percentile(r->ms, n, 50), "p90_ms",
                     stats_percentile(r->ms, n, 90), "p99_ms", stats_percentile(r->ms, n, 99),
                     "max_ms", r->ms[n - 1]);
}

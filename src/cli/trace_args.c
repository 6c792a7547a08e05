#include "cli/trace_args.h"

#include <string.h>

#include "eval/trace_run.h"

void trace_args_rows(TraceArgs *t, ArgRow *rows) {
    TraceWindow *w = &t->window;
    t->format = "auto";
    const ArgRow all[TRACE_ARG_ROWS] = {
        {"format", ARG_TEXT, &t->format, "F",
         "plain, philly, helios, openb, muri, chronus, tiresias, lucid, pollux, gavel, synergy "
         "(default auto)",
         0, 0},
        {"unit", ARG_TEXT, &t->unit, "U", "unit of times without one: ms, s or min", 0, 0},
        {"rates", ARG_TEXT, &t->rates, "FILE",
         "CSV of seconds per iteration, for traces that count iterations", 0, 0},
        {"gpu-type", ARG_TEXT, &t->gpu_type, "T", "GPU type to take from --rates (default v100)", 0,
         0},
        {"from", ARG_TEXT, &w->from, "T",
         "jobs submitted at T or later: 90, 15m, 12h, 3d, or a date", 0, 0},
        {"to", ARG_TEXT, &w->to, "T", "jobs submitted before T", 0, 0},
        {"skip", ARG_INT, &w->skip, "N", "skip the first N of the selected jobs", 0, INT64_MAX},
        {"jobs", ARG_INT, &w->jobs, "N", "at most N jobs (default: all)", 0, INT64_MAX},
        {"min-s", ARG_INT, &w->min_s, "S", "jobs of at least S seconds", 0, INT64_MAX},
        {"max-s", ARG_INT, &w->max_s, "S", "jobs of at most S seconds", 0, INT64_MAX},
        {"min-gpus", ARG_INT, &w->min_gpus, "N", "jobs of at least N GPUs", 0, INT64_MAX},
        {"max-gpus", ARG_INT, &w->max_gpus, "N", "jobs of at most N GPUs", 0, INT64_MAX},
        {"known", ARG_FLAG, &w->known, NULL, "only jobs with a known duration", 0, 0},
        {"rebase", ARG_FLAG, &w->rebase, NULL,
         "shift times so that the first job is submitted at 0", 0, 0},
    };
    memcpy(rows, all, sizeof all);
}

void trace_args_some(TraceArgs *t, ArgRow *rows) {
    const TraceWindow *w = &t->window;
    const void        *own[] = {&w->skip, &w->jobs, &w->max_s, &w->known, &w->rebase};
    ArgRow             all[TRACE_ARG_ROWS];
    uint32_t           n = 0;
    trace_args_rows(t, all);
    for (uint32_t i = 0; i < TRACE_ARG_ROWS; i++) {
        bool left = false;
        for (uint32_t k = 0; k < sizeof own / sizeof *own; k++) left = left || all[i].to == own[k];
        if (!left) rows[n++] = all[i];
    }
}

static Err unit_of(const char *text, TimeNs *out) {
    static const struct {
        const char *name;
        TimeNs      ns;
    } units[] = {{"ms", 1000000}, {"s", JOB_SECOND}, {"min", 60 * JOB_SECOND}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, text) == 0) {
            *out = units[i].ns;
            return ERR_OK;
        }
    return err_set(ERR_ARG, "--unit %.40s: give ms, s or min", text);
}

Err trace_args_options(const TraceArgs *t, Arena *a, JobTraceOptions *out) {
    JobTraceOptions o = {.window = t->window};
    if (t->unit != NULL) TRY(unit_of(t->unit, &o.unit));
    if (t->rates != NULL) {
        IterationTimes *rates = arena_new(a, IterationTimes, 1);
        TRY(iteration_times_read(t->rates, t->gpu_type, a, rates));
        o.rates = rates;
    }
    *out = o;
    return ERR_OK;
}

Err trace_args_read(const TraceArgs *t, const char *path, Arena *a, JobList *out) {
    JobTraceOptions o;
    TRY(trace_args_options(t, a, &o));
    return trace_run_jobs(path, t->format, &o, a, out);
}

// cotenant cluster trace stats, trace convert: statistics of a job trace, and conversion to CSV.
#include <stdio.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/table.h"
#include "cli/cluster_args.h"
#include "cli/commands.h"
#include "cluster/trace/job_trace.h"
#include "cluster/trace/synth.h"
#include "cluster/trace/trace_stats.h"

enum { GROUPS_SHOWN = 20 };

typedef struct Options {
    TraceArgs   trace;
    const char *path, *out;
    int64_t     gpus;
    bool        json;
} Options;

static void print_time(const char *what, double seconds) {
    printf("%-12s ", what);
    if (seconds < 600)
        printf("%.6g s\n", seconds);
    else if (seconds < 2 * 86400)
        printf("%.0f s (%.1f h)\n", seconds, seconds / 3600);
    else
        printf("%.0f s (%.1f days)\n", seconds, seconds / 86400);
}

static Err print_groups(const char *what, const TraceGroups *g, const TraceStats *s, Arena *a) {
    const Column cols[] = {
        {.key = "name", .head = what},
        {.key = "jobs", .head = "jobs"},
        {.key = "share", .head = "share", .unit = "%", .scale = 0.01, .decimals = 2},
        {.key = "gpu_hours", .head = "GPU hours", .decimals = 1},
    };
    Table t;
    if (g->n < 2 && g->n > 0 && g->at[0].name != NULL && g->at[0].name[0] == '\0') return ERR_OK;
    table_init(&t, a, cols, sizeof cols / sizeof *cols);
    for (uint32_t i = 0; i < g->n && i < GROUPS_SHOWN; i++) {
        const TraceGroup *x = &g->at[i];
        table_row(&t);
        if (x->name == NULL)
            table_int(&t, x->gpus);
        else
            table_text(&t, x->name[0] != '\0' ? x->name : "(none)");
        table_int(&t, x->jobs);
        table_real(&t, (double)x->jobs / s->jobs);
        table_real(&t, x->gpu_seconds / 3600);
    }
    puts("");
    TRY(table_print(&t, stdout));
    if (g->n > GROUPS_SHOWN) printf("and %u more\n", g->n - GROUPS_SHOWN);
    return ERR_OK;
}

static Err print_stats(const Options *o, const JobList *l, const TraceStats *s, Arena *a) {
    static const char *const names[TRACE_QUANTILES] = {"least", "10 %", "25 %", "median", "75 %",
                                                       "90 %",  "95 %", "99 %", "most"};
    printf("%s: %u jobs, format %s\n", l->name, s->jobs, l->format);
    print_left_out(stdout, l);
    printf("%u jobs share a GPU, %u use none, %u have no known duration\n", s->fractional,
           s->cpu_only, s->unknown);
    print_time("span", (double)(s->last - s->first) / 1e9);
    printf("%-12s %.1f hours", "GPU time", s->gpu_seconds / 3600);
    if (s->last > s->first)
        printf("; load %.3f on %lld GPUs", trace_load(s, (uint64_t)o->gpus), (long long)o->gpus);
    putchar('\n');
    if (s->unknown < s->jobs) {
        puts("\ndurations");
        print_time("mean", s->work_mean_s);
        for (int i = 0; i < TRACE_QUANTILES; i++) print_time(names[i], s->work_s[i]);
    }
    TRY(print_groups("GPUs", &s->sizes, s, a));
    TRY(print_groups("model", &s->models, s, a));
    return print_groups("tenant", &s->tenants, s, a);
}

static json_t *groups_json(const TraceGroups *g) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < g->n; i++) {
        const TraceGroup *x = &g->at[i];
        json_t           *one = json_object();
        if (x->name == NULL)
            json_object_set_new(one, "gpus", json_integer(x->gpus));
        else
            json_object_set_new(one, "name", json_string(x->name));
        json_object_set_new(one, "jobs", json_integer(x->jobs));
        json_object_set_new(one, "gpu_s", json_real(x->gpu_seconds));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *work_json(const TraceStats *s) {
    static const char *const keys[TRACE_QUANTILES] = {"min", "p10", "p25", "p50", "p75",
                                                      "p90", "p95", "p99", "max"};
    json_t                  *d = json_pack("{s:f}", "mean", s->work_mean_s);
    for (int i = 0; i < TRACE_QUANTILES; i++)
        json_object_set_new(d, keys[i], json_real(s->work_s[i]));
    return d;
}

static int print_json(const Options *o, const JobList *l, const TraceStats *s) {
    bool    spans = s->last > s->first;
    json_t *load = spans ? json_real(trace_load(s, (uint64_t)o->gpus)) : json_null();
    return command_json(json_pack(
        "{s:s,s:s,s:i,s:o,s:i,s:i,s:i,s:f,s:f,s:f,s:I,s:o,s:o,s:o,s:o,s:o}", "trace", l->name,
        "format", l->format, "jobs", (int)s->jobs, "left_out", left_out_json(l), "unknown",
        (int)s->unknown, "fractional", (int)s->fractional, "cpu_only", (int)s->cpu_only, "first_s",
        (double)s->first / 1e9, "span_s", (double)(s->last - s->first) / 1e9, "gpu_s",
        s->gpu_seconds, "gpus", (json_int_t)o->gpus, "load", load, "duration_s", work_json(s),
        "sizes", groups_json(&s->sizes), "models", groups_json(&s->models), "tenants",
        groups_json(&s->tenants)));
}

static int describe(const Options *o, Arena *a) {
    JobList    l;
    TraceStats s;
    Err        e = trace_args_read(&o->trace, o->path, a, &l);
    if (e == ERR_OK) e = trace_stats(&l, a, &s);
    if (e == ERR_OK && o->json) return print_json(o, &l, &s);
    if (e == ERR_OK) e = print_stats(o, &l, &s, a);
    return e == ERR_OK ? 0 : command_failed(e);
}

static Err convert(const void *options, Arena *a) {
    const Options *o = options;
    JobList        l;
    AtomicFile     f;
    uint32_t       unknown = 0;
    TRY(trace_args_read(&o->trace, o->path, a, &l));
    for (uint32_t i = 0; i < l.n; i++) unknown += l.at[i].work < 0;
    TRY(file_begin(&f, o->out));
    trace_write(f.out, &l);
    TRY(file_commit(&f));
    (void)fprintf(stderr, "%s: %u jobs\n", o->out, l.n);
    print_left_out(stderr, &l);
    if (unknown > 0)
        (void)fprintf(stderr,
                      "%u of them have no duration; --known leaves them out, --rates FILE converts "
                      "iterations to time\n",
                      unknown);
    return ERR_OK;
}

int cmd_cluster_trace_stats(const Command *c, int argc, char **argv) {
    Options  o = {.gpus = 64};
    uint32_t n = 0;
    Arena    a = {0};
    ArgRow   rows[2 + TRACE_ARG_ROWS] = {
          {"gpus", ARG_INT, &o.gpus, "N", "GPUs that the load refers to (default 64)", 1, 1000000000},
          {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    trace_args_rows(&o.trace, rows + 2);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, &o.path, 1, 1, &n);
    if (code >= 0) return code;
    Err e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    code = e == ERR_OK ? describe(&o, &a) : command_failed(e);
    arena_finish(&a);
    return code;
}

int cmd_cluster_trace_convert(const Command *c, int argc, char **argv) {
    Options  o = {0};
    uint32_t n = 0;
    ArgRow   rows[1 + TRACE_ARG_ROWS] = {
          {"o", ARG_TEXT, &o.out, "OUT.csv", "output file", 0, 0},
    };
    trace_args_rows(&o.trace, rows + 1);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, &o.path, 1, 1, &n);
    if (code >= 0) return code;
    if (o.out == NULL) return args_fail(EXIT_USAGE, "cluster trace convert: give -o OUT.csv");
    return command_run(convert, &o);
}

// cotenant cluster trace synth: generates a job trace with the statistics of real clusters.

typedef struct SynthOptions {
    const char *like, *out;
    int64_t     jobs, seed;
    ArgList     sets;
    bool        settings;
} SynthOptions;

static Err choose(const SynthOptions *o, Arena *a, SynthSettings *s) {
    Settings rows = synth_settings(s, a);
    TRY(synth_load(o->like, a, s));
    for (uint32_t i = 0; i < o->sets.n; i++) TRY(settings_set(&rows, o->sets.at[i]));
    if (o->jobs > 0) s->jobs = o->jobs;
    return ERR_OK;
}

static Err show(SynthSettings *s, Arena *a) {
    Settings rows = synth_settings(s, a);
    Table    t;
    settings_table(&rows, &t);
    return table_print(&t, stdout);
}

static Err synth(const void *options, Arena *a) {
    const SynthOptions *o = options;
    SynthSettings       s;
    JobList             l;
    AtomicFile          f;
    TRY(choose(o, a, &s));
    if (o->settings) return show(&s, a);
    TRY(synth_make(&s, (Rng){(uint64_t)o->seed}, a, &l));
    TRY(file_begin(&f, o->out));
    trace_write(f.out, &l);
    TRY(file_commit(&f));
    (void)fprintf(stderr, "%s: %u jobs over %.1f hours\n", o->out, l.n,
                  (double)(l.at[l.n - 1].submit - l.at[0].submit) / 3600e9);
    return ERR_OK;
}

int cmd_cluster_trace_synth(const Command *c, int argc, char **argv) {
    SynthOptions o = {.seed = 1};
    const ArgRow rows[] = {
        {"o", ARG_TEXT, &o.out, "OUT.csv", "output file", 0, 0},
        {"like", ARG_TEXT, &o.like, "NAME", "settings of a shipped trace, or a YAML file", 0, 0},
        {"jobs", ARG_INT, &o.jobs, "N", "number of jobs (default: of the settings)", 1, 20000000},
        {"seed", ARG_INT, &o.seed, "S", "seed (default 1)", 0, INT64_MAX},
        {"set", ARG_LIST, &o.sets, "KEY=VALUE", "a setting; may be repeated", 0, 0},
        {"settings", ARG_FLAG, &o.settings, NULL, "only print the settings with their meaning", 0,
         0},
    };
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    if (o.out == NULL && !o.settings)
        return args_fail(EXIT_USAGE, "cluster trace synth: give -o OUT.csv");
    return command_run(synth, &o);
}

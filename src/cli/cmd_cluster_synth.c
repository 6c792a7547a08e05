// cotenant cluster trace synth: generates a job trace with the statistics of real clusters.
#include <stdio.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cluster/trace/synth.h"
#include "cluster/trace/job_trace.h"

typedef struct Options {
    const char *like, *out;
    int64_t     jobs, seed;
    ArgList     sets;
    bool        settings;
} Options;

static Err choose(const Options *o, Arena *a, SynthSettings *s) {
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
    const Options *o = options;
    SynthSettings  s;
    JobList        l;
    AtomicFile     f;
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
    Options      o = {.seed = 1};
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

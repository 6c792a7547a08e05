// cotenant cluster simulate: one run of a job trace on a cluster under a policy.
#include <stdio.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/cluster_args.h"
#include "eval/run_file.h"

enum { OWN_ROWS = 4 };

typedef struct Options {
    ClusterSimArgs sim;
    const char    *jobs_out, *records, *experience;
    bool           json;
} Options;

typedef struct Outcomes {
    TraceRun       run;
    ClusterResult  result;
    ClusterSummary summary;
    JobEventLog    log;
    double         wall_s;
} Outcomes;

static Err save_jobs(const Options *o, const Outcomes *x) {
    AtomicFile f;
    if (o->jobs_out == NULL) return ERR_OK;
    TRY(file_begin(&f, o->jobs_out));
    cluster_write_jobs(f.out, &x->run.jobs, &x->result);
    return file_commit(&f);
}

static void print_text(const Outcomes *x) {
    const ClusterSummary *s = &x->summary;
    const ClusterResult  *r = &x->result;
    printf("%s: %u jobs on %u servers with %llu GPUs, rules: %s, policy: %s\n", x->run.jobs.name,
           r->n, x->run.servers.n, (unsigned long long)x->run.servers.gpus, x->run.like,
           x->run.run.policy->name);
    print_left_out(stdout, &x->run.jobs);
    printf("completion   mean %.1f s, median %.1f s, 99 %% %.1f s\n", s->jct_mean_s, s->jct_p50_s,
           s->jct_p99_s);
    printf("waiting      mean %.1f s, 99 %% %.1f s\n", s->queue_mean_s, s->queue_p99_s);
    printf("makespan     %.0f s (%.1f days)\n", s->makespan_s, s->makespan_s / 86400);
    printf("in use       GPUs %.1f %%, cores %.1f %%, memory %.1f %%\n", 100 * r->use.gpus,
           100 * r->use.cores, 100 * r->use.memory);
    printf("preemptions  %llu; fairness %.3f; slowdown %.2f\n", (unsigned long long)r->preemptions,
           s->fairness, s->slowdown_mean);
    printf("simulated in %.2f s: %llu events, %llu decisions, each %.2f us\n", x->wall_s,
           (unsigned long long)r->events, (unsigned long long)r->decisions,
           r->decisions > 0 ? r->decide_ns / 1e3 / (double)r->decisions : 0);
}

static int print_json(const Outcomes *x) {
    const ClusterSummary *s = &x->summary;
    const ClusterResult  *r = &x->result;
    return command_json(json_pack(
        "{s:s,s:s,s:s,s:i,s:o,s:i,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:f,"
        "s:f}",
        "trace", x->run.jobs.name, "policy", x->run.run.policy->name, "like", x->run.like, "jobs",
        (int)r->n, "left_out", left_out_json(&x->run.jobs), "servers", (int)x->run.servers.n,
        "gpus", (json_int_t)x->run.servers.gpus, "jct_mean_s", s->jct_mean_s, "jct_p50_s",
        s->jct_p50_s, "jct_p99_s", s->jct_p99_s, "makespan_s", s->makespan_s, "queue_mean_s",
        s->queue_mean_s, "queue_p99_s", s->queue_p99_s, "preemptions", (json_int_t)r->preemptions,
        "fairness", s->fairness, "slowdown_mean", s->slowdown_mean, "gpu_use", r->use.gpus,
        "core_use", r->use.cores, "memory_use", r->use.memory, "events", (json_int_t)r->events,
        "decisions", (json_int_t)r->decisions, "decision_us",
        r->decisions > 0 ? r->decide_ns / 1e3 / (double)r->decisions : 0.0, "wall_s", x->wall_s));
}

// Records live in `kept`: the memory of the run is rewound.
static Err run(const Options *o, Arena *a, Arena *kept, Outcomes *x) {
    Clock        steady = clock_monotonic();
    TraceRunSpec spec;
    TRY(cluster_sim_args_spec(&o->sim, a, &spec));
    TRY(trace_run_open(&spec, a, &x->run));
    x->run.run.clock = &steady;
    x->run.run.experience = o->experience;
    if (o->records != NULL) {
        job_event_log_open(&x->log, &x->run.run, JOB_EVENT_ALL_JOBS, kept);
        x->run.run.after = job_event_log_note;
        x->run.run.watcher = &x->log;
    }
    TimeNs from = clock_now(steady);
    TRY(cluster_simulate(&x->run.run, a, &x->result));
    x->wall_s = (double)(clock_now(steady) - from) / 1e9;
    TRY(cluster_summary(&x->run.run, &x->result, a, &x->summary));
    TRY(save_jobs(o, x));
    if (o->records == NULL) return ERR_OK;
    TRY(job_event_log_close(&x->log, &x->result));
    json_t *options = cluster_sim_args_json(&o->sim);
    Err     e = cluster_run_file_write(o->records, options, &x->log);
    json_decref(options);
    return e;
}

static Err simulate(const Options *o, Arena *a, Arena *kept, int *code) {
    Outcomes x;
    TRY(run(o, a, kept, &x));
    *code = 0;
    if (o->json)
        *code = print_json(&x);
    else
        print_text(&x);
    return ERR_OK;
}

int cmd_cluster_simulate(const Command *c, int argc, char **argv) {
    Options o = {0};
    ArgRow  rows[OWN_ROWS + CLUSTER_SIM_ARG_ROWS] = {
         {"jobs-out", ARG_TEXT, &o.jobs_out, "FILE", "CSV file with a row per job", 0, 0},
         {"records", ARG_TEXT, &o.records, "FILE",
          "write the events of all jobs as JSON lines; cluster explain reads them", 0, 0},
         {"experience", ARG_TEXT, &o.experience, "FILE",
          "records of the estimator: read before the run, written after it", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    cluster_sim_args_rows(&o.sim, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    if (o.sim.trace == NULL) return args_fail(EXIT_USAGE, "cluster simulate: give --trace FILE");
    if (o.experience != NULL && o.sim.estimator == NULL)
        return args_fail(
            EXIT_USAGE,
            "cluster simulate: --experience needs --estimator shared, attention or both");
    Arena a = {0}, kept = {0};
    Err   e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = arena_init_growing(&kept, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = simulate(&o, &a, &kept, &code);
    if (e != ERR_OK) code = command_failed(e);
    arena_finish(&a);
    arena_finish(&kept);
    return code;
}

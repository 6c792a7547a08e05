// One run of a trace on a cluster under a policy, in virtual time.
#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/file.h"
#include "cli/cluster_choice.h"
#include "cli/commands.h"
#include "cli/trace_args.h"
#include "cluster/assign.h"
#include "cluster/run.h"
#include "cluster/scene.h"

enum { OWN_ROWS = 15 };

typedef struct Options {
    TraceArgs   trace;
    ArgList     sets;
    const char *path, *servers, *policy, *like, *jobs_out, *profiles, *mix;
    int64_t     nodes, gpus, seed, cores, memory_gb;
    double      error;
    bool        json;
} Options;

typedef struct Outcomes {
    JobList       *jobs;
    ServerList     servers;
    ClusterRun     run;
    ClusterResult  result;
    ClusterSummary summary;
    ClusterChoices choices;
    const char    *like;
    double         wall_s;
} Outcomes;

static Err read_servers(const Options *o, Arena *a, ServerList *out) {
    if (o->servers != NULL) return server_list_read(o->servers, a, out);
    Server like = {.gpus = (uint32_t)o->gpus,
                   .cores_milli = (uint32_t)o->cores * 1000,
                   .memory_mib = (uint32_t)(o->memory_gb * 1024),
                   .gpu_type = ""};
    return server_list_equal((uint32_t)o->nodes, &like, a, out);
}

static Err choose(const Options *o, Arena *a, Outcomes *x) {
    ClusterRun *run = &x->run;
    TRY(cluster_choice_read(o->policy, &o->sets, a, &x->choices));
    if (x->choices.n != 1)
        return err_set(ERR_ARG, "--policy %s: one policy runs at a time", o->policy);
    run->policy = x->choices.at[0].policy;
    run->settings = x->choices.at[0].settings;
    run->knows = run->policy->knows;
    if (o->error > 0 && run->knows == CLUSTER_ORACLE) run->knows = CLUSTER_PREDICTED;
    bool found = strcmp(o->like, "auto") == 0;
    x->like = found ? cluster_like(x->jobs, run->policy, o->profiles != NULL) : o->like;
    return cluster_rules(x->like, run->policy, &run->rules);
}

// By Lucid's rules time begins with the first job.
static void rebase(Outcomes *x) {
    TimeNs first = x->jobs->at[0].submit;
    if (strcmp(x->like, "lucid") != 0) return;
    for (uint32_t i = 0; i < x->jobs->n; i++) x->jobs->at[i].submit -= first;
}

// Synergy's simulator knows ten models; what else a trace names runs as alexnet.
static void as_synergy(const ClusterProfiles *p, JobList *l, uint32_t *class_of) {
    static const char *const unknown[] = {"bert", "vae"};
    uint32_t                 stand_in = profile_find(p, "alexnet");
    for (uint32_t i = 0; i < l->n && stand_in != PROFILE_NONE; i++) {
        Job        *j = &l->at[i];
        const char *name = job_model(l, j);
        double      one = p->at[stand_in].iteration_s[0];
        bool        known = profile_find(p, name) != PROFILE_NONE;
        for (int k = 0; k < 2; k++) known = known && strcmp(name, unknown[k]) != 0;
        if (known) continue;
        class_of[i] = stand_in;
        if (!(one > 0) || j->iterations < 1) continue;
        j->iteration = (TimeNs)(one * (double)JOB_SECOND + 0.5);
        if (j->iterations <= JOB_TIME_MAX / j->iteration) j->work = j->iteration * j->iterations;
    }
}

static Err classify(const Options *o, Arena *a, Outcomes *x) {
    bool             synergy = strcmp(x->like, "synergy") == 0;
    bool             shipped = o->profiles != NULL && strcmp(o->profiles, "default") == 0;
    ClusterProfiles *p = NULL;
    Assign           s;
    if (o->profiles == NULL && o->mix != NULL)
        return err_set(ERR_ARG, "--mix: classes come from --profiles; give default, or files");
    if (o->profiles == NULL) return ERR_OK;
    TRY(scene_profiles(o->profiles, synergy && !shipped, &x->servers, a, &p));
    if (p == NULL) return ERR_OK;
    TRY(assign_classes(p, x->jobs, o->mix, rng_fork((Rng){(uint64_t)o->seed}, 2), a, &s));
    if (synergy) as_synergy(p, x->jobs, s.class_of);
    x->run.profiles = p;
    x->run.class_of = s.class_of;
    return ERR_OK;
}

static Err keep_jobs(const Options *o, const Outcomes *x) {
    FileNew f;
    if (o->jobs_out == NULL) return ERR_OK;
    TRY(file_begin(&f, o->jobs_out));
    cluster_write_jobs(f.out, x->jobs, &x->result);
    return file_commit(&f);
}

static void tell(const Outcomes *x) {
    const ClusterSummary *s = &x->summary;
    const ClusterResult  *r = &x->result;
    printf("%s: %u jobs on %u servers with %llu GPUs, rules: %s, policy: %s\n", x->jobs->name, r->n,
           x->servers.n, (unsigned long long)x->servers.gpus, x->like, x->run.policy->name);
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

static int tell_json(const Outcomes *x) {
    const ClusterSummary *s = &x->summary;
    const ClusterResult  *r = &x->result;
    return command_json(json_pack(
        "{s:s,s:s,s:s,s:i,s:i,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:f,s:f}",
        "trace", x->jobs->name, "policy", x->run.policy->name, "like", x->like, "jobs", (int)r->n,
        "servers", (int)x->servers.n, "gpus", (json_int_t)x->servers.gpus, "jct_mean_s",
        s->jct_mean_s, "jct_p50_s", s->jct_p50_s, "jct_p99_s", s->jct_p99_s, "makespan_s",
        s->makespan_s, "queue_mean_s", s->queue_mean_s, "queue_p99_s", s->queue_p99_s,
        "preemptions", (json_int_t)r->preemptions, "fairness", s->fairness, "slowdown_mean",
        s->slowdown_mean, "gpu_use", r->use.gpus, "core_use", r->use.cores, "memory_use",
        r->use.memory, "events", (json_int_t)r->events, "decisions", (json_int_t)r->decisions,
        "decision_us", r->decisions > 0 ? r->decide_ns / 1e3 / (double)r->decisions : 0.0, "wall_s",
        x->wall_s));
}

static Err simulate(const Options *o, Arena *a, int *code) {
    JobList      jobs;
    Outcomes     x = {.jobs = &jobs};
    ClusterSetup setup;
    Clock        steady = clock_steady();
    TRY(trace_args_read(&o->trace, o->path, a, &jobs));
    TRY(read_servers(o, a, &x.servers));
    x.run = (ClusterRun){.jobs = &jobs,
                         .servers = &x.servers,
                         .seed = (uint64_t)o->seed,
                         .error = o->error,
                         .clock = &steady};
    TRY(choose(o, a, &x));
    TRY(classify(o, a, &x));
    rebase(&x);
    TRY(cluster_setup(&x.run, a, &setup));
    TRY(cluster_choice_load(&x.choices.at[0], &setup, a, &x.run.loaded));
    TimeNs from = clock_now(steady);
    TRY(cluster_simulate(&x.run, a, &x.result));
    x.wall_s = (double)(clock_now(steady) - from) / 1e9;
    TRY(cluster_summary(&x.run, &x.result, a, &x.summary));
    TRY(keep_jobs(o, &x));
    *code = 0;
    if (o->json)
        *code = tell_json(&x);
    else
        tell(&x);
    return ERR_OK;
}

int cmd_cluster_simulate(const Command *c, int argc, char **argv) {
    Options o = {.policy = "fifo", .like = "auto", .nodes = 8, .gpus = 8, .seed = 1};
    ArgRow  rows[OWN_ROWS + TRACE_ARG_ROWS] = {
         {"trace", ARG_TEXT, &o.path, "FILE|NAME", "the jobs", 0, 0},
         {"nodes", ARG_INT, &o.nodes, "N", "servers alike (default 8)", 1, SERVERS_MAX},
         {"gpus-per-node", ARG_INT, &o.gpus, "G", "of each (default 8)", 1, CLUSTER_GPUS},
         {"cores-per-node", ARG_INT, &o.cores, "C", "(default 3 a GPU)", 0, 1000000},
         {"memory-per-node", ARG_INT, &o.memory_gb, "GB", "(default 62.5 a GPU)", 0, 1000000},
         {"servers", ARG_TEXT, &o.servers, "FILE", "servers from a file instead", 0, 0},
         {"policy", ARG_TEXT, &o.policy, "NAME", "who decides (default fifo)", 0, 0},
         {"like", ARG_TEXT, &o.like, "RULES",
          "lucid, synergy or own; auto: what fits the jobs (default auto)", 0, 0},
         {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
         {"profiles", ARG_TEXT, &o.profiles, "FILES",
          "how fast classes of jobs are: default, or files over it (default: all alike)", 0, 0},
         {"mix", ARG_TEXT, &o.mix, "\"CLASS:N ...\"",
          "of jobs without a model (default: the classes' weights)", 0, 0},
         {"error", ARG_REAL, &o.error, "E",
          "durations are predicted, off by a factor of e^E on average (default: exact)", 0, 10},
         {"seed", ARG_INT, &o.seed, "S", "of predictions and of classes by lot (default 1)", 0,
          INT64_MAX},
         {"jobs-out", ARG_TEXT, &o.jobs_out, "FILE", "what became of every job, as CSV", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    trace_args_rows(&o.trace, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    if (o.path == NULL) return args_fail(EXIT_USAGE, "cluster simulate: give --trace FILE");
    Arena a = {0};
    Err   e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = simulate(&o, &a, &code);
    if (e != ERR_OK) code = command_failed(e);
    arena_finish(&a);
    return code;
}

// How many jobs a second does the cluster simulator get through on one core, and how much memory
// does a job in flight take? Philly's 82,247 jobs if available (the file as an argument, or
// COTENANT_CLUSTER_DATA names its folder), else as many synthetic ones; then a million synthetic
// jobs on 10,000 GPUs, and a tenth of them. Every row runs in its own process, to measure its
// memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/profile/class_assignment.h"
#include "cluster/profile/profiles.h"
#include "cluster/sim/cluster_run.h"
#include "cluster/trace/synth.h"
#include "cluster/trace/job_trace.h"
#include "policy/policies.h"

enum { PHILLY = 82247, MILLION = 1000000 };

typedef struct Row {
    const char *trace;  // a file; NULL: synthetic
    uint32_t    jobs, servers;
    bool        classes;  // jobs are of the shipped classes
    const char *policy;
} Row;

static void must(Err e) {
    if (e == ERR_OK) return;
    fprintf(stderr, "%s\n", err_why());
    exit(1);
}

static double seconds_of(TimeNs t) { return (double)t / (double)CLUSTER_SECOND; }

// Touched pages stay resident, so that the size after a run is its peak.
static double resident_kib(void) {
    long  all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%ld %ld", &all, &resident) != 2) exit(1);
    (void)fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static JobList jobs_of(const Row *x, Arena *a) {
    JobList l;
    if (x->trace != NULL) {
        must(trace_read(x->trace, "philly", &(JobTraceOptions){0}, a, &l));
        return l;
    }
    SynthSettings s;
    must(synth_load(NULL, a, &s));
    s.jobs = x->jobs;
    s.gpus = (int)x->servers * 8;
    must(synth_make(&s, (Rng){1}, a, &l));
    return l;
}

static void choose(ClusterRun *run, const char *policy, Arena *a) {
    const ClusterPolicy *p = policies_cluster_find(policy);
    ClusterSetup         setup;
    if (p == NULL) exit(1);
    Settings s = {.rows = p->rows, .n_rows = p->n_rows, .arena = a};
    run->policy = p;
    run->knows = p->knows;
    if (p->settings_size > 0) {
        s.values = arena_alloc(a, 1, p->settings_size, 16);
        settings_default(&s);
        run->settings = s.values;
    }
    must(cluster_sim_params("own", p, &run->params));
    must(cluster_setup(run, a, &setup));
    if (p->load != NULL) must(p->load(&setup, run->settings, a, &run->loaded));
}

static void measure(const Row *x) {
    Arena           a, fresh;
    ServerList      servers;
    ClusterProfiles profiles;
    ClassAssignment classes;
    ClusterResult   r;
    Clock           steady = clock_monotonic();
    must(arena_init(&a, (size_t)1 << 36));
    must(arena_init(&fresh, (size_t)1 << 36));
    JobList l = jobs_of(x, &a);
    must(server_list_equal(x->servers, &(ServerSpec){.gpus = 8, .gpu_type = ""}, &a, &servers));
    ClusterRun run = {.jobs = &l, .servers = &servers, .seed = 1, .clock = &steady};
    if (x->classes) {
        must(profile_load(NULL, &a, &profiles));
        must(class_assignment_draw(&profiles, &l, NULL, (Rng){1}, &a, &classes));
        run.profiles = &profiles;
        run.class_of = classes.class_of;
    }
    choose(&run, x->policy, &a);
    double kib = resident_kib();
    TimeNs from = clock_now(steady);
    must(cluster_simulate(&run, &fresh, &r));
    double wall = seconds_of(clock_now(steady) - from);
    double results = (double)(r.n * sizeof *r.ends) / 1024, took = resident_kib() - kib - results;
    printf("%-10s %8u %6u %-13s %-7s %8.2f %10.0f %9.2f %9llu %8u %9.2f\n",
           x->trace != NULL ? "philly" : "made up", r.n, x->servers * 8, x->policy,
           x->classes ? "yes" : "no", wall, r.n / wall, r.decide_ns / 1e9,
           (unsigned long long)r.preemptions, r.most_alive,
           took > 0 ? took / (double)r.most_alive : 0);
    exit(0);
}

static void in_child(const Row *x) {
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) measure(x);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) exit(1);
}

static const char *philly(int argc, char **argv) {
    static char path[4096];
    const char *folder = getenv("COTENANT_CLUSTER_DATA");
    if (argc > 1) return argv[1];
    if (folder == NULL) return NULL;
    (void)snprintf(path, sizeof path, "%s/philly/philly_jobs.csv", folder);
    return access(path, R_OK) == 0 ? path : NULL;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"fifo", "sjf",      "qssf", "srtf",
                                        "srsf", "tiresias", "las",  NULL};
    static const char *const classed[] = {"fifo", "srtf", "synergy_fair", "synergy_tune", NULL};
    static const char *const large[] = {"fifo", "srtf", "tiresias", NULL};
    Row                      x = {.trace = philly(argc, argv), .jobs = PHILLY, .servers = 60};
    printf("%-10s %8s %6s %-13s %-7s %8s %10s %9s %9s %8s %9s\n", "trace", "jobs", "GPUs", "policy",
           "classes", "wall s", "jobs/s", "policy s", "stops", "at once", "KiB each");
    for (int i = 0; names[i] != NULL; i++) {
        x.policy = names[i];
        in_child(&x);
    }
    x.classes = true;
    for (int i = 0; classed[i] != NULL; i++) {
        x.policy = classed[i];
        in_child(&x);
    }
    x = (Row){.jobs = MILLION / 10, .servers = 1250, .policy = "fifo"};
    in_child(&x);
    x.jobs = MILLION;
    for (int i = 0; large[i] != NULL; i++) {
        x.policy = large[i];
        in_child(&x);
    }
    return 0;
}

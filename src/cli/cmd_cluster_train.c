// Weights for the learned policies of a cluster: trains them, shows how they do beside other
// policies, keeps the best.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/term.h"
#include "eval/policy_choice.h"
#include "cli/commands.h"
#include "base/parallel_for.h"
#include "base/option_list.h"
#include "base/stop_signal.h"
#include "learn/weights_file.h"
#include "policy/policies.h"
#include "train/cluster_train.h"
#include "train/drl_pupil.h"
#include "train/maifs_pupil.h"

enum { RIVALS = 4 };

typedef struct Options {
    const char *policy, *traces, *servers, *profiles, *stages, *out, *resume;
    ArgList     sets;
    double      minutes, weight;
    int64_t     steps, seed, threads, jobs, traces_each;
    bool        json;
} Options;

static const char *const stage_names[CLUSTER_STAGES] = {"imitate", "learn", "polish"};

static double percent(double log_ratio) { return 100 * (exp(log_ratio) - 1); }

static void tell_head(const ClusterTrain *t) {
    const ClusterGauge *g = &t->gauge;
    printf("%u cells of validation, %u traces each; against the rule without a network:\n",
           g->n_cells, g->traces);
    for (uint32_t i = 0; i < g->n_rivals; i++)
        printf("  %-20s completion time %+.1f %%, makespan %+.1f %% (%u cells)\n",
               g->rivals[i].name, 100 * (g->rivals[i].jct - 1), 100 * (g->rivals[i].makespan - 1),
               g->rivals[i].cells);
    printf("%10s  %-8s %10s %14s %14s %18s\n", "generation", "stage", "loss", "completion [%]",
           "makespan [%]", "worst to rival [%]");
    printf("%10s  %-8s %10s %+14.2f %+14.2f %+18.2f\n", "", "rule", "", 0.0, 0.0,
           percent(t->rule_mark.worst));
    (void)fflush(stdout);
}

static void tell(const Options *o, const ClusterTrain *t, const ClusterReport *r) {
    if (!r->checked) return;
    const ClusterMark *m = &r->mark;
    if (o->json)
        printf("{\"generation\": %u, \"stage\": \"%s\", \"loss\": %.6g, \"jct\": %.6f, "
               "\"makespan\": %.6f, \"worst\": %.6f, \"score\": %.6f, \"kept\": %s}\n",
               t->generation, stage_names[r->stage], r->loss, exp(m->jct), exp(m->makespan),
               exp(m->worst), m->score, r->better ? "true" : "false");
    else
        printf("%10u  %-8s %10.5f %+14.2f %+14.2f %+18.2f%s\n", t->generation,
               stage_names[r->stage], r->loss, percent(m->jct), percent(m->makespan),
               percent(m->worst), r->better ? "  kept" : "");
    (void)fflush(stdout);
}

static Err save(const Options *o, const ClusterTrain *t, Arena *a) {
    char *facts = arena_printf(
        a,
        "%straces=%s\nservers=%s\njobs=%lld\nseed=%lld\ngenerations=%u\njct=%.4f\nmakespan=%.4f\n",
        t->pupil->facts, o->traces, o->servers, (long long)o->jobs, (long long)o->seed,
        t->generation, exp(t->best_mark.jct), exp(t->best_mark.makespan));
    char *state = arena_printf(a, "%s.training", o->out);
    TRY(weights_save(o->out, facts, t->best));
    return t->generation < cluster_train_total(t) ? cluster_train_save(t, state, a) : ERR_OK;
}

static Err go(const Options *o, ClusterTrain *t, TimeNs start, Arena *a) {
    bool     show = term_is_tty(stderr);
    Progress p;
    uint32_t total = cluster_train_total(t);
    Err      e = ERR_OK;
    if (show) progress_begin(&p, stderr, clock_monotonic(), "training", total);
    if (show) progress_step(&p, t->generation);
    while (e == ERR_OK && t->generation < total && !stop_signal_due(start, o->minutes)) {
        ClusterReport r;
        e = cluster_train_step(t, a, &r);
        if (e == ERR_OK) tell(o, t, &r);
        if (show) progress_step(&p, 1);
    }
    if (show) progress_end(&p);
    TRY(e);
    TRY(save(o, t, a));
    if (t->generation < total)
        (void)fprintf(stderr, "stopped; go on with --resume %s.training\n", o->out);
    return ERR_OK;
}

static Err add_rival(const char *name, const char *policy, const char *set, Arena *a,
                     ClusterGauge *g) {
    const ArgList none = {0};
    PolicyChoices c;
    TRY(policy_choices_read(TIER_CLUSTER, policy, &none, a, &c));
    Settings s = policy_choice_settings(&c.at[0], a);
    if (set != NULL) TRY(settings_set(&s, set));
    g->rivals[g->n_rivals++] =
        (ClusterRival){.name = name, .player = {c.at[0].policy, c.at[0].settings, NULL}};
    return ERR_OK;
}

static Err add_rivals(Arena *a, ClusterGauge *g) {
    g->rivals = arena_new(a, ClusterRival, RIVALS);
    TRY(add_rival("synergy_tune (srtf)", "synergy_tune", "order=srtf", a, g));
    TRY(add_rival("srtf", "srtf", NULL, a, g));
    return add_rival("gandiva", "gandiva", NULL, a, g);
}

static Err open_pupil(const Options *o, const ClusterCourse *course, Arena *a, Pupil **out) {
    PolicyChoices c;
    uint32_t      servers = 0;
    for (uint32_t i = 0; i < course->n; i++)
        if (course->scenes[i].servers.n > servers) servers = course->scenes[i].servers.n;
    TRY(policy_choices_read(TIER_CLUSTER, o->policy, &o->sets, a, &c));
    if (c.n == 1 && c.at[0].policy == &cluster_policy_drl_single)
        return drl_pupil_open(DRL_HIDDEN, c.at[0].settings, (uint64_t)o->seed, a, out);
    if (c.n == 1 && c.at[0].policy == &cluster_policy_maifs)
        return maifs_pupil_open(c.at[0].settings, servers, (uint64_t)o->seed, a, out);
    return err_set(ERR_ARG, "--policy %s: maifs and drl_single can be trained", o->policy);
}

static Err open_course(const Options *o, Arena *a, ClusterCourse *out) {
    ClusterCourseOptions co = {.jobs = (uint32_t)o->jobs, .profiles = o->profiles};
    const char         **traces, **servers;
    TRY(option_list_words("trace", o->traces, a, &traces, &co.n_traces));
    TRY(option_list_words("servers", o->servers, a, &servers, &co.n_servers));
    co.traces = traces;
    co.servers = servers;
    return cluster_course_open(&co, a, out);
}

static Err train(const Options *o, Arena *a) {
    ClusterCourse course;
    ClusterTrain  t = {.seed = (uint64_t)o->seed};
    Runs         *runs;
    uint32_t      stages;
    TimeNs        start = clock_now(clock_monotonic());
    TRY(option_list_flags("stages", o->stages, stage_names, CLUSTER_STAGES, a, &stages));
    TRY(open_course(o, a, &course));
    TRY(open_pupil(o, &course, a, &t.pupil));
    TRY(runs_create(&runs, parallel_threads(o->threads), a));
    stop_signal_listen();
    t.plan = cluster_plan((uint32_t)o->steps, stages);
    t.gauge = (ClusterGauge){
        .course = &course, .runs = runs, .traces = (uint32_t)o->traces_each, .weight = o->weight};
    Err e = add_rivals(a, &t.gauge);
    if (e == ERR_OK) e = cluster_train_open(&t, a);
    if (e == ERR_OK && o->resume != NULL) e = cluster_train_resume(&t, o->resume, a);
    if (e == ERR_OK && !o->json) tell_head(&t);
    if (e == ERR_OK) e = go(o, &t, start, a);
    runs_destroy(runs);
    return e;
}

int cmd_cluster_train(const Command *c, int argc, char **argv) {
    Options      o = {.policy = "maifs",
                      .traces = "synth:philly_small,synth:openb_small",
                      .servers = "4,8",
                      .stages = "imitate,learn,polish",
                      .weight = 1,
                      .steps = 120,
                      .seed = 1,
                      .jobs = 300,
                      .traces_each = 8};
    const ArgRow rows[] = {
        {"policy", ARG_TEXT, &o.policy, "NAME", "maifs or drl_single (default maifs)", 0, 0},
        {"trace", ARG_TEXT, &o.traces, "LIST",
         "traces to learn by (default synth:philly_small,synth:openb_small)", 0, 0},
        {"servers", ARG_TEXT, &o.servers, "LIST",
         "clusters, each a number of servers or a file "
         "(default 4,8)",
         0, 0},
        {"profiles", ARG_TEXT, &o.profiles, "FILES", "of job classes, over the shipped ones", 0, 0},
        {"jobs", ARG_INT, &o.jobs, "N", "of a run, at most (default 300)", 10, 100000},
        {"steps", ARG_INT, &o.steps, "N", "generations (default 120)", 1, 100000},
        {"minutes", ARG_REAL, &o.minutes, "M", "stop after so long, between two generations", 0,
         100000},
        {"stages", ARG_TEXT, &o.stages, "LIST", "of imitate, learn, polish (default all)", 0, 0},
        {"weight", ARG_REAL, &o.weight, "W",
         "of the makespan beside the completion time's 1 (default 1)", 0, 100},
        {"checks", ARG_INT, &o.traces_each, "N", "traces of a cell of validation (default 8)", 1,
         1000},
        {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE", "a setting, to be set when used as well", 0,
         0},
        {"seed", ARG_INT, &o.seed, "S", "of everything (default 1)", 0, INT32_MAX},
        {"threads", ARG_INT, &o.threads, "N", "at once (default: all cores)", 1, CORES_MAX},
        {"o", ARG_TEXT, &o.out, "FILE", "where the weights go (default POLICY.weights)", 0, 0},
        {"resume", ARG_TEXT, &o.resume, "FILE", "goes on with a training that was stopped", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "a JSON object a line", 0, 0},
    };
    int   code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    Arena a = {0};
    if (code >= 0) return code;
    Err e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK && o.out == NULL) o.out = arena_printf(&a, "%s.weights", o.policy);
    if (e == ERR_OK) e = train(&o, &a);
    code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

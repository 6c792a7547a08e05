// Weights for relmas: trains them, shows how they do beside other policies, keeps the best.
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/term.h"
#include "cli/commands.h"
#include "base/parallel_for.h"
#include "base/option_list.h"
#include "base/stop_signal.h"
#include "policy/chip/relmas/relmas.h"
#include "policy/policies.h"
#include "train/relmas_train.h"

enum { GENERATIONS = 64 };

typedef struct Options {
    const char *chips, *mixes, *stages, *out, *resume;
    ArgList     sets;
    double      minutes, ts;
    int64_t     steps, seed, hidden, threads;
    bool        json;
} Options;

static const ChipPolicy *const rivals[] = {&chip_policy_edf,      &chip_policy_least_slack,
                                           &chip_policy_planaria, &chip_policy_prema,
                                           &chip_policy_dream,    NULL};

static const char *const stage_names[TRAIN_STAGES] = {"imitate", "ddpg", "polish"};

static void tell_head(const RelmasTrain *t) {
    const Gauge *g = &t->gauge;
    printf("%u cells of validation, %u traces each: best other policy %.2f %% in time (the best of "
           "each cell), %s %.2f %%\n",
           g->n_cells, g->traces, 100 * g->best_mean, g->rival, 100 * g->rival_mean);
    printf("the rule without a network: %.2f %%\n", 100 * t->rule_mark.mean);
    printf("%10s  %-8s %10s %12s %12s %12s\n", "generation", "stage", "loss", "in time [%]",
           "gained [%]", "worst [%]");
}

static void tell(const Options *o, const RelmasTrain *t, const TrainReport *r) {
    if (!r->checked) return;
    double gained = 100 * (r->mark.mean - t->gauge.best_mean);
    if (o->json)
        printf("{\"generation\": %u, \"stage\": \"%s\", \"loss\": %.6g, \"sla\": %.6f, "
               "\"best_other\": "
               "%.6f, \"worst_gain\": %.6f, \"kept\": %s}\n",
               t->generation, stage_names[r->stage], r->loss, r->mark.mean, t->gauge.best_mean,
               r->mark.worst, r->better ? "true" : "false");
    else
        printf("%10u  %-8s %10.5f %12.2f %+12.2f %+12.2f%s\n", t->generation, stage_names[r->stage],
               r->loss, 100 * r->mark.mean, gained, 100 * r->mark.worst, r->better ? "  kept" : "");
    (void)fflush(stdout);
}

static Err save(const Options *o, const RelmasTrain *t, Arena *a) {
    char *facts =
        arena_printf(a, "chips=%s\nmixes=%s\nseed=%lld\ngenerations=%u\nvalidation=%.4f\n",
                     o->chips, o->mixes, (long long)o->seed, t->generation, t->best_mark.mean);
    char *state = arena_printf(a, "%s.training", o->out);
    TRY(relmas_weights_save(o->out, t->gauge.actor.trunk.hidden, t->best, facts, a));
    return t->generation < relmas_train_total(t) ? relmas_train_save(t, state, a) : ERR_OK;
}

static Err go(const Options *o, RelmasTrain *t, Arena *a) {
    bool     show = term_is_tty(stderr);
    Progress p;
    TimeNs   start = clock_now(clock_monotonic());
    uint32_t total = relmas_train_total(t);
    Err      e = ERR_OK;
    if (show) progress_begin(&p, stderr, clock_monotonic(), "training", total);
    if (show) progress_step(&p, t->generation);
    while (e == ERR_OK && t->generation < total && !stop_signal_due(start, o->minutes)) {
        TrainReport r;
        e = relmas_train_step(t, a, &r);
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

static Err read_settings(const ArgList *sets, Arena *a, RelmasSettings *out) {
    Settings s = {chip_policy_relmas.rows, chip_policy_relmas.n_rows, out, a};
    settings_default(&s);
    for (uint32_t i = 0; i < sets->n; i++)
        if (settings_set(&s, sets->at[i]) != ERR_OK)
            return err_add(ERR_ARG, "--set %s", sets->at[i]);
    return ERR_OK;
}

static Err train(const Options *o, Arena *a) {
    CourseOptions  co = {.period_us = o->ts};
    const char   **chips, **mixes;
    Course         course;
    Runs          *runs;
    RelmasTrain    t;
    RelmasSettings settings = {0};
    uint32_t       stages;
    TRY(option_list_flags("stages", o->stages, stage_names, TRAIN_STAGES, a, &stages));
    TRY(read_settings(&o->sets, a, &settings));
    TRY(option_list_words("chip", o->chips, a, &chips, &co.n_chips));
    TRY(option_list_words("mix", o->mixes, a, &mixes, &co.n_mixes));
    co.chips = chips;
    co.mixes = mixes;
    TRY(course_open(&co, a, &course));
    TRY(runs_create(&runs, parallel_threads(o->threads), a));
    stop_signal_listen();
    Err e = relmas_train_open(&t, &course, runs, rivals, &settings, (uint32_t)o->hidden,
                              train_plan((uint32_t)o->steps, stages), (uint64_t)o->seed, a);
    if (e == ERR_OK && o->resume != NULL) e = relmas_train_resume(&t, o->resume, a);
    if (e == ERR_OK && !o->json) tell_head(&t);
    if (e == ERR_OK) e = go(o, &t, a);
    runs_destroy(runs);
    return e;
}

int cmd_chip_train(const Command *c, int argc, char **argv) {
    Options      o = {.chips = "4+4,2+2,6+2",
                      .mixes = "light,heavy,mixed",
                      .stages = "imitate,ddpg,polish",
                      .out = "relmas.weights",
                      .steps = GENERATIONS,
                      .seed = 1,
                      .hidden = RELMAS_HIDDEN};
    const ArgRow rows[] = {
        {"chip", ARG_TEXT, &o.chips, "LIST", "packages or YAML files (default 4+4,2+2,6+2)", 0, 0},
        {"mix", ARG_TEXT, &o.mixes, "LIST", "workloads (default light,heavy,mixed)", 0, 0},
        {"steps", ARG_INT, &o.steps, "N", "generations (default 64)", 1, 100000},
        {"minutes", ARG_REAL, &o.minutes, "M", "stop after so long, between two generations", 0,
         100000},
        {"stages", ARG_TEXT, &o.stages, "LIST", "of imitate, ddpg, polish (default all)", 0, 0},
        {"set", ARG_LIST, &o.sets, "KEY=VALUE", "a setting of relmas, to be set when used as well",
         0, 0},
        {"seed", ARG_INT, &o.seed, "S", "of everything (default 1)", 0, INT32_MAX},
        {"hidden", ARG_INT, &o.hidden, "H", "size of the network (default 32)", 1,
         RELMAS_HIDDEN_MAX},
        {"ts", ARG_REAL, &o.ts, "US", "period T_s (default: the package's)", 0, 1000000},
        {"threads", ARG_INT, &o.threads, "N", "at once (default: all cores)", 1, CORES_MAX},
        {"o", ARG_TEXT, &o.out, "FILE", "where the weights go (default relmas.weights)", 0, 0},
        {"resume", ARG_TEXT, &o.resume, "FILE", "goes on with a training that was stopped", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "a JSON object a line", 0, 0},
    };
    int   code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    Arena a = {0};
    if (code >= 0) return code;
    Err e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = train(&o, &a);
    code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

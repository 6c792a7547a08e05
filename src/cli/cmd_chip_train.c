// chip train: trains the network of relmas, evaluates it beside other policies and keeps the best.
#include <stdio.h>

#include "base/cpu.h"
#include "base/option_list.h"
#include "cli/train_command.h"
#include "policy/policies.h"
#include "train/chip_evaluator.h"
#include "train/trainees.h"

enum { GENERATIONS = 64, TRACES = 3 };

typedef struct Options {
    TrainArgs   train;
    const char *chips, *mixes;
    ArgList     sets;
    double      period_us;
    int64_t     hidden;
} Options;

typedef struct ChipTraining {
    const Options *o;
    ChipEvaluator  evaluator;
} ChipTraining;

static const ChipPolicy *const baselines[] = {&chip_policy_edf,      &chip_policy_least_slack,
                                              &chip_policy_planaria, &chip_policy_prema,
                                              &chip_policy_dream,    NULL};

static void print_head(void *self, const Trainer *t) {
    const ChipEvaluator *e = &((const ChipTraining *)self)->evaluator;
    printf("%u cells of validation, %u traces each: best other policy %.2f %% in time (the best of "
           "each cell), %s %.2f %%\n",
           e->n_cells, e->traces, 100 * e->best_mean, e->baseline, 100 * e->baseline_mean);
    printf("the rule without a network: %.2f %%\n", 100 * t->rule_score.values[CHIP_SCORE_MEAN]);
    printf("%10s  %-8s %10s %12s %12s %12s\n", "generation", "stage", "loss", "in time [%]",
           "gained [%]", "worst [%]");
}

static void print_row(void *self, const Trainer *t, const TrainReport *r) {
    const ChipTraining *c = self;
    const char         *stage = train_stage_names[r->stage];
    double mean = r->score.values[CHIP_SCORE_MEAN], worst = r->score.values[CHIP_SCORE_WORST];
    double other = c->evaluator.best_mean;
    if (c->o->train.json)
        printf("{\"generation\": %u, \"stage\": \"%s\", \"loss\": %.6g, \"sla\": %.6f, "
               "\"best_other\": "
               "%.6f, \"worst_gain\": %.6f, \"kept\": %s}\n",
               t->generation, stage, r->loss, mean, other, worst, r->better ? "true" : "false");
    else
        printf("%10u  %-8s %10.5f %12.2f %+12.2f %+12.2f%s\n", t->generation, stage, r->loss,
               100 * mean, 100 * (mean - other), 100 * worst, r->better ? "  kept" : "");
}

static Err save(void *self, const Trainer *t, Arena *a) {
    const Options *o = ((const ChipTraining *)self)->o;
    char          *facts = arena_printf(
                 a, "chips=%s\nmixes=%s\nseed=%lld\ngenerations=%u\nvalidation=%.4f\n", o->chips, o->mixes,
                 (long long)o->train.seed, t->generation, t->best_score.values[CHIP_SCORE_MEAN]);
    return relmas_weights_save(o->train.out, (uint32_t)o->hidden, t->best, facts, a);
}

static Err read_settings(const ArgList *sets, Arena *a, RelmasSettings *out) {
    Settings s = {chip_policy_relmas.rows, chip_policy_relmas.n_rows, out, a};
    settings_default(&s);
    out->drop = false;  // as the shipped weights were trained
    for (uint32_t i = 0; i < sets->n; i++)
        if (settings_set(&s, sets->at[i]) != ERR_OK)
            return err_add(ERR_ARG, "--set %s", sets->at[i]);
    return ERR_OK;
}

static Err open_curriculum(const Options *o, Arena *a, ChipCurriculum *out) {
    ChipCurriculumOptions co = {.period_us = o->period_us};
    const char          **chips, **mixes;
    TRY(option_list_words("chip", o->chips, a, &chips, &co.n_chips));
    TRY(option_list_words("mix", o->mixes, a, &mixes, &co.n_mixes));
    co.chips = chips;
    co.mixes = mixes;
    return chip_curriculum_open(&co, a, out);
}

static Err train(const Options *o, Arena *a) {
    ChipCurriculum curriculum;
    RelmasSettings settings = {0};
    Trainer        t = {0};
    TimeNs         start = clock_now(clock_monotonic());
    TRY(train_args_plan(&o->train, &chip_train_defaults, a, &t.plan));
    TRY(read_settings(&o->sets, a, &settings));
    TRY(open_curriculum(o, a, &curriculum));
    ChipTraining c = {.o = o,
                      .evaluator = {.curriculum = &curriculum,
                                    .policy = &chip_policy_relmas,
                                    .baselines = baselines,
                                    .traces = TRACES}};
    chip_evaluator_init(&c.evaluator);
    t.evaluator = &c.evaluator.evaluator;
    t.trainee = relmas_trainee_open(&curriculum, &settings, (uint32_t)o->hidden,
                                    (uint64_t)o->train.seed, a);
    TrainCommand command = {&o->train, print_head, print_row, save, &c};
    return train_command_run(&command, &t, start, a);
}

int cmd_chip_train(const Command *c, int argc, char **argv) {
    Options      o = {.train = {.stages = TRAIN_ARGS_STAGES,
                                .out = "relmas.weights",
                                .generations = GENERATIONS,
                                .seed = 1},
                      .chips = "4+4,2+2,6+2",
                      .mixes = "light,heavy,mixed",
                      .hidden = RELMAS_HIDDEN};
    const ArgRow rows[] = {
        {"chip", ARG_TEXT, &o.chips, "LIST", "packages or YAML files (default 4+4,2+2,6+2)", 0, 0},
        {"mix", ARG_TEXT, &o.mixes, "LIST", "workloads (default light,heavy,mixed)", 0, 0},
        {"set", ARG_LIST, &o.sets, "KEY=VALUE",
         "a setting of relmas; set it when the weights are used, too", 0, 0},
        {"hidden", ARG_INT, &o.hidden, "H", "hidden units of the network (default 32)", 1,
         RELMAS_HIDDEN_MAX},
        {"ts", ARG_REAL, &o.period_us, "US", "period T_s (default: the package's)", 0, 1000000},
        TRAIN_ARGS_ROWS(&o.train, "generations (default 64)",
                        "weights file to write (default relmas.weights)"),
    };
    int   code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    Arena a = {0};
    if (code >= 0) return code;
    Err e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = train(&o, &a);
    code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

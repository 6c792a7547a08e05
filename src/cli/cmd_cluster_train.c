// cluster train: trains the network of maifs or drl_single, evaluates it beside other policies and
// keeps the best; or trains the beliefs of the estimator.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/option_list.h"
#include "cli/cluster_args.h"
#include "cli/cluster_train_beliefs.h"
#include "cli/train_command.h"
#include "eval/policy_choice.h"
#include "learn/weights_file.h"
#include "policy/cluster/drl/drl.h"
#include "policy/policies.h"
#include "train/cluster_evaluator.h"
#include "train/trainees.h"

enum {
    GENERATIONS = 120,
    STANCE_GENERATIONS = 40,
    BELIEF_GENERATIONS = 400,
    TUNE_GENERATIONS = 96,
    BASELINES = 3
};

typedef struct Options {
    TrainArgs   train;
    const char *policy, *traces, *servers, *profiles, *information, *estimator, *start;
    bool        fine_tune;
    ArgList     sets;
    double      makespan_weight;
    int64_t     jobs, traces_each;
} Options;

typedef struct ClusterTraining {
    const Options   *o;
    ClusterEvaluator evaluator;
} ClusterTraining;

static double percent(double log_ratio) { return 100 * (exp(log_ratio) - 1); }

static void print_head(void *self, const Trainer *t) {
    const ClusterEvaluator *e = &((const ClusterTraining *)self)->evaluator;
    printf("%u cells of validation, %u traces each; against the rule without a network:\n",
           e->n_cells, e->traces);
    for (uint32_t i = 0; i < e->n_baselines; i++)
        printf("  %-20s completion time %+.1f %%, makespan %+.1f %% (%u cells)\n",
               e->baselines[i].name, 100 * (e->baselines[i].jct - 1),
               100 * (e->baselines[i].makespan - 1), e->baselines[i].cells);
    printf("%10s  %-8s %10s %14s %14s %18s\n", "generation", "stage", "loss", "completion [%]",
           "makespan [%]", "worst to best [%]");
    printf("%10s  %-8s %10s %+14.2f %+14.2f %+18.2f\n", "", "rule", "", 0.0, 0.0,
           percent(t->rule_score.values[CLUSTER_SCORE_WORST]));
    (void)fflush(stdout);
}

static void print_row(void *self, const Trainer *t, const TrainReport *r) {
    const Options *o = ((const ClusterTraining *)self)->o;
    const double  *v = r->score.values;
    const char    *stage = train_stage_names[r->stage];
    double         loss = r->stage == TRAIN_FINETUNE ? r->fitness : r->loss;
    double         jct = v[CLUSTER_SCORE_JCT], makespan = v[CLUSTER_SCORE_MAKESPAN];
    if (o->train.json)
        printf("{\"generation\": %u, \"stage\": \"%s\", \"loss\": %.6g, \"jct\": %.6f, "
               "\"makespan\": %.6f, \"worst\": %.6f, \"score\": %.6f, \"kept\": %s}\n",
               t->generation, stage, loss, exp(jct), exp(makespan), exp(v[CLUSTER_SCORE_WORST]),
               r->score.objective, r->better ? "true" : "false");
    else
        printf("%10u  %-8s %10.5f %+14.2f %+14.2f %+18.2f%s\n", t->generation, stage, loss,
               percent(jct), percent(makespan), percent(v[CLUSTER_SCORE_WORST]),
               r->better ? "  kept" : "");
}

static Err save(void *self, const Trainer *t, Arena *a) {
    const Options *o = ((const ClusterTraining *)self)->o;
    const double  *v = t->best_score.values;
    char          *facts = arena_printf(
                 a,
                 "%straces=%s\nservers=%s\njobs=%lld\nseed=%lld\ngenerations=%u\njct=%.4f\nmakespan=%.4f\n",
                 t->trainee->facts, o->traces, o->servers, (long long)o->jobs, (long long)o->train.seed,
                 t->generation, exp(v[CLUSTER_SCORE_JCT]), exp(v[CLUSTER_SCORE_MAKESPAN]));
    return weights_save(o->train.out, facts, t->best);
}

static Err add_baseline(ClusterEvaluator *e, const char *name, const char *policy, const char *set,
                        Arena *a) {
    const ArgList none = {0};
    PolicyChoices c;
    TRY(policy_choices_read(TIER_CLUSTER, policy, &none, a, &c));
    Settings s = policy_choice_settings(&c.at[0], a);
    if (set != NULL) TRY(settings_set(&s, set));
    e->baselines[e->n_baselines++] =
        (ClusterBaseline){.name = name, .policy = c.at[0].policy, .settings = c.at[0].settings};
    return ERR_OK;
}

static Err add_baselines(ClusterEvaluator *e, Arena *a) {
    e->baselines = arena_new(a, ClusterBaseline, BASELINES);
    TRY(add_baseline(e, "synergy_tune (srtf)", "synergy_tune", "order=srtf", a));
    TRY(add_baseline(e, "srtf", "srtf", NULL, a));
    return add_baseline(e, "gandiva", "gandiva", NULL, a);
}

static bool trains_stance(const Options *o) { return strcmp(o->policy, "stance") == 0; }

static Err open_trainee(const Options *o, const PolicyChoice *choice, const ClusterCurriculum *c,
                        Arena *a, Trainee **out) {
    uint64_t seed = (uint64_t)o->train.seed;
    uint32_t servers = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->scenarios[i].servers.n > servers) servers = c->scenarios[i].servers.n;
    if (trains_stance(o))
        return stance_trainee_open(c, choice->settings, o->makespan_weight, seed, a, out);
    *out = choice->policy == &cluster_policy_maifs
               ? maifs_trainee_open(c, choice->settings, servers, seed, a)
               : drl_trainee_open(c, choice->settings, DRL_HIDDEN, seed, a);
    return ERR_OK;
}

static Err read_policy(const Options *o, Arena *a, PolicyChoice *out) {
    PolicyChoices c;
    const char   *name = trains_stance(o) ? "maifs" : o->policy;
    TRY(policy_choices_read(TIER_CLUSTER, name, &o->sets, a, &c));
    *out = c.at[0];
    if (c.n == 1 &&
        (out->policy == &cluster_policy_maifs || out->policy == &cluster_policy_drl_single))
        return ERR_OK;
    return err_set(ERR_ARG, "--policy %s: maifs, stance, drl_single and beliefs can be trained",
                   o->policy);
}

// A stance is to suit all that a scheduler may be told.
enum { TOLD = 3 };
static const struct {
    const char *information, *estimator;
} stance_told[TOLD] = {{"perfect", "off"}, {"realistic", "shared"}, {"blind", "shared"}};

static Err open_curriculum(const Options *o, Arena *a, ClusterCurriculum *out) {
    ClusterCurriculumOptions co = {.jobs = (uint32_t)o->jobs, .profiles = o->profiles};
    const char             **traces, **servers;
    Information              told[TOLD] = {0};
    co.information = told;
    co.n_information = trains_stance(o) && o->information == NULL ? TOLD : 1;
    for (uint32_t i = 0; i < co.n_information; i++) {
        bool set = co.n_information > 1;
        TRY(information_read(set ? stance_told[i].information : o->information, a, &told[i]));
        TRY(cluster_estimator_read(set ? stance_told[i].estimator : o->estimator, a, &told[i]));
    }
    TRY(option_list_words("trace", o->traces, a, &traces, &co.n_traces));
    TRY(option_list_words("servers", o->servers, a, &servers, &co.n_servers));
    co.traces = traces;
    co.servers = servers;
    return cluster_curriculum_open(&co, a, out);
}

static Err train_beliefs(const Options *o, Arena *a) {
    TrainArgs           train = o->train;
    ClusterTrainBeliefs x = {&train, o->fine_tune ? o->traces : NULL, o->start};
    train.stages = train_stage_names[TRAIN_IMITATE];
    return cluster_train_beliefs(&x, a);
}

static Err train(const Options *o, Arena *a) {
    ClusterCurriculum curriculum;
    PolicyChoice      choice;
    Trainer           t = {0};
    TimeNs            start = clock_now(clock_monotonic());
    TrainDefaults     defaults = cluster_train_defaults;
    if (trains_stance(o)) {
        defaults.plan.beat_rule = true;
        memcpy(defaults.parts, (uint32_t[TRAIN_STAGES]){0, 3, 1}, sizeof defaults.parts);
    }
    TRY(train_args_plan(&o->train, &defaults, a, &t.plan));
    TRY(read_policy(o, a, &choice));
    TRY(open_curriculum(o, a, &curriculum));
    ClusterTraining c = {.o = o,
                         .evaluator = {.curriculum = &curriculum,
                                       .policy = choice.policy,
                                       .traces = (uint32_t)o->traces_each,
                                       .makespan_weight = o->makespan_weight}};
    TRY(add_baselines(&c.evaluator, a));
    cluster_evaluator_init(&c.evaluator, a);
    t.evaluator = &c.evaluator.evaluator;
    TRY(open_trainee(o, &choice, &curriculum, a, &t.trainee));
    TrainCommand command = {&o->train, print_head, print_row, save, &c};
    return train_command_run(&command, &t, start, a);
}

int cmd_cluster_train(const Command *c, int argc, char **argv) {
    Options      o = {.train = {.stages = TRAIN_ARGS_STAGES, .seed = 1},
                      .start = "",
                      .policy = "maifs",
                      .traces = "synth:philly_small,synth:openb_small",
                      .servers = "4,8",
                      .makespan_weight = 1,
                      .jobs = 300,
                      .traces_each = 8};
    const ArgRow rows[] = {
        {"policy", ARG_TEXT, &o.policy, "NAME",
         "maifs, stance: what maifs does beside it, drl_single, or beliefs: those of the estimator "
         "(default maifs)",
         0, 0},
        {"trace", ARG_TEXT, &o.traces, "LIST",
         "traces to train on (default synth:philly_small,synth:openb_small)", 0, 0},
        {"servers", ARG_TEXT, &o.servers, "LIST",
         "clusters, each a number of servers or a file (default 4,8)", 0, 0},
        {"profiles", ARG_TEXT, &o.profiles, "FILES",
         "profiles of job classes, over the shipped ones", 0, 0},
        CLUSTER_INFORMATION_ARG(&o.information),
        CLUSTER_ESTIMATOR_ARG(&o.estimator),
        {"jobs", ARG_INT, &o.jobs, "N", "jobs of a run, at most (default 300)", 10, 100000},
        {"weight", ARG_REAL, &o.makespan_weight, "W",
         "weight of the makespan; completion time has 1 (default 1)", 0, 100},
        {"checks", ARG_INT, &o.traces_each, "N", "traces of each validation cell (default 8)", 1,
         1000},
        {"fine-tune", ARG_FLAG, &o.fine_tune, NULL,
         "beliefs: goes on from trained weights, on the jobs of --trace", 0, 0},
        {"from", ARG_TEXT, &o.start, "FILE",
         "beliefs: weights that fine-tuning starts from (default: the shipped ones)", 0, 0},
        {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE",
         "a setting; set it when the weights are used, too", 0, 0},
        TRAIN_ARGS_ROWS(&o.train, "generations (default 120; of beliefs 400, 96 to fine-tune)",
                        "weights file to write (default POLICY.weights)"),
    };
    int   code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    Arena a = {0};
    if (code >= 0) return code;
    Err e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK && o.train.out == NULL) o.train.out = arena_printf(&a, "%s.weights", o.policy);
    bool beliefs = strcmp(o.policy, "beliefs") == 0;
    if (o.train.generations == 0)
        o.train.generations = trains_stance(&o) ? STANCE_GENERATIONS
                              : !beliefs        ? GENERATIONS
                              : o.fine_tune     ? TUNE_GENERATIONS
                                                : BELIEF_GENERATIONS;
    if (e == ERR_OK) e = beliefs ? train_beliefs(&o, &a) : train(&o, &a);
    code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

#include "cli/cluster_train_beliefs.h"

#include <stdio.h>

#include "cluster/cluster_scenario.h"
#include "eval/trace_run.h"
#include "estimator/belief_net.h"
#include "policy/embedded_weights.h"
#include "train/belief_trainee.h"

static const double HISTORY = 0.6;  // of a trace's time; the rest is for measurement

static void print_head(void *self, const Trainer *t) {
    (void)self;
    printf(
        "negative log likelihoods on 64 samples that training never draws; before: %.4f and %.4f\n",
        t->rule_score.values[BELIEF_SCORE_LEFT], t->rule_score.values[BELIEF_SCORE_SPEED]);
    printf("%10s %10s %12s %12s\n", "generation", "loss", "work left", "speed");
    (void)fflush(stdout);
}

static void print_row(void *self, const Trainer *t, const TrainReport *r) {
    const ClusterTrainBeliefs *x = self;
    const double              *v = r->score.values;
    if (x->train->json)
        printf(
            "{\"generation\": %u, \"loss\": %.6g, \"left\": %.6f, \"speed\": %.6f, \"kept\": %s}\n",
            t->generation, r->loss, v[BELIEF_SCORE_LEFT], v[BELIEF_SCORE_SPEED],
            r->better ? "true" : "false");
    else
        printf("%10u %10.4f %12.4f %12.4f%s\n", t->generation, r->loss, v[BELIEF_SCORE_LEFT],
               v[BELIEF_SCORE_SPEED], r->better ? "  kept" : "");
}

static Err save(void *self, const Trainer *t, Arena *a) {
    const ClusterTrainBeliefs *x = self;
    const double              *v = t->best_score.values;
    char *facts = arena_printf(a, "%sseed=%lld\ngenerations=%u\nleft=%.4f\nspeed=%.4f\n%s",
                               t->trainee->facts, (long long)x->train->seed, t->generation,
                               v[BELIEF_SCORE_LEFT], v[BELIEF_SCORE_SPEED], t->evaluator->facts);
    return weights_save(x->train->out, facts, t->best);
}

// As scenarios do.
static void drop_long(JobList *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].work <= CLUSTER_SCENARIO_MAX_S * JOB_SECOND) l->at[n++] = l->at[i];
    l->n = n;
}

// The first jobs of the trace, by its time.
static Err read_history(const char *trace, Arena *a, JobList *out) {
    JobTraceOptions o = {0};
    TRY(trace_run_jobs(trace, "auto", &o, a, out));
    drop_long(out);
    uint32_t n = 0;
    TimeNs   first = out->n > 0 ? out->at[0].submit : 0;
    TimeNs   span = out->n > 0 ? out->at[out->n - 1].submit - first : 0;
    while (n < out->n && (double)(out->at[n].submit - first) <= HISTORY * (double)span) n++;
    out->n = n;
    if (n >= 100) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s: %u jobs in the first 60 %% of its time are too few to learn from; "
                   "at least 100 are needed",
                   trace, n);
}

Err cluster_train_beliefs(const ClusterTrainBeliefs *x, Arena *a) {
    JobList        history;
    WeightsFile    start;
    Trainer        t = {0};
    TimeNs         begin = clock_now(clock_monotonic());
    BeliefTraining training = {.seed = (uint64_t)x->train->seed,
                               .generations = (uint32_t)x->train->generations};
    if (x->history != NULL) {
        TRY(read_history(x->history, a, &history));
        TRY(embedded_weights_load(x->start, "beliefs", "cluster", BELIEF_FACTS, a, &start));
        if (start.params.n != belief_net_params())
            return err_set(ERR_INVALID, "weights of beliefs: %zu numbers, expected %zu",
                           start.params.n, belief_net_params());
        training.like = &history;
        training.start = start.params.at;
    }
    TRY(train_args_plan(x->train, &belief_train_defaults, a, &t.plan));
    belief_training_open(&training, a, &t.trainee, &t.evaluator);
    TrainCommand command = {x->train, print_head, print_row, save, (void *)x};
    return train_command_run(&command, &t, begin, a);
}

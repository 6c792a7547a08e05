#include "cli/train_command.h"

#include <stdio.h>

#include "base/option_list.h"
#include "base/parallel_for.h"
#include "base/stop_signal.h"
#include "base/term.h"
#include "learn/weights_file.h"

static Err run_generations(const TrainCommand *c, Trainer *t, TimeNs start, Arena *a) {
    bool     show = term_is_tty(stderr);
    Progress p;
    uint32_t total = trainer_total(t);
    Err      e = ERR_OK;
    if (show) progress_begin(&p, stderr, clock_monotonic(), "training", total);
    if (show) progress_step(&p, t->generation);
    while (e == ERR_OK && t->generation < total && !stop_signal_due(start, c->args->minutes)) {
        TrainReport r;
        e = trainer_step(t, a, &r);
        if (e == ERR_OK && r.checked) {
            c->print_row(c->self, t, &r);
            (void)fflush(stdout);
        }
        if (show) progress_step(&p, 1);
    }
    if (show) progress_end(&p);
    return e;
}

static const char *checkpoint_of(const TrainCommand *c, Arena *a) {
    return arena_printf(a, "%s.training", c->args->out);
}

static Err save(const TrainCommand *c, const Trainer *t, Arena *a) {
    const char *checkpoint = checkpoint_of(c, a);
    TRY(c->save(c->self, t, a));
    if (t->generation == trainer_total(t)) return ERR_OK;
    TRY(trainer_save(t, checkpoint, a));
    (void)fprintf(stderr, "stopped; resume with --resume %s\n", checkpoint);
    return ERR_OK;
}

// Before the training rather than after hours of it.
static Err check_targets(const TrainCommand *c, Arena *a) {
    TRY(weights_check_target(c->args->out));
    return weights_check_target(checkpoint_of(c, a));
}

static Err train(const TrainCommand *c, Trainer *t, TimeNs start, Arena *a) {
    TRY(check_targets(c, a));
    TRY(trainer_open(t, a));
    if (c->args->resume != NULL) TRY(trainer_resume(t, c->args->resume, a));
    if (!c->args->json) c->print_head(c->self, t);
    TRY(run_generations(c, t, start, a));
    return save(c, t, a);
}

Err train_args_plan(const TrainArgs *x, const TrainDefaults *d, Arena *a, TrainPlan *out) {
    uint32_t stages;
    TRY(option_list_flags("stages", x->stages, train_stage_names, TRAIN_STAGES, a, &stages));
    *out = train_plan(d, (uint32_t)x->generations, stages);
    return ERR_OK;
}

Err train_command_run(const TrainCommand *c, Trainer *t, TimeNs start, Arena *a) {
    t->seed = (uint64_t)c->args->seed;
    t->threads = parallel_threads(c->args->threads);
    t->evaluator->threads = t->threads;
    stop_signal_listen();
    Err e = train(c, t, start, a);
    trainer_close(t);
    return e;
}

// TrainCommand: what `chip train` and `cluster train` share: options, the loop over generations,
// progress and files.
#pragma once

#include "base/clock.h"
#include "cli/commands.h"
#include "train/trainer.h"

typedef struct TrainArgs {
    const char *stages, *out, *resume;
    double      minutes;
    int64_t     generations, seed, threads;
    bool        json;
} TrainArgs;

#define TRAIN_ARGS_STAGES "imitate,learn,finetune"

// Rows of the shared options. generations_help names the default.
#define TRAIN_ARGS_ROWS(x, generations_help, out_help)                                               \
    {"steps", ARG_INT, &(x)->generations, "N", generations_help, 1, 100000},                         \
        {"minutes",                                                                                  \
         ARG_REAL,                                                                                   \
         &(x)->minutes,                                                                              \
         "M",                                                                                        \
         "stop after this many minutes, between two generations",                                    \
         0,                                                                                          \
         100000},                                                                                    \
        {"stages", ARG_TEXT, &(x)->stages, "LIST", "of imitate, learn, finetune (default all)",      \
         0,        0},                                                                               \
        {"seed", ARG_INT, &(x)->seed, "S", "of all random numbers (default 1)", 0, INT32_MAX},       \
        {"threads", ARG_INT, &(x)->threads, "N", "threads (default: all cores)", 1, CORES_MAX},      \
        {"o", ARG_TEXT, &(x)->out, "FILE", out_help, 0, 0},                                          \
        {"resume", ARG_TEXT, &(x)->resume, "FILE", "resume from a checkpoint (OUT.training)", 0, 0}, \
    {                                                                                                \
        "json", ARG_FLAG, &(x)->json, NULL, "one JSON object a line", 0, 0                           \
    }

MUST_USE Err train_args_plan(const TrainArgs *x, const TrainDefaults *d, Arena *a, TrainPlan *out);

typedef struct TrainCommand {  // of a tier
    const TrainArgs *args;
    void (*print_head)(void *self, const Trainer *t);
    void (*print_row)(void *self, const Trainer *t, const TrainReport *r);  // of an evaluation
    Err (*save)(void *self, const Trainer *t, Arena *a);  // the best parameters, to args->out
    void *self;
} TrainCommand;

// Trains until all generations are done, the time is over or a signal says stop; the last two leave
// a checkpoint. trainee, evaluator and plan of *t are set. start: when the command began.
MUST_USE Err train_command_run(const TrainCommand *c, Trainer *t, TimeNs start, Arena *a);

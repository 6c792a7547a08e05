// Trainee: a learned policy as the trainer sees it: network parameters and ways to improve them.
// Evaluator: measures parameters on simulated runs.
//
// The trainer (train/trainer.h) knows neither chips nor clusters. A trainee knows its policy and
// its learning algorithm, an evaluator the runs of a tier and the policies to compare with.
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/team.h"
#include "learn/float_vec.h"

typedef struct TrainRound {  // one generation of imitation or learning
    bool     imitate;        // a teacher; else learn by reinforcement
    uint64_t seed;
    uint32_t generation, episodes, updates;
    uint32_t threads;  // that simulate episodes
    Team    *team;     // that computes gradients
} TrainRound;

typedef struct Trainee Trainee;
struct Trainee {
    const char  *name;      // of its policy
    const void  *settings;  // of its policy
    FloatVec     params;
    FloatVec     head;        // the part of params that evolution strategies move
    const float *head_scale;  // [head.n] step size of each parameter; NULL: 1
    FloatVec     state;       // everything needed to resume, params included
    const char  *facts;       // lines "key=value\n" that identify its network
    // What the policy is loaded with to run on these parameters; NULL: on its rule alone.
    const void *(*loaded)(const Trainee *t, const float *params, Arena *a);
    Err (*train)(Trainee *t, const TrainRound *r, Arena *scratch, double *loss);
    void (*params_set)(Trainee *t);  // called after params were set from outside
    void *self;
};

// fn(self, i, arena) for i in 0 .. n - 1, with denormals flushed, as in the team that computes
// gradients: networks compute the same bits in both. In trainer.c.
typedef Err  TrainJob(void *self, uint32_t i, Arena *a);
MUST_USE Err train_parallel(TrainJob *fn, void *self, uint32_t n, uint32_t threads);

// Of n items by time, how many are at most at `t`. first: the time in the first item.
uint32_t train_count_until(const TimeNs *first, size_t stride, uint32_t n, TimeNs t);

enum { SCORE_VALUES = 3 };

typedef struct Score {
    double objective;             // parameters with more are better
    double values[SCORE_VALUES];  // see Evaluator.names
} Score;

typedef struct Evaluator Evaluator;
struct Evaluator {
    const char *names[SCORE_VALUES];  // of a score's values; NULL: unused
    const char *facts;                // lines "key=value\n" that identify its runs
    // Runs the baselines once and scores the policy without a network.
    Err (*open)(Evaluator *e, const Trainee *t, Arena *a, Score *rule);
    // Scores parameters on the validation grid, which training runs never touch.
    Err (*evaluate)(const Evaluator *e, const Trainee *t, const float *params, Arena *scratch,
                    Score *out);
    // Fitness of parameters on the i-th training run of a seed; more is better.
    Err (*fitness)(const Evaluator *e, const Trainee *t, const float *params, uint64_t seed,
                   uint64_t i, Arena *a, double *out);
    uint32_t threads;  // set by the command
    void    *self;
};

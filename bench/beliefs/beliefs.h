// Beliefs: how well durations and speeds are predicted, by hand and by attention.
#pragma once

#include "base/arena.h"
#include "estimator/belief_context.h"

enum { BELIEFS_MODELS = 8 };

typedef struct Errors {  // of predictions of logarithms
    double  *said, *true_, *sd;
    uint32_t n, room;
} Errors;

void errors_open(Errors *e, uint32_t room, Arena *a);
void errors_add(Errors *e, double said, double sd, double truth);

typedef struct ErrorSummary {
    double rmse, spearman, nll, cover;  // nll: of a Gaussian; cover: share within its 90 % interval
} ErrorSummary;

ErrorSummary errors_summary(const Errors *e, Arena *scratch);

typedef struct Weights {
    const char  *name;
    const float *w;
} Weights;

MUST_USE Err durations_table(const char *trace, const Weights *weights, uint32_t n, Arena *a);
MUST_USE Err speeds_table(const Weights *weights, uint32_t n, bool named, Arena *a);

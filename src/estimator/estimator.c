#include "estimator/estimator.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

Err estimator_init(Estimator *e, const HypothesisTable *table, const EstimatorParams *params,
                   Arena *a) {
    *e = (Estimator){.has_profiles = table != NULL};
    TRY(duration_history_init(&e->durations, &params->durations, a));
    if (table == NULL) return ERR_OK;
    return profile_posterior_init(&e->profiles, table, &params->profiles, a);
}

DurationEstimate estimator_combine(const DurationEstimate *e, double told_s, double told_log_sd) {
    double own = 1 / fmax(e->log_sd * e->log_sd, 1e-6);
    double told = 1 / fmax(told_log_sd * told_log_sd, 1e-6);
    double mean = (own * log(fmax(e->left_s, 1)) + told * log(fmax(told_s, 1))) / (own + told);
    double sd = sqrt(1 / (own + told));
    return (DurationEstimate){exp(mean), sd, exp(mean - 1.645 * sd), exp(mean + 1.645 * sd)};
}

// SQLite keeps 63 bits and a sign; 0 stays "unknown".
uint64_t estimator_name(const char *name) {
    uint64_t h = hash_fnv(HASH_FNV_START, name, strlen(name)) >> 1;
    return name[0] == '\0' ? 0 : h != 0 ? h : 1;
}

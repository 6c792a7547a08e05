// ProfilePosterior: which of a table of hypotheses about its profile fits the measured rates of a
// job.
//
// Hypotheses are the classes of a library, each with its sensitivities raised to several powers, so
// that classes the library does not have are covered, too. A measurement multiplies the likelihood
// of every hypothesis (Student's t in the logarithm of the rate). Jobs of one name share their
// measurements; a tenant's ended jobs shift the prior of its next ones.
#pragma once

#include "contract/cluster.h"
#include "estimator/duration_history.h"

enum { POSTERIOR_MOST = PROFILE_CLASSES, POSTERIOR_GROUPS = 4096 };

typedef struct HypothesisTable {
    const ClusterProfiles *profiles;  // hypotheses are its first n classes
    uint32_t               n;
    uint32_t               n_classes;                  // n, or one more: the mean of all
    uint32_t               base[POSTERIOR_MOST];       // class of the library
    double                 log_power[POSTERIOR_MOST];  // 0: as in the library
} HypothesisTable;

typedef struct PosteriorParams {
    double noise;    // of the logarithm of measured rates
    double misfit;   // of the logarithm of rates by the best hypothesis
    double degrees;  // of freedom of Student's t
    double off;      // standard deviation of the logarithm of powers
    double other;    // prior weight of all classes but the named one
    double tenant;   // weight of a tenant's ended jobs, relative to one prior
} PosteriorParams;

#define POSTERIOR_PARAMS ((PosteriorParams){0.05, 0.06, 4, 0.4, 0.02, 0.5})

typedef struct PosteriorRecord {        // of a job, or of all jobs of a name or a tenant
    double   log_like[POSTERIOR_MOST];  // of a tenant: sums of posterior weights
    double   misfit;                    // of measurements: sum of squared errors in units of noise
    uint32_t n;                         // measurements, or jobs
} PosteriorRecord;

typedef struct PosteriorGroup {
    uint64_t        key;  // 0: free
    PosteriorRecord record;
} PosteriorGroup;

typedef struct ProfilePosterior {
    PosteriorParams params;
    HypothesisTable table;
    double         *distance;         // [n][n_classes] squared, of log rates
    PosteriorGroup *names, *tenants;  // [POSTERIOR_GROUPS]
} ProfilePosterior;

typedef struct RateMeasurement {
    const ClusterSetup *setup;  // its profiles are the table's
    const ClusterJob   *job;
    const ClusterSlice *slices;
    uint32_t            n_slices;
    const uint32_t     *corunners;  // [n_corunners] classes on its most crowded GPU
    uint32_t            n_corunners;
    double              rate;
} RateMeasurement;

typedef struct RateBelief {
    double rate;    // geometric mean
    double log_sd;  // of a measurement
} RateBelief;

MUST_USE Err profile_posterior_init(ProfilePosterior *p, const HypothesisTable *table,
                                    const PosteriorParams *params, Arena *a);

// class: of the library, as named; PROFILE_NONE: unknown. `own`: the job's measurements.
typedef struct PosteriorQuery {
    JobTraits traits;
    uint32_t class;
    const PosteriorRecord *own;
} PosteriorQuery;

// False: all hypotheses predict the same rate, so the measurement says nothing.
bool profile_posterior_measured(ProfilePosterior *p, const PosteriorQuery *q,
                                const RateMeasurement *m, PosteriorRecord *own);
void profile_posterior_ended(ProfilePosterior *p, const PosteriorQuery *q);

void profile_posterior_weights(const ProfilePosterior *p, const PosteriorQuery *q,
                               double weights[POSTERIOR_MOST]);
// The class with the smallest expected squared error of log rates; *log_sd: its root, or NULL.
uint32_t   profile_posterior_class(const ProfilePosterior *p, const PosteriorQuery *q,
                                   double *log_sd);
RateBelief profile_posterior_rate(const ProfilePosterior *p, const PosteriorQuery *q,
                                  const RateMeasurement *m);  // m->rate is ignored

// A group of the key, made if it is new; NULL: there is no room, or the key is 0.
PosteriorRecord       *profile_posterior_group(PosteriorGroup *groups, uint64_t key);
const PosteriorRecord *profile_posterior_find(const PosteriorGroup *groups, uint64_t key);

// Information: what the policies of a scenario are told of durations, profiles and rates.
//
// The same for all policies of a scenario; a policy that is blind to durations stays blind. Zeroed:
// everything is exact.
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "contract/cluster.h"

typedef enum KnownDurations {
    DURATIONS_EXACT,
    DURATIONS_ESTIMATED,  // off by a factor of e^error on average
    DURATIONS_UNKNOWN
} KnownDurations;

typedef enum KnownProfiles {
    PROFILES_EXACT,
    PROFILES_LIBRARY,  // class names are known; true profiles are off the library by sigma
    PROFILES_UNKNOWN   // every job has the mean profile of the library's classes
} KnownProfiles;

typedef enum KnownRates {
    RATES_EXACT,
    RATES_MEASURED  // `delay` after every change, with multiplicative noise
} KnownRates;

typedef enum EstimatorKind {
    ESTIMATOR_OFF,
    ESTIMATOR_OWN,        // a job's own progress and measurements, on the priors
    ESTIMATOR_SHARED,     // and those of other jobs, on all servers
    ESTIMATOR_ATTENTION,  // by a network that attends over the records of other jobs
    ESTIMATOR_BOTH,       // durations by the mean of the last two, classes as by `shared`
} EstimatorKind;

typedef struct Information {
    KnownDurations durations;
    KnownProfiles  profiles;
    KnownRates     rates;
    double         error;        // standard deviation of the logarithm of estimated durations
    double         sigma;        // of the logarithm of a true profile's sensitivity
    double         noise;        // of the logarithm of measured rates
    TimeNs         delay;        // from a change of a rate to its measurement
    double         guard;        // see InformationBeliefs.fallback; 0: no guard
    uint32_t       guard_times;  // measurements in a row below guard x the believed rate
    EstimatorKind  estimator;    // refines what is told, for every policy
    const float   *beliefs;      // parameters of the BeliefNet, where it is used; borrowed
} Information;

// "perfect", "realistic" or "blind", then settings of the parts: "realistic,sigma=0.2,guard=0".
// NULL: perfect.
MUST_USE Err information_read(const char *text, Arena *a, Information *out);
// "off", "own", "shared" (also "on"), "attention" or "both"; NULL: off. With the last two the
// caller sets `beliefs`.
MUST_USE Err information_set_estimator(Information *x, const char *word);
const char  *information_text(const Information *x, Arena *a);  // for reports

static inline bool information_is_perfect(const Information *x) {
    return x->durations == DURATIONS_EXACT && x->profiles == PROFILES_EXACT &&
           x->rates == RATES_EXACT;
}

// What a policy that can use `at_most` gets to know of durations.
ClusterKnowledge information_knows(const Information *x, ClusterKnowledge at_most);

// What policies are told of classes, instead of the truth.
typedef struct InformationBeliefs {
    const ClusterProfiles *profiles;
    const uint32_t        *class_of;  // [jobs]
    // Class of jobs that the guard returned to their default demand; PROFILE_NONE: no guard.
    uint32_t fallback;
    // With an estimator: what it chooses from; NULL: profiles are exact, or there is none.
    const struct HypothesisTable *hypotheses;
} InformationBeliefs;

// The true profiles of a seed, off the library by sigma: sensitivities to cores and memory, to
// spread and to co-runners are raised to powers e^(sigma z), restarts and speeds of GPU types are
// multiplied. Equal to the library with sigma 0.
MUST_USE Err information_truth(const Information *x, const ClusterProfiles *library, Rng rng,
                               Arena *a, ClusterProfiles *out);

// Beliefs for n jobs of known true classes; the library is not changed.
MUST_USE Err information_beliefs(const Information *x, const ClusterProfiles *library,
                                 const uint32_t *class_of, uint32_t n, Arena *a,
                                 InformationBeliefs *out);

// The table that an estimator chooses from: the library's classes, then the same with their
// sensitivities raised to lower and higher powers as far as there is room, then their mean. Writes
// into `profiles`, which must outlive the table.
struct HypothesisTable;
MUST_USE Err information_hypotheses(const ClusterProfiles *library, Arena *a,
                                    ClusterProfiles *profiles, struct HypothesisTable *out);

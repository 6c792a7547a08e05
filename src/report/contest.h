// Contest: what each policy reached on each mix of tenants, for people, machines and pages.
#pragma once

#include "base/stats.h"
#include "report/page.h"

enum { CONTEST_EQUALS = 2 };  // loads that are the same for all policies

typedef struct ContestTrial {  // one run of a search
    double rate, hit_rate;
} ContestTrial;

typedef struct ContestEntry {
    const char   *policy;
    Mean          qps;  // highest rate that meets the target, over the seeds
    double        mean_ms, p99_ms, hit_rate, conflict_rate, core_use;   // at `calm` of that rate
    double        equal_ms[CONTEST_EQUALS], equal_hit[CONTEST_EQUALS];  // means at equal loads
    const double *latencies_ms;                                         // at the first equal load
    uint32_t      n_latencies;
    ContestTrial *trials;  // of all searches
    uint32_t      n_trials;
} ContestEntry;

typedef struct ContestMix {
    const char   *mix;
    const char   *about;                  // networks and targets, for people; may be NULL
    double        equal[CONTEST_EQUALS];  // requests a second; not a number: none was run
    ContestEntry *entries;
    uint32_t      n_entries;
} ContestMix;

typedef struct Contest {
    const char *machine;
    const char *baseline;                     // what others are compared with
    double      target, calm;                 // shares: of requests in time, of the highest rate
    double      equal_share[CONTEST_EQUALS];  // of the baseline's highest rate
    uint32_t    seeds;
    ContestMix *mixes;
    uint32_t    n_mixes;
} Contest;

// The baseline's entry, or the first one where it took no part.
const ContestEntry *contest_baseline(const Contest *c, const ContestMix *m);

MUST_USE Err contest_json(const Contest *c, json_t **out);  // *out is the caller's
MUST_USE Err contest_print(const Contest *c, Arena *scratch, FILE *f);
MUST_USE Err contest_page(const Contest *c, Arena *scratch, Page *p);

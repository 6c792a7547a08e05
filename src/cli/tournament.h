// Tournament: policies meet the same arrivals on one mix; finds what each can carry.
#pragma once

#include "base/progress.h"
#include "cli/venue.h"
#include "report/contest.h"

typedef struct TournamentRules {
    double   target, calm;  // see Contest
    double   equal_share[CONTEST_EQUALS];
    double   tolerance;
    uint64_t first_seed;
    uint32_t seeds, requests, threads;  // requests 0: see VenueRun
} TournamentRules;

enum { TOURNAMENT_SEARCH = 8 };  // a search counts as much as so many single runs

// Steps that the sink is told for one mix.
uint32_t tournament_steps(uint32_t n_policies, const TournamentRules *r);

// In virtual time runs go on at once on threads, and the result does not depend
// on how many; live ones take turns, so that all policies meet the machine's moods alike.
MUST_USE Err tournament_run(const Venue *s, const Choices *c, const char *baseline,
                            const TournamentRules *r, Progress *p, Arena *a, ContestMix *out);

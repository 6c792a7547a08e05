// Match: what each policy reached in each cell of package, workload, load and bandwidth, for
// people, machines and pages.
#pragma once

#include "base/stats.h"
#include "report/page.h"

enum { MATCH_LEVELS = 3, MATCH_TRACES = 1000 };

typedef struct MatchRun {  // one trace under one policy
    double sla;            // share of the requests in time
    double slowdown;       // latency over the best case alone, mean
    double energy_mj, request_mj;
    double policy_share;  // of that energy, for the policy's own thoughts
    double bandwidth_use, unit_use;
    double decision_us;              // what a decision is charged
    double measured_us;              // what it took here; not a number: nobody measured
    double level_sla[MATCH_LEVELS];  // by level of service: high, medium, low
} MatchRun;

typedef struct MatchEntry {
    const char     *policy;
    bool            clairvoyant;   // a bound, no contender
    const char     *paper;         // that it follows; NULL: none
    const char     *of;            // the policy of which it is a part; NULL: none
    const MatchRun *runs;          // [traces]
    const char     *worst_tenant;  // with the lowest share in time over all traces
    double          worst_sla;
} MatchEntry;

typedef struct MatchCell {
    const char       *chip, *mix;
    double            load, bandwidth;  // of what the package can carry; bytes a cycle
    const MatchEntry *entries;          // the same policies in every cell, in one order
    uint32_t          n_entries;
} MatchCell;

typedef struct MatchPoint {  // the champion with a network of another size, at another period
    uint32_t hidden;
    double   period_us;
    Mean     sla, share, decision_us;
} MatchPoint;

typedef struct Match {
    const char       *champion;  // whom the others are the baselines of; may take no part
    const char       *about;     // how it was run, for people; may be NULL
    uint32_t          traces, requests;
    uint64_t          first_seed;
    bool              measured;
    const MatchCell  *cells;
    uint32_t          n_cells;
    const MatchPoint *sweep;  // by size, then by period
    uint32_t          n_sweep;
    const char       *sweep_about;
} Match;

typedef struct MatchWhere {  // some of the cells; NULL and not a number stand for all
    const char *chip, *mix;
    double      load, bandwidth;
} MatchWhere;

// Of a member of MatchRun, over the traces; over several cells each trace counts with its mean.
Mean match_mean(const Match *m, const MatchEntry *e, size_t member);
Mean match_over(const Match *m, const MatchWhere *w, const char *policy, size_t member);

const MatchEntry *match_find(const MatchCell *c, const char *policy);  // NULL: takes no part
// The best of those that are neither clairvoyant nor the champion or a part of it; NULL: none is.
const MatchEntry *match_baseline(const Match *m, const MatchCell *c);
const MatchEntry *match_part(const Match *m, const MatchCell *c);   // of the champion; NULL: none
const MatchEntry *match_bound(const Match *m, const MatchCell *c);  // the best clairvoyant one
// How much more of the requests `e` had in time than `than`, trace by trace.
Mean match_margin(const Match *m, const MatchEntry *e, const MatchEntry *than);

typedef struct MatchRival {  // the champion against one policy, over all cells
    const char      *policy, *paper;
    bool             clairvoyant;
    double           sla;  // its mean
    Mean             margin;
    double           gain;  // the largest over it, as a share of its rate; not a number: none
    double           theirs, our;  // rates there
    const MatchCell *at;
} MatchRival;

typedef struct MatchVerdict {
    double           sla, baseline_sla, bound_sla;  // means; not a number: no such policy
    const char      *part;                          // of the champion; NULL: none took part
    double           part_sla;
    Mean             margin;               // over the best baseline of each cell
    uint32_t         ahead, even, behind;  // cells, by the interval of the margin
    const MatchCell *worst;                // with the smallest margin
    Mean             worst_margin;
    MatchRival      *rivals;
    uint32_t         n_rivals;
} MatchVerdict;

// false: the champion or every baseline is missing.
bool match_judge(const Match *m, Arena *a, MatchVerdict *out);

MUST_USE Err match_json(const Match *m, Arena *scratch, json_t **out);  // *out is the caller's
MUST_USE Err match_print(const Match *m, Arena *scratch, FILE *f);
MUST_USE Err match_page(const Match *m, Arena *scratch, Page *p);

// Tables that print and page share.
void  match_cell_table(const Match *m, const MatchCell *c, Arena *a, Table *t);
void  match_verdict_table(const Match *m, const MatchVerdict *v, Arena *a, Table *t);
void  match_rival_table(const MatchVerdict *v, Arena *a, Table *t);
void  match_sweep_table(const Match *m, Arena *a, Table *t);
char *match_title(const MatchCell *c, Arena *a);
char *match_legend(const Match *m, Arena *a);
char *match_words(const Match *m, const MatchVerdict *v, Arena *a);  // the verdict, for people

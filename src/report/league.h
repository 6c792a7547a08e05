// League: what each policy of a cluster reached on each trace, servers and load, for people,
// machines and pages.
#pragma once

#include "base/stats.h"
#include "report/page.h"

enum { LEAGUE_SEEDS = 1000, LEAGUE_QUANTILES = 200 };

typedef struct LeagueRun {  // one draw of jobs under one policy
    double jct_mean_s, jct_p50_s, jct_p99_s, makespan_s;
    double queue_mean_s, queue_p99_s;
    double slowdown, fairness;
    double gpu_use, core_use, memory_use;  // shares of what there is, until the last job ends
    double preemptions, levels, jobs;
    double decision_us;  // what one took here; not a number: nobody measured
} LeagueRun;

typedef struct LeagueCurves {              // for pages
    const double *jct_s;                   // [n_jct] of all seeds, evenly picked
    const double *at_h, *gpu_use, *queue;  // [n_spans] of the first seed
    uint32_t      n_jct, n_spans;
} LeagueCurves;

typedef struct LeagueEntry {
    const char      *policy;   // unique; a variant is "maifs attention=false"
    const char      *knows;    // of durations: oracle, predicted, blind
    uint32_t         rank;     // more is known with more
    const char      *paper;    // that it follows; NULL: none
    const char      *of;       // the policy of which it is a part or variant; NULL: none
    const char      *missing;  // why it takes no part; NULL: it does
    const LeagueRun *runs;     // [seeds]
    LeagueCurves     curves;
} LeagueEntry;

typedef struct LeagueCell {
    const char        *trace, *servers;  // as they were named
    double             load;             // 0: times as they are
    uint32_t           n_servers;
    uint64_t           gpus;
    uint32_t           long_ones, too_large;  // jobs left out of the trace, or of the first draw
    const LeagueEntry *entries;               // the same policies in every cell, in one order
    uint32_t           n_entries;
} LeagueCell;

typedef struct League {
    const char       *champion;  // whom others are compared with
    const char       *about;     // how it was run, for people; may be NULL
    uint32_t          seeds;
    uint64_t          first_seed;
    bool              measured;
    const LeagueCell *cells;
    uint32_t          n_cells;
} League;

// Of a member of LeagueRun, over the seeds.
Mean league_mean(const League *l, const LeagueEntry *e, size_t member);
// Seed by seed: e's over than's.
Mean league_ratio(const League *l, const LeagueEntry *e, const LeagueEntry *than, size_t member);

const LeagueEntry *league_find(const LeagueCell *c, const char *policy);  // NULL: takes no part
// With the lowest mean of a member, of those that know no more than the champion and are neither it
// nor a part of it; NULL: none is, or the champion takes no part.
const LeagueEntry *league_rival(const League *l, const LeagueCell *c, size_t member);

typedef struct LeagueChange {  // of a figure, by the champion, against one policy over all cells
    double            mean;    // -0.2: a fifth less
    double            least, most;          // over the cells; least is the largest gain
    const LeagueCell *at;                   // where the gain is largest
    uint32_t          ahead, even, behind;  // cells, by the interval of the ratio
} LeagueChange;

// False: they never meet.
bool league_change(const League *l, const char *policy, size_t member, LeagueChange *out);

MUST_USE Err league_json(const League *l, json_t **out);  // *out is the caller's
MUST_USE Err league_print(const League *l, Arena *scratch, FILE *f);
MUST_USE Err league_page(const League *l, Arena *scratch, Page *p);

// Words and tables that print and page share.
void  league_cell_table(const League *l, const LeagueCell *c, Arena *a, Table *t);
bool  league_change_table(const League *l, Arena *a, Table *t);  // false: there is but one cell
char *league_title(const LeagueCell *c, Arena *a);
char *league_legend(const League *l, Arena *a);
char *league_verdict(const League *l, const LeagueCell *c, Arena *a);  // "": there is none
char *league_missing(const LeagueCell *c, Arena *a);                   // who takes no part; ""

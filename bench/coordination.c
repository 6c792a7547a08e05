// How long does coordination take? Servers x jobs, and the number of servers with a possible claim.
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/stats.h"
#include "tests/policy/coordination_case.h"

enum { RUNS = 60 };

static CoordCase made;
static uint32_t  claims[CASE_AGENTS];

typedef struct Row {
    uint32_t agents, jobs, able, rank;
    double   gangs;
} Row;

static int measure(const char *word, const Row *row, Arena *arena) {
    CoordParams params = coord_default_params();
    Rng         rng = {1};
    double      us[RUNS], edges = 0, *sorted;
    if (!coord_parts_of(word, &params.parts)) return 1;
    Coordination *a = coord_new(row->agents, row->jobs, &params);
    for (uint32_t run = 0; run < RUNS; run++) {
        CoordKind kind = {row->agents, row->jobs, row->rank, 0.1, row->gangs, 0.3f};
        coord_case(&made, &kind, &rng);
        for (uint32_t i = row->able; i < row->agents; i++)
            for (uint32_t k = 0; k < row->jobs; k++) made.payoff[i * row->jobs + k] = -INFINITY;
        TimeNs start = clock_now(clock_monotonic());
        coord_decide(a, &made.p, claims);
        us[run] = (double)(clock_now(clock_monotonic()) - start) / 1e3;
        edges += (double)coord_stats(a)->edges / RUNS;
    }
    free(a);
    if (stats_sort(arena, us, RUNS, &sorted) != ERR_OK) return 1;
    printf("%-12s %6" PRIu32 " %5" PRIu32 " %5" PRIu32 " %5" PRIu32
           " %5.1f %8.0f %9.1f %9.1f %9.1f\n",
           word, row->agents, row->jobs, row->able, row->rank, row->gangs, edges, sorted[0],
           stats_percentile(sorted, RUNS, 50), stats_percentile(sorted, RUNS, 99));
    return 0;
}

int main(void) {
    static const char *const words[] = {
#define X(word, parts, help) #word,
#include "policy/cluster/maifs/coord_kind.def"
#undef X
    };
    const Row rows[] = {
        {128, 64, 3, 4, 0.2},  {128, 64, 128, 0, 0.2},   {128, 64, 128, 4, 0.2},
        {1000, 64, 5, 4, 0.2}, {1000, 64, 1000, 0, 0.2},
    };
    Arena arena;
    if (arena_init(&arena, (size_t)1 << 26) != ERR_OK) return 1;
    printf("%-12s %6s %5s %5s %5s %5s %8s %9s %9s %9s  microseconds\n", "coordination", "agents",
           "jobs", "able", "rank", "gangs", "edges", "least", "median", "p99");
    for (uint32_t x = 0; x < sizeof rows / sizeof *rows; x++)
        for (uint32_t w = 0; w < sizeof words / sizeof *words; w++)
            if (measure(words[w], &rows[x], &arena) != 0) return 1;
    arena_finish(&arena);
    return 0;
}

// Comparisons with known numbers: a chip's with four cells, a cluster's with one, a node's with
// two.
#pragma once

#include "report/comparison_report.h"

enum { FIXTURE_SEEDS = 3, FIXTURE_POLICIES = 5, FIXTURE_CELLS = 4 };

typedef struct Fixture {
    double          values[FIXTURE_CELLS][FIXTURE_POLICIES][FIXTURE_SEEDS][METRICS];
    ComparisonEntry entries[FIXTURE_CELLS][FIXTURE_POLICIES];
    ComparisonCell  cells[FIXTURE_CELLS];
    SweepPoint      sweep[4];
    Comparison      comparison;
    Arena           arena;
} Fixture;

// plain, clever, star (the subject), oracle (clairvoyant): shares in time that differ by one point
// between traces.
int fixture_chip(void **state);
// plain (blind), seer (oracle), star (predicted, the subject), "star part=false", absent (missing).
int fixture_cluster(void **state);
// fast and base (the baseline) on light; on heavy no equal load was run.
int fixture_node(void **state);
int fixture_end(void **state);

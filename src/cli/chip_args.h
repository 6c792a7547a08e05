// ChipArgs: options that commands of the chip tier have in common.
#pragma once

#include "chip/chip_scenario.h"
#include "cli/args.h"

typedef struct ChipArgs {
    const char *chip, *deadlines, *sharing;  // NULL: default
    double      ts, slack, target, burst;    // 0: default
    int64_t     requests;                    // 0: CHIP_SCENARIO_REQUESTS
    bool        firm;
    const char *table;  // NULL: none
    bool        table_fill;
    ArgList     sets;
} ChipArgs;

enum { CHIP_ARG_ROWS = 12 };

// Writes the rows that fill x, for the array that args_parse takes.
void chip_args_rows(ChipArgs *x, ArgRow rows[CHIP_ARG_ROWS]);

// bandwidth 0: the package's own.
MUST_USE Err chip_args_scenario(const ChipArgs *x, const char *mix, double bandwidth,
                                ChipScenarioOptions *out);
// Reads a trace of requests into the options; path NULL: none.
MUST_USE Err chip_args_trace(const char *path, Arena *a, ChipScenarioOptions *out);
ChipTraffic  chip_args_traffic(const ChipArgs *x, double load, uint64_t seed);

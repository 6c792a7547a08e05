// ChipSaga: a run on a package, on disk: as JSON lines, or as a trace for Perfetto.
#pragma once

#include "chip/chip_scenario.h"
#include "base/option_list.h"

// traffic: what the requests were made from; sets: what --set said.
MUST_USE Err chip_run_file_write(const char *path, const ChipScenario *s, const ChipRun *run,
                                 const ChipTraffic *traffic, const ArgList *sets,
                                 const RecordList *records);
// A track a unit.
MUST_USE Err chip_run_file_trace(const char *path, const ChipScenario *s, const char *policy,
                                 const RecordList *records, Arena *scratch);

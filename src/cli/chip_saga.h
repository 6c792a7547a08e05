// ChipSaga: a run on a package, on disk: as JSON lines, or as a trace for Perfetto.
#pragma once

#include "chip/stage.h"
#include "cli/args.h"

// traffic: what the requests were made from; sets: what --set said.
MUST_USE Err chip_saga_write(const char *path, const Stage *s, const ChipRun *run,
                             const StageTraffic *traffic, const ArgList *sets,
                             const RecordList *records);
// A track a unit.
MUST_USE Err chip_saga_trace(const char *path, const Stage *s, const char *policy,
                             const RecordList *records, Arena *scratch);

// ChipEnv: runs of the chip tier whose policy is another program, asked by lines of JSON at every
// decision. docs/chip-env.md describes the protocol.
#pragma once

#include "base/line_reader.h"
#include "eval/chip_observation.h"

enum { CHIP_ENV_REQUESTS_MAX = 1000000 };  // of an episode

typedef struct ChipEnv {
    const ChipScenario *scenario;
    ChipTraffic         traffic;        // of an episode, unless its reset says otherwise
    int64_t             requests_most;  // of an episode
    LineSource         *read;           // the client's lines
    void               *reader;
    FILE               *out;
    // Called after every episode that was played to its end; NULL: records are not kept.
    Err (*keep)(void *self, const ChipRun *run, const ChipTraffic *t, const RecordList *records);
    void *keeper;
} ChipEnv;

// Returns at the end of the client's lines, also in the middle of an episode. A client's line never
// fails it: it gets an error line, and the run waits for another.
MUST_USE Err chip_env_run(const ChipEnv *env, Arena *a);

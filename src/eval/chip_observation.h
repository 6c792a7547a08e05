// ChipObservation: the lines that `cotenant chip env` writes: hello, observations, the end of an
// episode, errors. docs/chip-env.md describes them.
#pragma once

#include <stdio.h>

#include "chip/chip_scenario.h"
#include "eval/chip_message.h"

typedef struct EndedRequest {  // since the last observation
    uint64_t id;
    uint32_t tenant;
    Outcome  outcome;
    TimeNs   at;
} EndedRequest;

typedef struct ChipObservation {
    const ChipView     *view;
    bool                plan, committed;  // a call of plan(); a plan took effect before this call
    const EndedRequest *ended;            // [n_ended]
    uint32_t            n_ended;
} ChipObservation;

// 1 for every request in time, -1 for every other.
int64_t chip_observation_reward(const EndedRequest *ended, uint32_t n);

// Failures are seen by ferror(f).
MUST_USE Err chip_observation_hello(FILE *f, const ChipScenario *s, const ChipReset *defaults);
void         chip_observation_write(FILE *f, const ChipObservation *o);
MUST_USE Err chip_observation_done(FILE *f, const ChipResult *r, const ChipSummary *s,
                                   const EndedRequest *ended, uint32_t n);
void         chip_observation_error(FILE *f, uint64_t line, const char *message);

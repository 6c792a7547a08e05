// Synergy: a slow reference of its published simulator, round by round.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef enum SynergyOrder { SYNERGY_FIFO, SYNERGY_SRTF, SYNERGY_LAS, SYNERGY_FTF } SynergyOrder;

typedef enum SynergyShare {
    SYNERGY_FAIR,    // every job gets the share that goes with its GPUs
    SYNERGY_GREEDY,  // the best demand or nothing
    SYNERGY_TUNE     // the best demand where there is room; jobs above their share give back
} SynergyShare;

typedef struct SynergyModel {
    const char *name;
    double      best_cores, best_gb;  // per GPU; more does not make it faster
    double      speedup;              // at its best, against its share
    double      iteration_s;          // at its share
} SynergyModel;

typedef struct SynergyJob {
    const SynergyModel *model;
    double              arrival_s;
    double              end_s;  // result; negative: the run ended before the job
    int64_t             iterations;
    uint32_t            gpus;
} SynergyJob;

typedef struct SynergySetup {
    SynergyOrder order;
    SynergyShare share;
    uint32_t     servers;
    double       gpus, cores, gb, storage_mbps;  // of each server
    bool         all_at_once;  // rounds at 1, 301, ...; else at multiples of 300 from the first job
} SynergySetup;

// False: a job can never be placed, where the original exits.
bool synergy_run(const SynergySetup *setup, SynergyJob *jobs, uint32_t n, Arena *a);

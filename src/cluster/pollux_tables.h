// PolluxTables: the measurements published with Pollux (adaptdl, osdi21-artifact, traces): a folder
// per application with step times by placement and batch size (placements.csv, scalability.csv) and
// trainings at several batch sizes (validation-BATCH.csv).
//
// Goodput is progress per second, in iterations at the smallest batch: the throughput of the best
// measured batch size times its mean statistical efficiency over a training.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum {
    POLLUX_APPS = 32,
    POLLUX_BATCHES = 16,
    POLLUX_GPUS = 64,
    POLLUX_SERVERS = 16,
    POLLUX_SERVER_GPUS = 4,  // of the measured servers
};

typedef struct PolluxBatch {
    double size, gain;  // progress of an iteration
} PolluxBatch;

typedef struct PolluxApp {
    const char *name;
    PolluxBatch batch[POLLUX_BATCHES];  // [n_batches] ascending
    uint32_t    n_batches;
    double      progress;                                      // of a whole training
    double      goodput[POLLUX_GPUS + 1][POLLUX_SERVERS + 1];  // 0: not measured
} PolluxApp;

typedef struct PolluxTables {
    PolluxApp *at;  // [n] by name
    uint32_t   n;
} PolluxTables;

MUST_USE Err pollux_tables_read(const char *folder, Arena *a, PolluxTables *out);

// One file of an application, validation files first. Splits the text in place.
MUST_USE Err pollux_app_parse(PolluxApp *x, const char *name, char *text, size_t len);

// On the fewest measured servers; 0: not measured.
double pollux_app_goodput(const PolluxApp *x, uint32_t gpus, uint32_t *servers);

// Zoo: standard networks, built in memory with random weights that are generated on demand.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/model.h"
#include "model/net_builder.h"

typedef struct ZooOptions {
    int64_t  batch;     // 0: 1
    int64_t  sequence;  // tokens or frames; 0: the network's default
    uint64_t seed;      // 0: 1
    bool     open;      // of a decoder: lengths of prompt and cache stay open
} ZooOptions;

typedef void ZooFn(NetBuilder *n, const ZooOptions *o);  // options are complete and in range

typedef struct ZooEntry {
    const char *name;
    const char *input;           // shape at batch 1, as text
    int64_t     sequence;        // default; 0 where the network has none
    double      mmacs, mparams;  // published, in millions; 0: not published
    const char *source;          // of the published figures
    const char *about;
    ZooFn      *build;
} ZooEntry;

const ZooEntry *zoo_entry(size_t i);         // in the order of zoo.def; NULL past the end
const ZooEntry *zoo_find(const char *name);  // NULL when unknown

// Initialises m; o may be NULL. Unknown names fail with the closest ones in the reason.
MUST_USE Err zoo_build(const char *name, const ZooOptions *o, Model *m);

#define X(name, input, sequence, mmacs, mparams, source, about) ZooFn zoo_##name;
#include "model/zoo/zoo.def"
#undef X

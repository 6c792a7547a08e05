// VersionSearch: a search for faster kernel versions of a model beside serving: on one thread of
// low priority, in the time that cores are idle. The profile store receives what it finds.
#pragma once

#include "node/host.h"
#include "node/live/node_live.h"
#include "node/source.h"

typedef struct VersionSearch {
    const char        *what;     // as source_read takes it, with its name and root
    SourceOptions      source;   // max_bytes also of one run
    const SourceStamp *stamp;    // of the file in service: another one is not searched
    const Tensor      *shapes;   // of the inputs, [inputs]
    WeightWidth        weights;  // as in service
    const Host        *host;     // neither its team nor its connection to the store is used
    const NodeLive    *engine;   // whose cores have to be idle; NULL: none
    double             seconds;  // CPU time of the search
    WorkFlag          *stop;     // set by another thread: ends at the next sample
} VersionSearch;

typedef struct VersionGain {     // of the layers with versions to choose from, on one core
    double before_ns, after_ns;  // in the kernels' first choices; in the fastest versions
} VersionGain;

// Layers that the store knows are not searched again. ERR_LIMIT: no memory, or it was stopped;
// finished layers are in the store. The result holds for all layers, known ones included.
MUST_USE Err version_search_run(const VersionSearch *s, VersionGain *out);

// FreeResources: what servers have free while a plan is made, and where a gang goes on them.
//
// A gang that fits one server gets one: the fullest that suffices, the lowest of several. A wider
// one gets whole servers, the largest first, and for what is left over the emptiest of the others.
#pragma once

#include "contract/cluster.h"
#include "base/carve.h"

typedef struct FreeResources {
    const ClusterView *view;
    uint32_t          *gpus;   // [n_servers] wholly free
    uint32_t          *cores;  // [n_servers] free
    uint32_t          *memory;
    uint16_t          *parts;   // [all GPUs] free thousandths; only where GPUs are shared
    uint8_t           *closed;  // [all GPUs] to jobs that ask for parts; only where there are such
    uint64_t          *kinds;   // [all GPUs] bit c: class c has a part of it; likewise
    uint32_t          *first;   // [n_servers] GPU of parts
    ClusterSlice      *slices;  // that this plan uses
    size_t             room;    // of slices
    uint32_t           n_slices, n_free;
    bool               by_parts;  // of GPUs; set before carving where a policy itself shares them
    bool               roomy;  // gangs go to the server with the most cores free, not the fullest
} FreeResources;

void placement_carve(FreeResources *f, const ClusterSetup *s, Carve *from);
void placement_init(FreeResources *f, const ClusterSetup *s);

void placement_open(FreeResources *f, const ClusterView *v);   // as it is
void placement_leave(FreeResources *f, const ClusterTask *t);  // a running task is to be stopped
bool placement_place(FreeResources *f, uint32_t task,
                     ClusterAction *out);  // START; false: no place, no action
// The same as if its job were this one, which may want other amounts of cores and memory.
bool placement_place_as(FreeResources *f, uint32_t task, const ClusterJob *j, ClusterAction *out);

// A slice of one server with its mask, which has to be free there; and back again.
bool placement_take(FreeResources *f, const ClusterSlice *s);
void placement_give(FreeResources *f, const ClusterSlice *s);

// Placement: which GPUs, cores and memory are free, and on which servers a gang is placed.
//
// One answer for all: policies place jobs by it, `cluster explain` asks it why a job did not fit,
// and the simulator books GPUs by it. A gang that fits on one server gets one: the fullest that
// suffices (best fit), the lowest index of several. A wider gang gets whole servers, the largest
// first, and for the remainder the server with the most free GPUs.
#pragma once

#include "base/arena.h"
#include "base/carve.h"
#include "base/err.h"
#include "contract/cluster.h"
#include "placement/tenant_quota.h"

// The free thousandths of a server's GPUs: what policies' copies and the simulator's own books use.
uint64_t gpu_parts_lowest(const uint16_t *parts, uint32_t n_gpus, uint32_t gpus,
                          uint32_t milli);  // mask of the lowest `gpus` GPUs with `milli` free
bool     gpu_parts_free(const uint16_t *parts, uint32_t n_gpus, uint64_t mask, uint32_t milli);
// Takes or gives back `milli` of each GPU in the mask; returns the change of wholly free GPUs.
uint32_t gpu_parts_take(uint16_t *parts, uint64_t mask, uint32_t milli);
uint32_t gpu_parts_give(uint16_t *parts, uint64_t mask, uint32_t milli);

typedef struct FreeResources {
    const ClusterView *view;
    uint32_t          *gpus;    // [n_servers] GPUs with no task on them
    uint32_t          *cores;   // [n_servers] free millicores
    uint32_t          *memory;  // [n_servers] free MiB
    uint16_t          *parts;   // [all GPUs] free thousandths; only with track_parts
    uint8_t           *closed;  // [all GPUs] closed to jobs with a GPU fraction; with fractions
    uint64_t          *kinds;   // [all GPUs] bit c: class c has a part; with fractions and profiles
    uint32_t          *first;   // [n_servers] index of its first GPU in the arrays above
    TenantQuota        tenants;
    ClusterSlice      *slices;            // [n_slices] placed since placement_open
    size_t             room;              // capacity of slices
    uint32_t           n_slices, n_free;  // n_free: sum of gpus
    bool               track_parts;  // per-GPU state; set before carving if the policy shares GPUs
    bool               worst_fit;    // gangs go to the server with the most free cores instead
} FreeResources;

void         placement_carve(FreeResources *f, const ClusterSetup *s, Carve *from);
MUST_USE Err placement_alloc(FreeResources *f, const ClusterSetup *s, Arena *a);  // with parts

void placement_open(FreeResources *f, const ClusterView *v);     // everything as in the view
void placement_release(FreeResources *f, const ClusterTask *t);  // as if a running task stopped
bool placement_fits(FreeResources *f, const ClusterJob *j);      // changes nothing

// Takes the resources and writes a START action. false: it does not fit, nothing changes.
bool placement_place(FreeResources *f, uint32_t task, ClusterAction *out);
// The same with another job's demand.
bool placement_place_as(FreeResources *f, uint32_t task, const ClusterJob *j, ClusterAction *out);

// One slice with its mask. take: false if not all of it is free.
bool placement_take(FreeResources *f, const ClusterSlice *s);
void placement_give(FreeResources *f, const ClusterSlice *s);

// How much a job that does not fit is short of; -1: not applicable.
int64_t placement_short_gpus(const FreeResources *f, const ClusterJob *j);  // thousandths, in all
int64_t placement_short_together(const FreeResources *f, const ClusterJob *j);  // on one server
// Millicores or MiB, on the server with enough GPUs that is short of least.
int64_t placement_short_cores(const FreeResources *f, const ClusterJob *j);
int64_t placement_short_memory(const FreeResources *f, const ClusterJob *j);

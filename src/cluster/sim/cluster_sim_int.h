// ClusterSim: the state of a simulated run. cluster_sim.c: events, decisions and utilization;
// cluster_sim_task.c: tasks, slot queues and progress; cluster_sim_rates.c: rates, measurements and
// beliefs; cluster_sim_forecast.c: forecasts; cluster_sim_estimate.c: the estimator;
// cluster_sim_attention.c: its beliefs by attention; cluster_sim_server.c: servers and memory.
//
// ClusterSim, TaskState and the true profiles are in an arena of their own: no pointer that a
// policy gets leads there.
#pragma once

#include "base/heap.h"
#include "cluster/sim/cluster_run.h"
#include "contract/cluster_forecast.h"
#include "estimator/belief_context.h"
#include "estimator/estimator.h"
#include "placement/tenant_quota.h"

typedef struct Usage {  // utilization over time in at most CLUSTER_SPANS intervals, which widen
    ClusterUse now;     // since `until`
    TimeNs     until;   // everything before is in sums
    TimeNs     origin, span;
    ClusterUse sums[CLUSTER_SPANS];  // times nanoseconds
    uint32_t   n;
} Usage;

void usage_open(Usage *c, TimeNs origin);
void usage_go(Usage *c, TimeNs to);  // `now` held since the last call
// Returns the averages of the run; writes those of the intervals into at[CLUSTER_SPANS].
ClusterUse usage_close(Usage *c, ClusterUse *at, uint32_t *n, TimeNs *span);

typedef struct TaskState {          // of a task, what policies do not see
    TimeNs left;                    // work at `mark`, including what it owes
    TimeNs owed;                    // restart cost, truly
    TimeNs mark;                    // time up to which true progress is accounted
    double rate;                    // since `mark`, truly
    TimeNs guess;                   // predicted total work
    uint32_t class;                 // truly
    uint32_t      job;              // index in the trace
    uint32_t      room;             // capacity of slices
    uint32_t      measurements;     // so far
    uint32_t      strikes;          // measurements in a row below the believed rate
    uint32_t      gpus;             // that it held before it was preempted
    bool          must_start;       // in this plan, with another number of GPUs
    bool          changed;          // its rate has to be recomputed
    bool          guarded;          // the guard returned it to its default demand
    TimeNs        seen;             // work done, as policies see it
    TimeNs        estimated;        // `seen` when its work left was estimated last
    uint64_t      estimated_after;  // jobs that had ended then, plus 1; 0: not estimated
    JobTraits     traits;           // for the estimator
    ClusterSlice *slices;
} TaskState;

typedef struct SlotQueue {  // slots by entry number, in an array consumed from both ends
    uint32_t *at;           // [2 * n_slots]
    uint32_t  first, n, room;
} SlotQueue;

typedef struct ServerAlloc {  // of a server, what ServerState points into
    uint16_t *parts;          // [gpus] free thousandths
    uint32_t *residents;
    uint32_t  room;  // capacity of residents
} ServerAlloc;

typedef struct ClusterSim {
    const ClusterRun *run;
    Arena            *arena;
    Arena            *hidden;  // of the truth
    ClusterSetup     *setup;   // what policies see
    ClusterSetup      truth;   // the same with the true profiles
    ClusterResult    *result;
    void             *state;  // of the policy
    TimeNs            now, wake, round;
    uint32_t          next_arrival, n_alive;
    uint32_t          n_must_start;  // tasks
    ClusterTask      *tasks;         // [n_slots]
    ClusterSlice     *ones;          // [n_slots] storage for single slices
    TaskState        *states;        // [n_slots]
    uint32_t         *free;          // [n_free] slots to reuse
    uint32_t          n_free, n_fresh;
    uint64_t          entries;
    SlotQueue         waiting, running;
    ServerState      *servers;
    ServerAlloc      *allocs;
    Heap              ends;      // by slot
    Heap              measures;  // times of measurements, by slot
    uint32_t         *changed;   // [n_changed] slots with a rate to recompute
    uint32_t          n_changed;
    ClusterAction    *actions;
    uint32_t          max_actions;
    void             *spare[32];  // free lists of memory, by power of two
    Rng               guesses, noises;
    Usage             usage;
    TenantQuota       tenants;
    uint64_t          used_gpu_milli, used_cores, used_memory;
    uint64_t          idle_rounds;
    uint64_t          most_decisions;  // of a forecast; 0: any number
    Estimator        *estimator;       // NULL: none
    PosteriorRecord  *posteriors;      // [n_slots] measurements of each task
    DurationRecord   *records;         // [n_records] running tasks, at records_at
    uint32_t         *record_of;       // [n_slots] index of a running task in records
    TimeNs            records_at;
    uint64_t          records_entry;  // entries then
    uint32_t          n_records, renew_next;
    BeliefContext    *beliefs;             // NULL: the estimator is by hand alone
    float (*class_speeds)[BELIEF_SPEEDS];  // [hypotheses and their mean] logarithms
} ClusterSim;

MUST_USE Err cluster_sim_prepare(ClusterSim *w);         // tasks, servers and tenants
MUST_USE Err cluster_sim_prepare_policy(ClusterSim *w);  // its state
void         cluster_sim_decide(ClusterSim *w, uint32_t reason);
MUST_USE Err cluster_sim_events(ClusterSim *w);  // until all jobs ended

// ClusterForecast.simulate.
ClusterOutlook cluster_forecast(const ClusterForecast *self, const ClusterView *v,
                                const ClusterForecastRun *run);

void slot_queue_add(SlotQueue *l, uint32_t slot);
void slot_queue_remove(ClusterSim *w, SlotQueue *l, uint32_t slot);

void cluster_sim_arrive(ClusterSim *w);
void cluster_sim_store_slices(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void cluster_sim_schedule_end(ClusterSim *w, uint32_t slot);
void cluster_sim_end(ClusterSim *w, uint32_t slot);
void cluster_sim_start(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void cluster_sim_preempt(ClusterSim *w, uint32_t slot);
void cluster_sim_resize(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void cluster_sim_round(ClusterSim *w);                // end of a round: counts whole iterations
void cluster_sim_interrupt(ClusterSim *w);            // an event costs what runs its overhead
void cluster_sim_book(ClusterSim *w, uint32_t slot);  // progress, true and seen
void cluster_sim_book_view(ClusterSim *w, uint32_t slot);  // progress that policies see

void cluster_sim_rate_changed(ClusterSim *w, uint32_t slot);  // marks it for cluster_sim_rates
void cluster_sim_rates(ClusterSim *w);
bool cluster_sim_measure(ClusterSim *w);  // due measurements; true: a belief was corrected

// take CHECKs that all of the slice is free and fills in mask and gpu_milli.
void cluster_sim_take(ClusterSim *w, uint32_t slot, ClusterSlice *s);
void cluster_sim_give(ClusterSim *w, uint32_t slot, const ClusterSlice *s);
void cluster_sim_resize_slice(ClusterSim *w, ClusterSlice *s, const ClusterSlice *to);

// The estimator, where there is one.
MUST_USE Err cluster_sim_estimate_open(ClusterSim *w);
MUST_USE Err cluster_sim_estimate_close(const ClusterSim *w);
void         cluster_sim_estimate_arrival(ClusterSim *w, uint32_t slot);
bool         cluster_sim_estimates_durations(const ClusterSim *w);
TimeNs       cluster_sim_estimate_left(ClusterSim *w, uint32_t slot);
bool         cluster_sim_estimate_rate(ClusterSim *w, uint32_t slot);  // true: a belief changed
void         cluster_sim_estimate_running(ClusterSim *w);              // before a decision
void         cluster_sim_estimate_end(ClusterSim *w, uint32_t slot);

// Beliefs by attention; without them these do nothing, and those by hand hold.
MUST_USE Err     cluster_sim_attention_open(ClusterSim *w);
void             cluster_sim_attention_arrival(ClusterSim *w, uint32_t slot);
DurationEstimate cluster_sim_attention_left(ClusterSim *w, uint32_t slot, const DurationQuery *q,
                                            DurationEstimate by_hand);
void             cluster_sim_attention_rate(ClusterSim *w, uint32_t slot, const RateMeasurement *m);
uint32_t         cluster_sim_attention_class(ClusterSim *w, uint32_t slot, const PosteriorQuery *q,
                                             double *log_sd);
void             cluster_sim_attention_end(ClusterSim *w, uint32_t slot);

// With its slices and co-runners now.
double cluster_sim_rate(const ClusterSim *w, uint32_t slot);
double cluster_sim_believed_rate(const ClusterSim *w, uint32_t slot);

void *cluster_sim_borrow(ClusterSim *w, size_t bytes);  // uninitialised; aborts when out of memory
void  cluster_sim_return(ClusterSim *w, void *p, size_t bytes);

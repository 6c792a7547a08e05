// StolenTime: how long requests wait because other processes ran on the engine's cores.
//
// A request that queues behind a block that lost its core waits for the other process, not for
// the block. So do all that queue behind it, until the queue is empty again: a busy period. Two
// bounds keep the blame for a wait from other processes: what they took in the busy period, and the
// wait that would remain had they taken nothing. The latter is that of a virtual queue which all
// cores serve all the time; under overload it is as long as the real one.
#pragma once

#include <stdint.h>

#include "base/clock.h"

typedef struct StolenTime {
    TimeNs since;    // start of the busy period; 0: no request waits
    double taken;    // core-ns that other processes took in the busy period
    double backlog;  // core-ns of work in the virtual queue
    TimeNs at;       // time of backlog
} StolenTime;

typedef struct StolenWait {
    TimeNs ns;            // of the wait, caused by other processes
    TimeNs taken, of_ns;  // core-ns that other processes took in the busy period, and its core-ns
} StolenWait;

// A request with work_ns of work on one core arrives. Returns its wait in the virtual queue.
TimeNs stolen_time_arrive(StolenTime *s, double work_ns, uint32_t cores, TimeNs now);
// A block ended, in which other processes took core_ns.
void stolen_time_take(StolenTime *s, double core_ns);
void stolen_time_idle(StolenTime *s);  // no request waits
// A request with a target has waited until now; least: from stolen_time_arrive. If that alone
// misses the target and is no small part of the wait, other processes did not cause the miss.
// running: core-ns taken from blocks that have not ended.
typedef struct StolenQuestion {
    TimeNs   wait, least, target;
    uint32_t cores;
    TimeNs   now;
    double   running;
} StolenQuestion;

StolenWait stolen_time_wait(const StolenTime *s, StolenQuestion q);

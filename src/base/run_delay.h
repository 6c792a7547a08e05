// RunDelay: how long a thread was ready to run while its CPU ran something else, as Linux counts.
#pragma once

#include <sys/types.h>

#include "base/clock.h"

typedef struct RunDelay {
    int    fd;     // schedstat of the thread; -1: not available
    TimeNs at;     // time of the last reading
    TimeNs total;  // since the thread began, until then; 0 if not available
} RunDelay;

void   run_delay_open(RunDelay *d, TimeNs now);  // of the calling thread; reads it
void   run_delay_close(RunDelay *d);             // zeroed: not open
TimeNs run_delay_read(RunDelay *d, TimeNs now);  // the total
// Reads the total, and returns what it was at the earlier time `from`: delay since the last reading
// counts as the latest part of the time until now.
TimeNs run_delay_until(RunDelay *d, TimeNs from, TimeNs now);
// The same total of any thread of this process; -1: unknown.
TimeNs run_delay_of(pid_t thread);

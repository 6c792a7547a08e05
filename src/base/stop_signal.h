// StopSignal: ends long-running work on SIGINT, SIGTERM or a time limit.
#pragma once

#include <stdbool.h>

#include "base/clock.h"

void stop_signal_listen(void);  // installs the handlers; a second signal kills the process

bool stop_signal_due(TimeNs start,
                     double minutes);  // a signal came, or minutes passed; 0: no limit

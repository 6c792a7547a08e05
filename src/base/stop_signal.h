// Halt: long work that ends early, because somebody says so (SIGINT, SIGTERM) or by the clock.
#pragma once

#include <stdbool.h>

#include "base/clock.h"

void stop_signal_listen(void);  // from now on; a second signal ends the program at once

bool stop_signal_due(TimeNs start, double minutes);  // told to, or so long after start; 0: no limit

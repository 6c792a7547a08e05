// StopSignal: ends long work early, on SIGINT or SIGTERM or after a time limit.
#pragma once

#include <stdbool.h>

#include "base/clock.h"

void stop_signal_listen(void);  // handles the first signal; a second one ends the program

// A signal arrived, or `minutes` have passed since `start`; 0: no limit.
bool stop_signal_due(TimeNs start, double minutes);

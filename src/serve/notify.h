// Notify: tells the service manager that started us how we are. Without one nothing happens.
#pragma once

#include "base/time.h"

void   notify_say(const char *state);  // "READY=1", "STOPPING=1", "WATCHDOG=1"
TimeNs notify_period(void);            // in which it wants to hear WATCHDOG=1; 0: it does not

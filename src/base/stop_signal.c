#include "base/stop_signal.h"

#include <signal.h>
#include <stddef.h>

#include "base/clock.h"

static volatile sig_atomic_t signalled;

static void stop(int signal) {
    (void)signal;
    signalled = 1;
}

void stop_signal_listen(void) {
    struct sigaction s = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&s.sa_mask);
    (void)sigaction(SIGINT, &s, NULL);
    (void)sigaction(SIGTERM, &s, NULL);
}

bool stop_signal_due(TimeNs start, double minutes) {
    double gone = (double)(clock_now(clock_monotonic()) - start) / 60e9;
    return signalled != 0 || (minutes > 0 && gone >= minutes);
}

#include "base/run_delay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void run_delay_open(RunDelay *d, TimeNs now) {
    *d = (RunDelay){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
    (void)run_delay_read(d, now);
}

void run_delay_close(RunDelay *d) {
    if (d->at != 0 && d->fd >= 0) (void)close(d->fd);
    *d = (RunDelay){.fd = -1};
}

// The file has three numbers: time on a CPU, time of delay, time slices.
TimeNs run_delay_read(RunDelay *d, TimeNs now) {
    char    text[96], *rest;
    ssize_t n = d->fd >= 0 ? pread(d->fd, text, sizeof text - 1, 0) : 0;
    d->at = now;
    if (n <= 0) return d->total;
    text[n] = '\0';
    (void)strtoll(text, &rest, 10);
    TimeNs total = strtoll(rest, NULL, 10);
    if (total > d->total) d->total = total;
    return d->total;
}

TimeNs run_delay_until(RunDelay *d, TimeNs from, TimeNs now) {
    TimeNs before = d->total, total = run_delay_read(d, now), after = now > from ? now - from : 0;
    return total - before < after ? before : total - after;
}

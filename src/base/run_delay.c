#include "base/run_delay.h"

#include <fcntl.h>
#include <stdio.h>
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

// The file has three numbers: time on a CPU, time of delay, time slices. -1: it cannot be read.
static TimeNs read_delay(int fd) {
    char    text[96], *rest;
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
    if (n <= 0) return -1;
    text[n] = '\0';
    (void)strtoll(text, &rest, 10);
    return strtoll(rest, NULL, 10);
}

TimeNs run_delay_of(pid_t thread) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)thread);
    int    fd = open(path, O_RDONLY | O_CLOEXEC);
    TimeNs delay = read_delay(fd);
    if (fd >= 0) (void)close(fd);
    return delay;
}

TimeNs run_delay_read(RunDelay *d, TimeNs now) {
    TimeNs total = read_delay(d->fd);
    d->at = now;
    if (total > d->total) d->total = total;
    return d->total;
}

TimeNs run_delay_until(RunDelay *d, TimeNs from, TimeNs now) {
    TimeNs before = d->total, total = run_delay_read(d, now), after = now > from ? now - from : 0;
    return total - before < after ? before : total - after;
}

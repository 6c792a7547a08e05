#include "node/live/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 64 };  // bytes per cache miss

#define RESCTRL "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes"

static int open_misses(uint32_t cpu) {
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_HARDWARE,
                                .config = PERF_COUNT_HW_CACHE_MISSES,
                                .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool open_perf(Counters *c, const uint32_t *cpus, uint32_t n) {
    for (c->n = 0; cpus != NULL && c->n < n && c->n < CORES_MAX; c->n++) {
        c->fds[c->n] = open_misses(cpus[c->n]);
        if (c->fds[c->n] < 0) return false;
    }
    return c->n > 0;
}

static void close_perf(Counters *c) {
    for (uint32_t i = 0; i < c->n; i++) (void)close(c->fds[i]);
    c->n = 0;
}

void counters_open(Counters *c, const uint32_t *cpus, uint32_t n) {
    *c = (Counters){0};
    if (access(RESCTRL, R_OK) == 0) {
        (void)snprintf(c->resctrl, sizeof c->resctrl, RESCTRL);
        (void)snprintf(c->status, sizeof c->status, "memory traffic counted by resctrl");
        return;
    }
    errno = 0;
    if (open_perf(c, cpus, n)) {
        (void)snprintf(c->status, sizeof c->status, "cache misses counted by perf");
        return;
    }
    (void)snprintf(c->status, sizeof c->status,
                   "no counters (resctrl is not mounted; perf: %s): block times alone",
                   cpus == NULL ? "cores are not bound" : strerror(errno));
    close_perf(c);
}

void counters_close(Counters *c) {
    close_perf(c);
    c->resctrl[0] = '\0';
}

bool counters_any(const Counters *c) { return c->n > 0 || c->resctrl[0] != '\0'; }

static uint64_t read_resctrl(const char *path) {
    char  line[64] = "";
    FILE *f = fopen(path, "re");
    if (f == NULL) return 0;
    bool ok = fgets(line, sizeof line, f) != NULL;
    (void)fclose(f);
    return ok ? strtoull(line, NULL, 10) : 0;  // "Unavailable" reads as 0
}

static uint64_t read_perf(const Counters *c) {
    uint64_t all = 0, one = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (read(c->fds[i], &one, sizeof one) == (ssize_t)sizeof one) all += one * LINE;
    return all;
}

double counters_rate(Counters *c, TimeNs now) {
    if (!counters_any(c)) return 0;
    uint64_t bytes = c->resctrl[0] != '\0' ? read_resctrl(c->resctrl) : read_perf(c);
    TimeNs   passed = now - c->since;
    double   moved = bytes > c->last ? (double)(bytes - c->last) : 0;
    bool     first = c->since == 0;
    c->last = bytes;
    c->since = now;
    return first || passed <= 0 ? 0 : moved / (double)passed;
}

// The process as every exporter tells of it. What cannot be learned is left out.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "serve/metrics_int.h"

static void put(Sheet *s, const char *name, const char *type, const char *help, double x) {
    metrics_family(s, name, type, help);
    sheet_printf(s, "%s ", name);
    sheet_number(s, x);
    sheet_text(s, "\n");
}

static void put_memory(Sheet *s) {
    char  line[128] = "", *end = NULL;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return;
    bool read = fgets(line, sizeof line, f) != NULL;
    long page = sysconf(_SC_PAGESIZE);
    (void)fclose(f);
    uint64_t size = strtoull(line, &end, 10), resident = strtoull(end, NULL, 10);
    if (!read || page <= 0 || resident == 0) return;
    put(s, "process_resident_memory_bytes", "gauge", "Memory in use.",
        (double)resident * (double)page);
    put(s, "process_virtual_memory_bytes", "gauge", "Address space, most of it never touched.",
        (double)size * (double)page);
}

static void put_descriptors(Sheet *s) {
    uint64_t      n = 0;
    struct rlimit most;
    DIR          *d = opendir("/proc/self/fd");
    if (d == NULL) return;
    while (readdir(d) != NULL) n++;
    (void)closedir(d);
    n = n > 3 ? n - 3 : 0;  // itself, . and ..
    put(s, "process_open_fds", "gauge", "Descriptors.", (double)n);
    if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
        put(s, "process_max_fds", "gauge", "Descriptors allowed.", (double)most.rlim_cur);
}

static void put_cpu(Sheet *s) {
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return;
    put(s, "process_cpu_seconds_total", "counter", "Processor time.",
        (double)t.tv_sec + (double)t.tv_nsec / 1e9);
}

void metrics_process(const Metrics *m, Sheet *s) {
    put_cpu(s);
    put_memory(s);
    put_descriptors(s);
    put(s, "process_start_time_seconds", "gauge", "Since 1970.", m->started);
    metrics_family(s, "cotenant_build_info", "gauge", "What runs here.");
    sheet_text(s, "cotenant_build_info{version=\"" COTENANT_VERSION "\",compiler=\"");
    sheet_label(s, __VERSION__);
    sheet_text(s, "\"} 1\n");
}

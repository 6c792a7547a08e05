#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"

static bool first_of_core(const Cpu *c, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (c->threads[k].allowed && c->threads[k].core == c->threads[i].core) return false;
    return true;
}

CpuBudget cpu_budget(const Cpu *c, const CgroupRoots *roots) {
    CpuBudget b = {.present = c->n_cores, .quota_milli = cgroup_cpu_milli(roots)};
    for (uint32_t i = 0; i < c->n_threads; i++)
        b.allowed += c->threads[i].allowed && first_of_core(c, i);
    int64_t whole = b.quota_milli / 1000;  // down: a thread beyond the quota only gets throttled
    b.cores = b.present < b.allowed ? b.present : b.allowed;
    if (whole < b.cores) b.cores = (uint32_t)whole;
    if (b.cores == 0) b.cores = 1;
    return b;
}

void cpu_allow(Cpu *c) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return;
    for (uint32_t i = 0; i < c->n_threads; i++)
        c->threads[i].allowed = c->threads[i].os < CPU_SETSIZE && CPU_ISSET(c->threads[i].os, &set);
}

uint32_t cpu_pick(const Cpu *c, uint32_t n, uint32_t *os) {
    uint32_t got = 0;
    for (int siblings = 0; siblings < 2; siblings++)
        for (uint32_t i = 0; i < c->n_threads && got < n; i++)
            if (c->threads[i].allowed && first_of_core(c, i) == (siblings == 0))
                os[got++] = c->threads[i].os;
    return got;
}

static uint64_t ram_bytes(const char *proc) {
    char               path[4096], line[256];
    int                n = snprintf(path, sizeof path, "%s/meminfo", proc);
    FILE              *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    unsigned long long kib = 0;
    while (f != NULL && kib == 0 && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "MemTotal:", 9) == 0) kib = strtoull(line + 9, NULL, 10);
    if (f != NULL) (void)fclose(f);
    if (kib > 0 && kib < UINT64_C(1) << 50) return kib * 1024;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 30;
}

uint64_t cpu_mem_budget(const CgroupRoots *roots) {
    uint64_t ram = ram_bytes(roots->proc);
    int64_t  limit = cgroup_memory_bytes(roots);
    return (uint64_t)limit < ram ? (uint64_t)limit : ram;
}

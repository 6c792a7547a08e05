#include "base/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/utf8.h"

enum { CPU_SET_MAX = 1 << 16 };

static const char *const feature_names[] = {
#define X(id, name) [CPU_##id] = name,
#include "base/cpu_feature.def"
#undef X
};

const char *cpu_feature_name(CpuFeature f) {
    CHECK((unsigned)f < CPU_FEATURES);
    return feature_names[f];
}

static uint64_t read_features(void) {
    uint64_t bits = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
#define X(id, name)                                                                                \
    if (__builtin_cpu_supports(name)) bits |= UINT64_C(1) << CPU_##id;
#include "base/cpu_feature.def"
#undef X
#endif
    return bits;
}

// The text after the first "key :" line of a file such as /proc/cpuinfo; false when there is none.
static bool proc_value(const char *proc, const char *file, const char *key, char *out,
                       size_t size) {
    char path[4096], line[512];
    int  n = snprintf(path, sizeof path, "%s/%s", proc, file);
    if (n < 0 || (size_t)n >= sizeof path) return false;
    FILE *f = fopen(path, "re");
    bool  found = false;
    for (int lines = 0; f != NULL && !found && lines < 1000; lines++) {
        if (fgets(line, sizeof line, f) == NULL) break;
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || colon == NULL) continue;
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        (void)snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        found = out[0] != '\0';
    }
    if (f != NULL) (void)fclose(f);
    return found;
}

static void read_model(const char *proc, char *out, size_t size) {
    if (!proc_value(proc, "cpuinfo", "model name", out, size) &&
        !proc_value(proc, "cpuinfo", "Processor", out, size))
        (void)snprintf(out, size, "unknown");
    for (char *at = out; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~') *at = '?';
}

// The affinity mask; NULL if the system does not report one.
static cpu_set_t *read_affinity(Arena *a, size_t *bytes) {
    for (size_t n = 1024; n <= CPU_SET_MAX; n *= 4) {
        cpu_set_t *set = arena_try(a, 1, CPU_ALLOC_SIZE(n), _Alignof(cpu_set_t));
        *bytes = CPU_ALLOC_SIZE(n);
        if (set == NULL) return NULL;
        if (sched_getaffinity(0, *bytes, set) == 0) return set;
    }
    return NULL;
}

// Without sysfs: one single-threaded core per CPU in the affinity mask.
static Err assume_threads(Arena *a, const cpu_set_t *set, size_t bytes, Cpu *c) {
    long     online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = set != NULL ? (uint32_t)CPU_COUNT_S(bytes, set) : 0, os = 0;
    if (n == 0) n = online > 0 && online < CPU_SET_MAX ? (uint32_t)online : 1;
    c->n_threads = c->n_cores = n;
    c->n_packages = 1;
    c->threads = arena_try_new(a, CpuThread, n);
    if (c->threads == NULL) return err_set(ERR_LIMIT, "no memory for %u threads", n);
    for (uint32_t i = 0; i < n; i++, os++) {
        while (set != NULL && os < 8 * bytes && !CPU_ISSET_S(os, bytes, set)) os++;
        c->threads[i] = (CpuThread){.os = os, .core = i, .l3 = CPU_NO_L3, .allowed = true};
    }
    return ERR_OK;
}

Err cpu_read(Arena *a, const CgroupRoots *roots, Cpu *out) {
    Cpu        c = {.features = read_features()};
    size_t     bytes = 0;
    cpu_set_t *set = read_affinity(a, &bytes);
    read_model(roots->proc, c.model, sizeof c.model);
    if (cpu_read_topology(roots->cpu, a, &c) != ERR_OK) TRY(assume_threads(a, set, bytes, &c));
    for (uint32_t i = 0; set != NULL && i < c.n_threads; i++)
        c.threads[i].allowed =
            c.threads[i].os < 8 * bytes && CPU_ISSET_S(c.threads[i].os, bytes, set);
    *out = c;
    return ERR_OK;
}

enum { LIST = 4096, CACHES = 16, THREADS_MAX = 1 << 16 };

// Each level is named by its lowest CPU number: sorting by these puts threads that share a level
// next to each other, and numbering from 0 follows.
typedef struct ThreadLocation {
    uint32_t package, l3, core, os;
} ThreadLocation;

static bool read_text(const char *dir, const char *name, char *out, size_t size) {
    char path[PATH_MAX];
    int  n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t  len = 0;
    ssize_t got;
    do {
        got = read(fd, out + len, size - 1 - len);
        if (got > 0) len += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    (void)close(fd);
    out[len] = '\0';
    return got == 0 && len > 0;
}

// Next range of a list such as "0-3,8,10-11"; false at its end or at invalid text.
static bool next_range(const char **at, uint32_t *low, uint32_t *high) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    unsigned long a = strtoul(*at, &end, 10), b = a;
    if (*end == '-') b = strtoul(end + 1, &end, 10);
    if (a > b || b >= THREADS_MAX) return false;
    *at = *end == ',' ? end + 1 : end;
    *low = (uint32_t)a;
    *high = (uint32_t)b;
    return true;
}

static uint32_t first_of(const char *dir, const char *name, uint32_t otherwise) {
    char        text[LIST];
    const char *at = text;
    uint32_t    low, high;
    return read_text(dir, name, text, sizeof text) && next_range(&at, &low, &high) ? low
                                                                                   : otherwise;
}

static size_t size_of(const char *dir, const char *name) {
    char text[64], *end;
    if (!read_text(dir, name, text, sizeof text)) return 0;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned           shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return n < SIZE_MAX >> shift ? (size_t)n << shift : 0;
}

// The L3 that the thread shares; with sizes set, the sizes of its data caches.
static uint32_t read_caches(const char *dir, Cpu *sizes) {
    uint32_t l3 = CPU_NO_L3;
    for (uint32_t i = 0; i < CACHES; i++) {
        char one[PATH_MAX], type[64], level[16];
        int  n = snprintf(one, sizeof one, "%s/cache/index%u", dir, i);
        if (n < 0 || (size_t)n >= sizeof one || !read_text(one, "level", level, sizeof level))
            break;
        if (!read_text(one, "type", type, sizeof type) || strncmp(type, "Instruction", 11) == 0)
            continue;
        if (level[0] == '3') l3 = first_of(one, "shared_cpu_list", CPU_NO_L3);
        if (sizes == NULL) continue;
        if (level[0] == '1') sizes->l1d_bytes = size_of(one, "size");
        if (level[0] == '2') sizes->l2_bytes = size_of(one, "size");
        if (level[0] == '3') sizes->l3_bytes = size_of(one, "size");
    }
    return l3;
}

static ThreadLocation read_location(const char *dir, uint32_t os, Cpu *sizes) {
    char one[PATH_MAX];
    int  n = snprintf(one, sizeof one, "%s/cpu%u", dir, os);
    if (n < 0 || (size_t)n >= sizeof one) return (ThreadLocation){0, CPU_NO_L3, os, os};
    return (ThreadLocation){.package = first_of(one, "topology/core_siblings_list", 0),
                            .l3 = read_caches(one, sizes),
                            .core = first_of(one, "topology/thread_siblings_list", os),
                            .os = os};
}

static int by_location(const void *x, const void *y) {
    const ThreadLocation *a = x, *b = y;
    const uint32_t        l[] = {a->package, a->l3, a->core, a->os},
                   r[] = {b->package, b->l3, b->core, b->os};
    for (size_t i = 0; i < sizeof l / sizeof l[0]; i++)
        if (l[i] != r[i]) return l[i] < r[i] ? -1 : 1;
    return 0;
}

static void number_threads(const ThreadLocation *p, Cpu *c) {
    for (uint32_t i = 0; i < c->n_threads; i++) {
        c->n_packages += i == 0 || p[i].package != p[i - 1].package;
        c->n_cores += i == 0 || p[i].core != p[i - 1].core;
        c->n_l3 += p[i].l3 != CPU_NO_L3 && (i == 0 || p[i].l3 != p[i - 1].l3);
        c->threads[i] = (CpuThread){.os = p[i].os,
                                    .core = c->n_cores - 1,
                                    .package = c->n_packages - 1,
                                    .l3 = p[i].l3 != CPU_NO_L3 ? c->n_l3 - 1 : CPU_NO_L3,
                                    .allowed = true};
    }
}

Err cpu_read_topology(const char *dir, Arena *a, Cpu *c) {
    char        text[LIST];
    const char *at = text;
    uint32_t    low, high, n = 0;
    if (!read_text(dir, "online", text, sizeof text))
        return err_set(ERR_IO, "%s/online cannot be read", dir);
    while (next_range(&at, &low, &high)) n += high - low + 1;
    if (n == 0 || n > THREADS_MAX) return err_set(ERR_PARSE, "%s/online: %.40s", dir, text);
    ThreadLocation *locations = arena_try_new(a, ThreadLocation, n);
    c->threads = arena_try_new(a, CpuThread, n);
    if (locations == NULL || c->threads == NULL)
        return err_set(ERR_LIMIT, "no memory for %u threads", n);
    at = text;
    while (next_range(&at, &low, &high))
        for (uint32_t os = low; os <= high; os++, c->n_threads++)
            locations[c->n_threads] = read_location(dir, os, c->n_threads == 0 ? c : NULL);
    qsort(locations, n, sizeof *locations, by_location);
    number_threads(locations, c);
    return ERR_OK;
}

static bool first_of_core(const Cpu *c, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (c->threads[k].allowed && c->threads[k].core == c->threads[i].core) return false;
    return true;
}

CpuBudget cpu_budget(const Cpu *c, const CgroupRoots *roots) {
    CpuBudget b = {.present = c->n_cores, .quota_milli = cgroup_cpu_milli(roots)};
    for (uint32_t i = 0; i < c->n_threads; i++)
        b.allowed += c->threads[i].allowed && first_of_core(c, i);
    int64_t whole =
        b.quota_milli / 1000;  // rounded down: a thread beyond the quota would be throttled
    b.cores = b.present < b.allowed ? b.present : b.allowed;
    if (whole < b.cores) b.cores = (uint32_t)whole;
    if (b.cores == 0) b.cores = 1;
    return b;
}

void cpu_update_affinity(Cpu *c) {
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

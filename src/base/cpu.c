#include "base/cpu.h"

#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cpu_sys.h"
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

// The set of hardware threads we may run on; NULL when the system does not say.
static cpu_set_t *read_affinity(Arena *a, size_t *bytes) {
    for (size_t n = 1024; n <= CPU_SET_MAX; n *= 4) {
        cpu_set_t *set = arena_try(a, 1, CPU_ALLOC_SIZE(n), _Alignof(cpu_set_t));
        *bytes = CPU_ALLOC_SIZE(n);
        if (set == NULL) return NULL;
        if (sched_getaffinity(0, *bytes, set) == 0) return set;
    }
    return NULL;
}

static size_t cache_bytes(hwloc_topology_t t, hwloc_obj_type_t type) {
    hwloc_obj_t o = hwloc_get_obj_by_type(t, type, 0);
    return o != NULL && o->attr != NULL ? (size_t)o->attr->cache.size : 0;
}

static uint32_t number_above(hwloc_topology_t t, hwloc_obj_type_t type, hwloc_obj_t o,
                             uint32_t none) {
    hwloc_obj_t up = hwloc_get_ancestor_obj_by_type(t, type, o);
    return up != NULL ? up->logical_index : none;
}

static uint32_t count(hwloc_topology_t t, hwloc_obj_type_t type, uint32_t least) {
    int n = hwloc_get_nbobjs_by_type(t, type);
    return n > (int)least ? (uint32_t)n : least;
}

static Err read_threads(hwloc_topology_t t, Arena *a, Cpu *c) {
    c->n_threads = count(t, HWLOC_OBJ_PU, 0);
    c->n_packages = count(t, HWLOC_OBJ_PACKAGE, 1);
    c->n_l3 = count(t, HWLOC_OBJ_L3CACHE, 0);
    bool cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0;
    c->n_cores = cores ? count(t, HWLOC_OBJ_CORE, 1) : c->n_threads;
    c->l1d_bytes = cache_bytes(t, HWLOC_OBJ_L1CACHE);
    c->l2_bytes = cache_bytes(t, HWLOC_OBJ_L2CACHE);
    c->l3_bytes = cache_bytes(t, HWLOC_OBJ_L3CACHE);
    c->threads = arena_try_new(a, CpuThread, c->n_threads);
    if (c->threads == NULL) return err_set(ERR_LIMIT, "no memory for %u threads", c->n_threads);
    for (uint32_t i = 0; i < c->n_threads; i++) {
        hwloc_obj_t o = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, i);
        c->threads[i] = (CpuThread){.os = o->os_index,
                                    .core = number_above(t, HWLOC_OBJ_CORE, o, i),
                                    .package = number_above(t, HWLOC_OBJ_PACKAGE, o, 0),
                                    .l3 = number_above(t, HWLOC_OBJ_L3CACHE, o, CPU_NO_L3),
                                    .allowed = true};
    }
    return ERR_OK;
}

static Err read_synthetic(Arena *a, const char *synthetic, Cpu *c) {
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0) return err_set(ERR_LIMIT, "hwloc cannot start");
    Err e = ERR_OK;
    if (hwloc_topology_set_synthetic(t, synthetic) != 0)
        e = err_set(ERR_ARG, "hwloc does not understand the machine '%.200s'", synthetic);
    else if (hwloc_topology_load(t) != 0)
        e = err_set(ERR_UNSUPPORTED, "hwloc cannot read this machine");
    if (e == ERR_OK) e = read_threads(t, a, c);
    hwloc_topology_destroy(t);
    return e;
}

// What we say of a machine that says nothing of itself: as many lone cores as we may run on.
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
    if (cpu_sys_read(roots->cpu, a, &c) != ERR_OK) TRY(assume_threads(a, set, bytes, &c));
    for (uint32_t i = 0; set != NULL && i < c.n_threads; i++)
        c.threads[i].allowed =
            c.threads[i].os < 8 * bytes && CPU_ISSET_S(c.threads[i].os, bytes, set);
    *out = c;
    return ERR_OK;
}

Err cpu_read_synthetic(Arena *a, const char *description, Cpu *out) {
    Cpu c = {.model = "synthetic"};
    TRY(read_synthetic(a, description, &c));
    *out = c;
    return ERR_OK;
}

#include "base/cgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const CgroupRoots cgroup_roots = {"/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu"};

// A possible mount point of a hierarchy below the root, and its version.
typedef struct Mount {
    const char *dir;
    bool        v2;
} Mount;

static const Mount cpu_mounts[] = {{"", true},
                                   {"/unified", true},
                                   {"/cpu", false},
                                   {"/cpu,cpuacct", false},
                                   {"/cpuacct,cpu", false}};
static const Mount memory_mounts[] = {{"", true}, {"/unified", true}, {"/memory", false}};

typedef int64_t Limit(const char *dir, bool v2);

static bool read_line(const char *dir, const char *name, char *out, size_t size) {
    char path[4096];
    int  n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    bool ok = fgets(out, (int)size, f) != NULL;
    (void)fclose(f);
    return ok;
}

static bool whole(const char **at, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    bool ok = end != *at && errno == 0;
    *at = end;
    return ok;
}

static bool read_whole(const char *dir, const char *name, int64_t *out) {
    char        line[128];
    const char *at = line;
    return read_line(dir, name, line, sizeof line) && whole(&at, out);
}

static int64_t cpu_limit(const char *dir, bool v2) {
    char        line[128];
    const char *at = line;
    int64_t     quota, period;
    bool        known = v2 ? read_line(dir, "cpu.max", line, sizeof line) && whole(&at, &quota) &&
                          whole(&at, &period)
                           : read_whole(dir, "cpu.cfs_quota_us", &quota) &&
                          read_whole(dir, "cpu.cfs_period_us", &period);
    if (!known || quota <= 0 || period <= 0 || quota > INT64_MAX / 1000) return INT64_MAX;
    return quota * 1000 / period;
}

static int64_t memory_limit(const char *dir, bool v2) {
    int64_t bytes;
    bool    known = read_whole(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &bytes);
    return known && bytes > 0 ? bytes : INT64_MAX;
}

// Negative, so that the group that was throttled longest has the smallest value.
static int64_t throttled(const char *dir, bool v2) {
    const char *key = v2 ? "throttled_usec " : "throttled_time ";
    char        path[4096], line[128];
    int64_t     found = INT64_MAX;
    int         n = snprintf(path, sizeof path, "%s/cpu.stat", dir);
    FILE       *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    while (f != NULL && found == INT64_MAX && fgets(line, sizeof line, f) != NULL) {
        const char *at = line + strlen(key);
        int64_t     value = 0;
        if (strncmp(line, key, strlen(key)) != 0 || !whole(&at, &value)) continue;
        if (value >= 0 && value < INT64_MAX / 1000) found = -value * (v2 ? 1000 : 1);
    }
    if (f != NULL) (void)fclose(f);
    return found;
}

// The smallest limit from dir up to the mount point (a path of root_len bytes). In a container
// the path may name directories that are not visible; they are skipped like any without a limit.
static int64_t walk_up(char *dir, size_t root_len, bool v2, Limit *limit) {
    int64_t least = INT64_MAX;
    for (;;) {
        int64_t here = limit(dir, v2);
        if (here < least) least = here;
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < root_len) return least;
        *slash = '\0';
    }
}

static bool has_controller(const char *list, size_t len, const char *want) {
    for (const char *at = list, *end = list + len; at < end;) {
        size_t n = strcspn(at, ",:");
        if (n == strlen(want) && memcmp(at, want, n) == 0) return true;
        at += n + 1;
    }
    return false;
}

// A line "number:controllers:path"; controllers are empty for version 2. NULL: another controller.
static const char *group_path(const char *line, bool v2, const char *controller) {
    const char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL || path[1] != '/' || strstr(path, "/..") != NULL) return NULL;
    size_t len = (size_t)(path - list) - 1;
    bool   ours = v2 ? len == 0 : has_controller(list + 1, len, controller);
    return ours ? path + 1 : NULL;
}

static void find_path(const char *proc, bool v2, const char *controller, char *out, size_t size) {
    char path[4096], line[4096];
    out[0] = '\0';
    int   n = snprintf(path, sizeof path, "%s/self/cgroup", proc);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *found = group_path(line, v2, controller);
        if (found == NULL) continue;
        (void)snprintf(out, size, "%.*s", (int)strcspn(found, "\n"), found);
        break;
    }
    if (f != NULL) (void)fclose(f);
}

static int64_t smallest(const CgroupRoots *roots, const Mount *mounts, size_t n_mounts,
                        const char *controller, Limit *limit) {
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < n_mounts; i++) {
        char group[4096], dir[9000];
        find_path(roots->proc, mounts[i].v2, controller, group, sizeof group);
        int root = snprintf(dir, sizeof dir, "%s%s", roots->cgroup, mounts[i].dir);
        if (root < 0 || (size_t)root + strlen(group) >= sizeof dir) continue;
        memcpy(dir + root, group, strlen(group) + 1);
        int64_t here = walk_up(dir, (size_t)root, mounts[i].v2, limit);
        if (here < least) least = here;
    }
    return least;
}

int64_t cgroup_cpu_milli(const CgroupRoots *roots) {
    return smallest(roots, cpu_mounts, sizeof cpu_mounts / sizeof *cpu_mounts, "cpu", cpu_limit);
}

int64_t cgroup_memory_bytes(const CgroupRoots *roots) {
    return smallest(roots, memory_mounts, sizeof memory_mounts / sizeof *memory_mounts, "memory",
                    memory_limit);
}

int64_t cgroup_throttled_ns(const CgroupRoots *roots) {
    int64_t least =
        smallest(roots, cpu_mounts, sizeof cpu_mounts / sizeof *cpu_mounts, "cpu", throttled);
    return least == INT64_MAX ? 0 : -least;
}

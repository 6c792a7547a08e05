#include "base/cpu_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST = 4096, CACHES = 16, THREADS_MAX = 1 << 16 };

// The lowest number of those that share something names it: sorted by these, what is shared lies
// together, and counting from 0 follows.
typedef struct Place {
    uint32_t package, l3, core, os;
} Place;

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

// One range of a list such as "0-3,8,10-11", or false at its end and where it makes no sense.
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

// Its data caches: who shares the third, and with sizes set, how large they are.
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

static Place read_place(const char *dir, uint32_t os, Cpu *sizes) {
    char one[PATH_MAX];
    int  n = snprintf(one, sizeof one, "%s/cpu%u", dir, os);
    if (n < 0 || (size_t)n >= sizeof one) return (Place){0, CPU_NO_L3, os, os};
    return (Place){.package = first_of(one, "topology/core_siblings_list", 0),
                   .l3 = read_caches(one, sizes),
                   .core = first_of(one, "topology/thread_siblings_list", os),
                   .os = os};
}

static int by_place(const void *x, const void *y) {
    const Place   *a = x, *b = y;
    const uint32_t l[] = {a->package, a->l3, a->core, a->os},
                   r[] = {b->package, b->l3, b->core, b->os};
    for (size_t i = 0; i < sizeof l / sizeof l[0]; i++)
        if (l[i] != r[i]) return l[i] < r[i] ? -1 : 1;
    return 0;
}

static void number_threads(const Place *p, Cpu *c) {
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

Err cpu_sys_read(const char *dir, Arena *a, Cpu *c) {
    char        text[LIST];
    const char *at = text;
    uint32_t    low, high, n = 0;
    if (!read_text(dir, "online", text, sizeof text))
        return err_set(ERR_IO, "%s/online cannot be read", dir);
    while (next_range(&at, &low, &high)) n += high - low + 1;
    if (n == 0 || n > THREADS_MAX) return err_set(ERR_PARSE, "%s/online: %.40s", dir, text);
    Place *places = arena_try_new(a, Place, n);
    c->threads = arena_try_new(a, CpuThread, n);
    if (places == NULL || c->threads == NULL)
        return err_set(ERR_LIMIT, "no memory for %u threads", n);
    at = text;
    while (next_range(&at, &low, &high))
        for (uint32_t os = low; os <= high; os++, c->n_threads++)
            places[c->n_threads] = read_place(dir, os, c->n_threads == 0 ? c : NULL);
    qsort(places, n, sizeof *places, by_place);
    number_threads(places, c);
    return ERR_OK;
}

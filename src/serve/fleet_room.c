// What a model may use and what it is held to: memory and time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/fleet_int.h"

#define LEAST_TARGET_NS INT64_C(10000000)     // of a relative target: a network is in between, too
#define FAR_NS          INT64_C(60000000000)  // where there is no target

enum { THROUGHPUT_TIMES = 10 };

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

static uint64_t resident_bytes(void) {
    char  line[128] = "";
    char *at = line;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return 0;
    if (fgets(line, sizeof line, f) == NULL) line[0] = '\0';
    (void)fclose(f);
    (void)strtoull(at, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t used_bytes(const Unit *u) {
    uint64_t sum = u->source.open ? u->source.weight_bytes : 0;
    for (uint32_t i = 0; i < u->n_variants; i++) sum += u->variants[i].memory_bytes;
    return sum;
}

uint64_t unit_room(const Unit *u) {
    uint64_t all = cpu_mem_budget(&cgroup_roots), taken = resident_bytes(), used = used_bytes(u);
    uint64_t own = (uint64_t)u->pub.config->set.memory_mb << 20;
    uint64_t room = all > taken ? all - taken : 0;
    if (own == 0) return room > 0 ? room : 1;
    uint64_t left = own > used ? own - used : 0;
    if (left > room) left = room;
    return left > 0 ? left : 1;
}

// To two digits, so that two starts on one machine mostly agree.
static TimeNs round_up(TimeNs ns) {
    TimeNs step = 1;
    while (ns / step >= 100) step *= 10;
    return (ns + step - 1) / step * step;
}

TimeNs unit_target(const Unit *u, const Stage *s) {
    const TenantSettings *set = &u->pub.config->set;
    double                ns = set->target_ms > 0 ? set->target_ms * 1e6
                               : s != NULL        ? set->target_x_isolated * s->solo_ns[0]
                                                  : 0;
    TimeNs                target = (TimeNs)ns;
    if (is(set->class, "best_effort")) return FAR_NS;
    if (is(set->class, "throughput")) target *= THROUGHPUT_TIMES;
    if (target == 0) return FAR_NS;
    if (set->target_ms > 0) return target;
    return target > LEAST_TARGET_NS ? round_up(target) : LEAST_TARGET_NS;
}

void unit_measure(Unit *u) {
    const Variant *first = NULL;
    for (uint32_t i = 0; i < u->n_variants && first == NULL; i++)
        if (u->variants[i].state == VARIANT_READY) first = &u->variants[i];
    u->pub.memory_bytes = used_bytes(u);
    if (first != NULL || u->pub.target_ns == 0)
        u->pub.target_ns = unit_target(u, first != NULL ? &first->stage : NULL);
}

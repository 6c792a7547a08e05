#include "compile/stopwatch.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "kernel/probe_latency.h"

enum { PAGE = 4096, LINE = 64 };

static const double stolen_most = 0.03;  // of the wall time, that a thread did not run

typedef struct Member {
    _Alignas(128) Part part;
    const char *other;  // memory that is read in between
    uint64_t    seen;
    TimeNs      wall, cpu;
} Member;

struct Stopwatch {
    Team         *team;
    Arena         memory;
    size_t        evict_bytes;
    Member       *members;  // [team_size]
    StopwatchWork work;
    TimeNs        cost;  // of reading the thread's clock
    TimeNs        took;
};

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

Err stopwatch_create(Stopwatch **out, Team *team, size_t scratch_bytes, size_t evict_bytes) {
    uint32_t n = team_size(team);
    size_t   scratch = pages(scratch_bytes), other = pages(evict_bytes), cap;
    Arena    a = {0};
    if (__builtin_mul_overflow(n, scratch + other + PAGE, &cap))
        return err_set(ERR_LIMIT, "scratch memory of %zu bytes is too much", scratch_bytes);
    TRY(arena_init(&a, cap + PAGE + sizeof(Stopwatch)));
    Stopwatch *t = arena_new(&a, Stopwatch, 1);
    *t = (Stopwatch){.team = team, .evict_bytes = evict_bytes};
    t->cost = (TimeNs)probe_clock_cost(CLOCK_THREAD_CPUTIME_ID);
    t->members = arena_new(&a, Member, n);
    for (uint32_t i = 0; i < n; i++) {
        t->members[i].part.scratch = arena_alloc(&a, 1, scratch, PAGE);
        // Written to, because pages that never were are all the same one.
        t->members[i].other = memset(arena_alloc(&a, 1, other, PAGE), 1, other);
    }
    t->memory = a;
    *out = t;
    return ERR_OK;
}

void stopwatch_destroy(Stopwatch *t) {
    if (t == NULL) return;
    Arena a = t->memory;
    arena_finish(&a);
}

static TimeNs cpu_time(void) {
    struct timespec t;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void evict(const Stopwatch *t, Member *m) {
    uint64_t seen = 0;
    for (size_t at = 0; at < t->evict_bytes; at += LINE)
        seen += *(const volatile uint8_t *)(m->other + at);
    m->seen += seen;
}

// Both clocks are read in the same order everywhere, so that a thread that kept its core has as
// much CPU time as wall time, and what reading costs can be taken off.
static void run_part(void *ctx, uint32_t index, uint32_t count) {
    Stopwatch *t = ctx;
    Member    *m = &t->members[index];
    Clock      clock = clock_steady();
    m->part.index = index;
    m->part.count = count;
    evict(t, m);
    team_barrier(t->team);
    TimeNs cpu = cpu_time(), begin = clock_now(clock);
    t->work.run(t->work.self, t->work.version, m->part);
    m->wall = clock_now(clock) - begin;
    m->cpu = cpu_time() - cpu - t->cost;
    team_barrier(t->team);
    if (index == 0) t->took = clock_now(clock) - begin - t->cost;
}

TimeNs stopwatch_run(Stopwatch *t, StopwatchWork w, uint32_t cores, bool *clean) {
    t->work = w;
    team_run_some(t->team, cores, run_part, t);
    TimeNs longest = 1;
    *clean = true;
    for (uint32_t i = 0; i < cores; i++) {
        const Member *m = &t->members[i];
        if ((double)(m->wall - m->cpu) > stolen_most * (double)m->wall) *clean = false;
        if (m->cpu > longest) longest = m->cpu;
    }
    return *clean && t->took > 0 ? t->took : longest;
}

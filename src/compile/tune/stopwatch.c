#include "compile/tune/stopwatch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/clock.h"
#include "kernel/probe.h"

enum { PAGE = 4096, LINE = 64, HUGE_PAGE = 2 << 20 };

static const double max_stolen =
    0.03;  // share of the wall time that a thread may lose in a clean run

typedef struct Member {
    _Alignas(128) Part part;
    uint64_t seen;
    TimeNs   begin, end, cpu;
} Member;

struct Stopwatch {
    Team         *team;
    Arena         memory;
    char         *other;  // read between runs, to replace cached data
    size_t        private_bytes, shared_bytes;
    Member       *members;  // [team_size]
    StopwatchWork work;
    TimeNs        cost;  // of reading the CPU clock
};

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static Err init(Stopwatch *t, size_t scratch_bytes) {
    uint32_t n = team_size(t->team);
    size_t   scratch = pages(scratch_bytes), other = pages(t->private_bytes) * n, all;
    if (other < t->shared_bytes) other = pages(t->shared_bytes);
    if (__builtin_mul_overflow(n, scratch + sizeof(Member), &all) ||
        __builtin_add_overflow(all, other, &all))
        return err_set(ERR_LIMIT, "scratch memory of %zu bytes is too much", scratch_bytes);
    TRY(arena_init(&t->memory, all + (size_t)4 * HUGE_PAGE));
    t->members = arena_new(&t->memory, Member, n);
    for (uint32_t i = 0; i < n; i++)
        t->members[i].part.scratch = arena_alloc(&t->memory, 1, scratch, PAGE);
    t->other = arena_alloc(&t->memory, 1, other, HUGE_PAGE);
    (void)madvise(t->other, other, MADV_HUGEPAGE);
    memset(t->other, 1, other);  // unwritten pages all map to the zero page
    return ERR_OK;
}

Err stopwatch_create(Stopwatch **out, Team *team, size_t scratch_bytes, size_t private_bytes,
                     size_t shared_bytes) {
    Stopwatch *t = malloc(sizeof *t);
    if (t == NULL) return err_set(ERR_LIMIT, "no memory for a stopwatch");
    *t = (Stopwatch){
        .team = team, .private_bytes = private_bytes / LINE * LINE, .shared_bytes = shared_bytes};
    t->cost = (TimeNs)probe_clock_cost(CLOCK_THREAD_CPUTIME_ID);
    Err e = init(t, scratch_bytes);
    if (e == ERR_OK)
        *out = t;
    else
        free(t);
    return e;
}

void stopwatch_destroy(Stopwatch *t) {
    if (t == NULL) return;
    arena_finish(&t->memory);
    free(t);
}

TimeNs stopwatch_cpu_time(void) {
    struct timespec t;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pollute_caches(const Stopwatch *t, Member *m, Part part) {
    size_t   share = t->shared_bytes / part.count / LINE * LINE;
    size_t   bytes = share > t->private_bytes ? share : t->private_bytes;
    uint64_t seen = 0;
    for (size_t at = 0; at < bytes; at += LINE)
        seen += *(const volatile uint8_t *)(t->other + part.index * bytes + at);
    m->seen += seen;
}

// Both clocks are read in the same order at both ends, so a thread that kept its core has equal CPU
// and wall time.
static void run_part(void *ctx, uint32_t index, uint32_t count) {
    Stopwatch *t = ctx;
    Member    *m = &t->members[index];
    Clock      clock = clock_monotonic();
    m->part.index = index;
    m->part.count = count;
    pollute_caches(t, m, m->part);
    if (t->work.warm != NULL) t->work.warm(t->work.self, m->part);
    team_barrier(t->team);
    TimeNs cpu = stopwatch_cpu_time();
    m->begin = clock_now(clock);
    t->work.run(t->work.self, t->work.version, m->part);
    m->end = clock_now(clock);
    m->cpu = stopwatch_cpu_time() - cpu - t->cost;
}

// From the first start to the last end: any thread may have been delayed in between.
TimeNs stopwatch_run(Stopwatch *t, StopwatchWork w, uint32_t cores, bool *clean) {
    t->work = w;
    team_run_some(t->team, cores, run_part, t);
    TimeNs begin = INT64_MAX, end = INT64_MIN, longest = 1;
    *clean = true;
    for (uint32_t i = 0; i < cores; i++) {
        const Member *m = &t->members[i];
        TimeNs        wall = m->end - m->begin;
        if ((double)(wall - m->cpu) > max_stolen * (double)wall) *clean = false;
        if (m->cpu > longest) longest = m->cpu;
        if (m->begin < begin) begin = m->begin;
        if (m->end > end) end = m->end;
    }
    return *clean && end > begin ? end - begin : longest;
}

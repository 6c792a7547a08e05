#include "kernel/probe_latency.h"

#include <math.h>
#include <sched.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/spin.h"
#include "base/stats.h"

enum {
    CORES_MAX = 1024,
    PAIRS_MAX = 28,
    SAMPLES_MAX = 4096,
    HOPS = 20,
    LEAST_SAMPLES = 20,
    LOOKS = 200
};
enum { ASLEEP_AFTER_NS = 100000 };

typedef struct Pair {  // what two members share while one measures the other
    Team   *team;
    TimeNs  stop_at;
    double *samples;
    size_t  n, enough, room;
    TimeNs  heard;
    bool    stop;
    _Alignas(128) _Atomic uint32_t word;
} Pair;

// Tighter than spin_wait_not: a pause between looks would be measured too.
static void await(const _Atomic uint32_t *word, uint32_t wanted) {
    for (uint32_t i = 1; atomic_load_explicit(word, memory_order_acquire) != wanted; i++)
        if (i % (1 << 16) == 0) (void)sched_yield();
}

static void keep(Pair *p, double sample) {
    p->samples[p->n++] = sample;
    bool late = clock_now(clock_steady()) >= p->stop_at;
    p->stop = p->n == p->room || (late && p->n >= p->enough);
}

static void play(Pair *p, uint32_t index) {
    TimeNs begin = clock_now(clock_steady());
    for (uint32_t i = 0; i < HOPS; i++) {
        if (index == 0) atomic_store_explicit(&p->word, 2 * i + 1, memory_order_release);
        await(&p->word, 2 * i + 1 + (index == 0));
        if (index == 1) atomic_store_explicit(&p->word, 2 * i + 2, memory_order_release);
    }
    if (index == 0) keep(p, (double)(clock_now(clock_steady()) - begin) / HOPS);
}

static void ping_pong(void *ctx, uint32_t index, uint32_t count) {
    Pair *p = ctx;
    (void)count;
    while (!p->stop) {
        team_barrier(p->team);
        play(p, index);
        team_barrier(p->team);
    }
}

// The sleeper is given time to fall asleep; should it still be awake, it hears of the call at once,
// which a median does not mind.
static void call_sleeper(Pair *p) {
    Clock  clock = clock_steady();
    TimeNs from = clock_now(clock) + ASLEEP_AFTER_NS;
    while (clock_now(clock) < from) spin_pause();
    TimeNs called = clock_now(clock);
    atomic_store(&p->word, 1);
    futex_wake(&p->word, 1);
    team_barrier(p->team);
    keep(p, (double)(p->heard - called));
    atomic_store(&p->word, 0);
}

static void call_and_sleep(void *ctx, uint32_t index, uint32_t count) {
    Pair *p = ctx;
    (void)count;
    while (!p->stop) {
        team_barrier(p->team);
        if (index == 0) {
            call_sleeper(p);
        } else {
            while (atomic_load(&p->word) == 0) futex_wait(&p->word, 0);
            p->heard = clock_now(clock_steady());
            team_barrier(p->team);
        }
        team_barrier(p->team);
    }
}

// Pair number k of those that n cores make, (0,1) (0,2) (1,2) (0,3) ...
static void nth_pair(uint32_t k, const uint32_t *cpus, uint32_t pair[2]) {
    uint32_t second = 1;
    for (; k >= second; second++) k -= second;
    pair[0] = cpus[k];
    pair[1] = cpus[second];
}

static Err probe_pair(const uint32_t cpus[2], TimeNs budget, TeamFn *fn, Pair *p) {
    TRY(team_create(&p->team, 2, cpus));
    p->stop_at = clock_now(clock_steady()) + budget;
    p->stop = false;
    team_pin(p->team);
    team_run(p->team, fn, p);
    team_destroy(p->team);
    return ERR_OK;
}

static Err spread_of(const Pair *p, Arena *a, ProbeSpread *out) {
    double *sorted = NULL;
    TRY(stats_sort(a, p->samples, p->n, &sorted));
    *out = (ProbeSpread){.least = sorted[0],
                         .median = stats_percentile(sorted, p->n, 50),
                         .p90 = stats_percentile(sorted, p->n, 90),
                         .samples = (uint32_t)p->n};
    return ERR_OK;
}

static Err probe_pairs(const Cpu *cpu, uint32_t pairs_max, TimeNs budget, TeamFn *fn,
                       ProbeSpread *out) {
    uint32_t most = cpu->n_cores < CORES_MAX ? cpu->n_cores : CORES_MAX;
    uint32_t cpus[CORES_MAX], pair[2], cores = cpu_pick(cpu, most, cpus);
    uint32_t all = cores * (cores - 1) / 2, pairs = all < pairs_max ? all : pairs_max;
    Arena    a = {0};
    Err      e = ERR_OK;
    *out = (ProbeSpread){0};
    if (cores < 2) return ERR_OK;
    TRY(arena_init(&a, (size_t)4 * SAMPLES_MAX * sizeof(double)));
    Pair p = {.samples = arena_new(&a, double, SAMPLES_MAX)};
    for (uint32_t i = 0; e == ERR_OK && i < pairs; i++) {
        p.enough = p.n + LEAST_SAMPLES;
        p.room = p.n + (SAMPLES_MAX - p.n) / (pairs - i);
        nth_pair((uint32_t)((uint64_t)i * all / pairs), cpus, pair);
        e = probe_pair(pair, budget / pairs, fn, &p);
    }
    if (e == ERR_OK) e = spread_of(&p, &a, out);
    arena_finish(&a);
    return e;
}

Err probe_hops(const Cpu *cpu, TimeNs budget, ProbeSpread *out) {
    return probe_pairs(cpu, PAIRS_MAX, budget, ping_pong, out);
}

Err probe_wakes(const Cpu *cpu, TimeNs budget, ProbeSpread *out) {
    return probe_pairs(cpu, 1, budget, call_and_sleep, out);
}

double probe_clock_cost(clockid_t id) {
    double          best = INFINITY;
    struct timespec t;
    Clock           clock = clock_steady();
    for (int sample = 0; sample < 20; sample++) {
        TimeNs begin = clock_now(clock);
        for (int i = 0; i < LOOKS; i++) CHECK(clock_gettime(id, &t) == 0);
        best = fmin(best, (double)(clock_now(clock) - begin) / LOOKS);
    }
    return best;
}

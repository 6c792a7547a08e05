#include "kernel/probe.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/stats.h"
#include "base/sync.h"
#include "base/tensor.h"

enum { SAMPLES_MIN = 20, OVERRUN_MAX = 8 };  // OVERRUN_MAX: times the budget, to reach SAMPLES_MIN

typedef struct Span {
    _Alignas(128) TimeNs begin;
    TimeNs end;
} Span;

typedef struct Sampling {
    Team      *team;
    ProbeWork *work;
    void      *self;
    Span      *spans;  // [count]
    TimeNs     best, start, budget;
    bool       stop;
} Sampling;

static TimeNs whole_span(const Sampling *s, uint32_t count) {
    TimeNs begin = s->spans[0].begin, end = s->spans[0].end;
    for (uint32_t i = 1; i < count; i++) {
        if (s->spans[i].begin < begin) begin = s->spans[i].begin;
        if (s->spans[i].end > end) end = s->spans[i].end;
    }
    return end - begin;
}

static void end_round(Sampling *s, uint32_t count, uint32_t round) {
    TimeNs span = whole_span(s, count);
    if (span < 1) span = 1;
    if (round == 0 || span < s->best) s->best = span;
    TimeNs spent = s->spans[0].end - s->start;
    s->stop = spent >= (round + 1 < SAMPLES_MIN ? OVERRUN_MAX * s->budget : s->budget);
}

static void sample(void *ctx, uint32_t index, uint32_t count) {
    Sampling *s = ctx;
    Clock     clock = clock_monotonic();
    for (uint32_t round = 0; !s->stop; round++) {
        team_barrier(s->team);
        s->spans[index].begin = clock_now(clock);
        s->work(s->self, index, round);
        s->spans[index].end = clock_now(clock);
        team_barrier(s->team);
        if (index == 0) end_round(s, count, round);
        team_barrier(s->team);
    }
}

TimeNs probe_sample(Team *t, uint32_t count, TimeNs budget, ProbeWork *work, void *self) {
    Sampling s = {.team = t, .work = work, .self = self, .budget = budget};
    s.spans = aligned_alloc(_Alignof(Span), count * sizeof *s.spans);
    if (s.spans == NULL) return 0;
    s.start = clock_now(clock_monotonic());
    team_run_some(t, count, sample, &s);
    free(s.spans);
    return s.best;
}

enum {
    CORES_MAX = 1024,
    PAIRS_MAX = 28,
    SAMPLES_MAX = 4096,
    HOPS = 20,
    PAIR_SAMPLES_MIN = 20,
    CLOCK_READS = 200
};
enum { ASLEEP_AFTER_NS = 100000 };

typedef struct Pair {  // shared by the two threads of a latency measurement
    Team   *team;
    TimeNs  stop_at;
    double *samples;
    size_t  n, min, max;
    TimeNs  woken_at;
    bool    stop;
    _Alignas(128) _Atomic uint32_t word;
} Pair;

// Spins without a pause instruction, unlike spin_wait_not: a pause would be part of the
// measurement.
static void spin_until(const _Atomic uint32_t *word, uint32_t wanted) {
    for (uint32_t i = 1; atomic_load_explicit(word, memory_order_acquire) != wanted; i++)
        if (i % (1 << 16) == 0) (void)sched_yield();
}

static void add_sample(Pair *p, double sample) {
    p->samples[p->n++] = sample;
    bool late = clock_now(clock_monotonic()) >= p->stop_at;
    p->stop = p->n == p->max || (late && p->n >= p->min);
}

static void round_trips(Pair *p, uint32_t index) {
    TimeNs begin = clock_now(clock_monotonic());
    for (uint32_t i = 0; i < HOPS; i++) {
        if (index == 0) atomic_store_explicit(&p->word, 2 * i + 1, memory_order_release);
        spin_until(&p->word, 2 * i + 1 + (index == 0));
        if (index == 1) atomic_store_explicit(&p->word, 2 * i + 2, memory_order_release);
    }
    if (index == 0) add_sample(p, (double)(clock_now(clock_monotonic()) - begin) / HOPS);
}

static void ping_pong(void *ctx, uint32_t index, uint32_t count) {
    Pair *p = ctx;
    (void)count;
    while (!p->stop) {
        team_barrier(p->team);
        round_trips(p, index);
        team_barrier(p->team);
    }
}

// Waits until the other thread is asleep. If it is still awake the sample is too short, which the
// median tolerates.
static void wake_sleeper(Pair *p) {
    Clock  clock = clock_monotonic();
    TimeNs from = clock_now(clock) + ASLEEP_AFTER_NS;
    while (clock_now(clock) < from) spin_pause();
    TimeNs sent_at = clock_now(clock);
    atomic_store(&p->word, 1);
    futex_wake(&p->word, 1);
    team_barrier(p->team);
    add_sample(p, (double)(p->woken_at - sent_at));
    atomic_store(&p->word, 0);
}

static void wake_and_sleep(void *ctx, uint32_t index, uint32_t count) {
    Pair *p = ctx;
    (void)count;
    while (!p->stop) {
        team_barrier(p->team);
        if (index == 0) {
            wake_sleeper(p);
        } else {
            while (atomic_load(&p->word) == 0) futex_wait(&p->word, 0);
            p->woken_at = clock_now(clock_monotonic());
            team_barrier(p->team);
        }
        team_barrier(p->team);
    }
}

// Pair k in the order (0,1) (0,2) (1,2) (0,3) ...
static void nth_pair(uint32_t k, const uint32_t *cpus, uint32_t pair[2]) {
    uint32_t second = 1;
    for (; k >= second; second++) k -= second;
    pair[0] = cpus[k];
    pair[1] = cpus[second];
}

static Err probe_pair(const uint32_t cpus[2], TimeNs budget, TeamFn *fn, Pair *p) {
    TRY(team_create(&p->team, 2, cpus));
    p->stop_at = clock_now(clock_monotonic()) + budget;
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
        p.min = p.n + PAIR_SAMPLES_MIN;
        p.max = p.n + (SAMPLES_MAX - p.n) / (pairs - i);
        nth_pair((uint32_t)((uint64_t)i * all / pairs), cpus, pair);
        e = probe_pair(pair, budget / pairs, fn, &p);
    }
    if (e == ERR_OK) e = spread_of(&p, &a, out);
    arena_finish(&a);
    return e;
}

static Err probe_hops(const Cpu *cpu, TimeNs budget, ProbeSpread *out) {
    return probe_pairs(cpu, PAIRS_MAX, budget, ping_pong, out);
}

static Err probe_wakes(const Cpu *cpu, TimeNs budget, ProbeSpread *out) {
    return probe_pairs(cpu, 1, budget, wake_and_sleep, out);
}

double probe_clock_cost(clockid_t id) {
    double          best = INFINITY;
    struct timespec t;
    Clock           clock = clock_monotonic();
    for (int sample = 0; sample < 20; sample++) {
        TimeNs begin = clock_now(clock);
        for (int i = 0; i < CLOCK_READS; i++) CHECK(clock_gettime(id, &t) == 0);
        best = fmin(best, (double)(clock_now(clock) - begin) / CLOCK_READS);
    }
    return best;
}

// An FMA sample takes about 20 us, a memory sample at least 30 us: much longer than a clock read,
// mostly shorter than a time slice of another process on the core.
enum {
    FMA_CHAINS = 12,  // per round, see vec_probe.c
    FMA_ROUNDS = 10000,
    STEPS = 14,
    STEP_NS = 110 * 1000000,
    PEAK_NS = 25 * 1000000,
    SAMPLE_BYTES = 2 << 20,  // per sample of a cache level
    CHUNK_BYTES = 6 << 20,   // per sample of DRAM
    CHUNK_STEP = 1 << 10,    // a multiple of 8 vectors
    DRAM_MIN = 96 << 20,
    DRAM_MAX = 384 << 20,
    HUGE_PAGE = 2 << 20,
};

const char *probe_level_name(ProbeLevel l) {
    static const char *const names[PROBE_LEVELS] = {"L1", "L2", "L3", "DRAM"};
    return l < PROBE_LEVELS ? names[l] : "unknown";
}

CacheSizes probe_caches(const Cpu *c) {
    return (CacheSizes){.l1 = c->l1d_bytes != 0 ? c->l1d_bytes : (size_t)32 << 10,
                        .l2 = c->l2_bytes != 0 ? c->l2_bytes : (size_t)512 << 10,
                        .l3 = c->l3_bytes};
}

typedef struct FmaProbe {
    const Isa *isa;
    float (*out)[32];  // one per member, padded against false sharing
} FmaProbe;

static void run_fma(void *self, uint32_t index, uint32_t round) {
    const FmaProbe *x = self;
    float          *out = x->out[index];
    (void)round;
    out[0] = 0.999f, out[1] = 0.001f;
    x->isa->probe_fma(FMA_ROUNDS, out);
}

static double fma_rate(Team *t, uint32_t count, const Isa *isa, TimeNs budget) {
    FmaProbe x = {isa, aligned_alloc(TENSOR_ALIGN, count * sizeof *x.out)};
    if (x.out == NULL) return 0;
    TimeNs took = probe_sample(t, count, budget, run_fma, &x);
    free(x.out);
    return took == 0 ? 0 : 2.0 * FMA_CHAINS * FMA_ROUNDS * isa->lanes * count / (double)took;
}

double probe_fma_peak(const Isa *isa) {
    Team *t = NULL;
    if (team_create(&t, 1, NULL) != ERR_OK) return 0;
    double rate = fma_rate(t, 1, isa, PEAK_NS);
    team_destroy(t);
    return rate;
}

typedef struct MemoryProbe {
    const Isa *isa;
    char      *base;  // the members' shares, consecutive
    size_t     share;
    size_t     bytes;        // per member and sample
    size_t     working_set;  // working set per member, traversed cyclically
    float (*out)[32];
} MemoryProbe;

static float *share_at(const MemoryProbe *m, uint32_t index, size_t at) {
    return (float *)(void *)(m->base + index * m->share + at);
}

static void read_cache(void *self, uint32_t index, uint32_t round) {
    const MemoryProbe *m = self;
    (void)round;
    for (size_t done = 0; done < m->bytes; done += m->working_set)
        m->isa->probe_read(share_at(m, index, 0), m->working_set / sizeof(float), m->out[index]);
}

static void read_dram(void *self, uint32_t index, uint32_t round) {
    const MemoryProbe *m = self;
    size_t             at = round * m->bytes % m->working_set;
    m->isa->probe_read(share_at(m, index, at), m->bytes / sizeof(float), m->out[index]);
}

static void triad_dram(void *self, uint32_t index, uint32_t round) {
    const MemoryProbe *m = self;
    float             *a = share_at(m, index, round * m->bytes % m->working_set);
    size_t             n = m->bytes / 3 / sizeof(float);
    m->isa->probe_triad(a + n, a + 2 * n, n, a);
}

// Reads the whole share once, so that its beginning is no longer in any cache.
static void flush_caches(void *ctx, uint32_t index, uint32_t count) {
    const MemoryProbe *m = ctx;
    (void)count;
    m->isa->probe_read(share_at(m, index, 0), m->share / sizeof(float), m->out[index]);
}

static void touch(void *ctx, uint32_t index, uint32_t count) {
    const MemoryProbe *m = ctx;
    (void)count;
    for (size_t at = 0; at < m->share; at += 4096) *share_at(m, index, at) = 1;
}

typedef struct ProbeRun {
    const Isa   *isa;
    Team        *team;
    TimeNs       step_ns;
    ProgressSink sink;
    int64_t      done;
    MemoryProbe  mem;
    size_t       bytes;  // at mem.base
} ProbeRun;

static void report_step(ProbeRun *p) {
    p->done++;
    progress_report(p->sink, p->done, STEPS);
}

static double memory_rate(ProbeRun *p, uint32_t count, ProbeWork *work) {
    p->mem.share = p->bytes / count / CHUNK_BYTES * CHUNK_BYTES;
    if (work != read_cache) {
        p->mem.bytes = CHUNK_BYTES;
        p->mem.working_set = p->mem.share;
        team_run_some(p->team, count, flush_caches, &p->mem);
    }
    TimeNs took = probe_sample(p->team, count, p->step_ns, work, &p->mem);
    report_step(p);
    return took == 0 ? 0 : (double)count * (double)p->mem.bytes / (double)took;
}

static ProbeRate memory_rates(ProbeRun *p, size_t bytes, ProbeWork *work) {
    if (work == read_cache) {
        p->mem.working_set = bytes / CHUNK_STEP * CHUNK_STEP;
        size_t times = (SAMPLE_BYTES + p->mem.working_set - 1) / p->mem.working_set;
        p->mem.bytes = p->mem.working_set * times;
    }
    ProbeRate r = {.bytes = bytes};
    r.one = memory_rate(p, 1, work);
    r.all = memory_rate(p, team_size(p->team), work);
    return r;
}

// Working set per core: at least twice L2, and small enough that all cores' sets fit L3.
static size_t l3_share(const Cpu *c) {
    uint32_t sharing = c->n_l3 > 0 ? (c->n_cores + c->n_l3 - 1) / c->n_l3 : 1;
    size_t   share = c->l3_bytes / 3 / sharing, l2 = 2 * probe_caches(c).l2;
    return share > l2 ? share : l2;
}

static void probe_memory(ProbeRun *p, const Cpu *c, Probe *out) {
    CacheSizes s = probe_caches(c);
    size_t     far = p->bytes / team_size(p->team);
    team_run(p->team, touch, &p->mem);
    out->read[PROBE_L1] = memory_rates(p, s.l1 / 2, read_cache);
    out->read[PROBE_L2] = memory_rates(p, s.l2 / 2, read_cache);
    if (s.l3 > 0 && l3_share(c) <= far)
        out->read[PROBE_L3] = memory_rates(p, l3_share(c), read_cache);
    else
        report_step(p), report_step(p);
    out->read[PROBE_DRAM] = memory_rates(p, far, read_dram);
    out->triad = memory_rates(p, far, triad_dram);
}

// DRAM working set: eight times the total L3, limited by available memory.
static size_t dram_bytes(const Cpu *c, uint32_t members) {
    size_t   bytes = 8 * c->l3_bytes * (c->n_l3 > 0 ? c->n_l3 : 1);
    uint64_t ram = cpu_mem_budget(&cgroup_roots) / 8;
    if (bytes < DRAM_MIN) bytes = DRAM_MIN;
    if (bytes > DRAM_MAX) bytes = DRAM_MAX;
    if (bytes > ram) bytes = (size_t)ram;
    size_t least = (size_t)members * CHUNK_BYTES;
    return bytes > least ? bytes : least;
}

static Err probe_with(ProbeRun *p, Arena *a, const Cpu *c, Probe *out) {
    uint32_t n = team_size(p->team);
    p->bytes = dram_bytes(c, n);
    TRY(arena_init(a, p->bytes + HUGE_PAGE + n * sizeof *p->mem.out));
    p->mem.base = arena_alloc(a, 1, p->bytes, HUGE_PAGE);
    (void)madvise(p->mem.base, p->bytes, MADV_HUGEPAGE);  // an optimisation only
    p->mem.share = p->bytes / n;
    p->mem.out = arena_alloc(a, n, sizeof *p->mem.out, TENSOR_ALIGN);
    out->fma.one = fma_rate(p->team, 1, p->isa, p->step_ns);
    report_step(p);
    out->fma.all = fma_rate(p->team, n, p->isa, p->step_ns);
    report_step(p);
    probe_memory(p, c, out);
    return ERR_OK;
}

Err probe_machine(const Cpu *cpu, const Isa *isa, Team *team, bool quick, ProgressSink sink,
                  Probe *out) {
    Arena    a = {0};
    Probe    found = {.cores = team_size(team)};
    ProbeRun p = {.isa = isa, .team = team, .sink = sink, .mem.isa = isa};
    p.step_ns = quick ? STEP_NS / 5 : STEP_NS;
    team_pin(team);
    Err e = probe_with(&p, &a, cpu, &found);
    team_unpin(team);
    arena_finish(&a);
    TRY(e);
    found.clock_ns = probe_clock_cost(CLOCK_MONOTONIC);
    found.thread_clock_ns = probe_clock_cost(CLOCK_THREAD_CPUTIME_ID);
    TRY(probe_hops(cpu, p.step_ns, &found.hop));
    report_step(&p);
    TRY(probe_wakes(cpu, p.step_ns, &found.wake));
    report_step(&p);
    *out = found;
    return ERR_OK;
}

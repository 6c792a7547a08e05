#include "kernel/probe.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/tensor.h"
#include "kernel/probe_latency.h"
#include "kernel/probe_sample.h"

// A sample of arithmetic takes about 20 us, of memory at least 30 us: much longer than a look at
// the clock, mostly shorter than a turn of another process on this core.
enum {
    CHAINS = 12,  // of vec_probe.c
    FMA_ROUNDS = 10000,
    STEPS = 14,
    STEP_NS = 110 * 1000000,
    PEAK_NS = 25 * 1000000,
    SAMPLE_BYTES = 2 << 20,  // of a cache
    CHUNK_BYTES = 6 << 20,   // of DRAM
    CHUNK_STEP = 1 << 10,    // 8 vectors or a multiple
    DRAM_LEAST = 96 << 20,
    DRAM_MOST = 384 << 20,
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

typedef struct Arithmetic {
    const Isa *isa;
    float (*out)[32];  // of each member, with room for a vector and a line between neighbours
} Arithmetic;

static void multiply(void *self, uint32_t index, uint32_t round) {
    const Arithmetic *x = self;
    float            *out = x->out[index];
    (void)round;
    out[0] = 0.999f, out[1] = 0.001f;
    x->isa->probe_fma(FMA_ROUNDS, out);
}

static double fma_rate(Team *t, uint32_t count, const Isa *isa, TimeNs budget) {
    Arithmetic x = {isa, aligned_alloc(TENSOR_ALIGN, count * sizeof *x.out)};
    if (x.out == NULL) return 0;
    TimeNs took = probe_sample(t, count, budget, multiply, &x);
    free(x.out);
    return took == 0 ? 0 : 2.0 * CHAINS * FMA_ROUNDS * isa->lanes * count / (double)took;
}

double probe_fma_peak(const Isa *isa) {
    Team *t = NULL;
    if (team_create(&t, 1, NULL) != ERR_OK) return 0;
    double rate = fma_rate(t, 1, isa, PEAK_NS);
    team_destroy(t);
    return rate;
}

typedef struct Memory {
    const Isa *isa;
    char      *base;  // members' shares, one after the other
    size_t     share;
    size_t     bytes;   // a member goes through in one sample
    size_t     around;  // it goes through before it starts again
    float (*out)[32];
} Memory;

static float *place(const Memory *m, uint32_t index, size_t at) {
    return (float *)(void *)(m->base + index * m->share + at);
}

static void read_near(void *self, uint32_t index, uint32_t round) {
    const Memory *m = self;
    (void)round;
    for (size_t done = 0; done < m->bytes; done += m->around)
        m->isa->probe_read(place(m, index, 0), m->around / sizeof(float), m->out[index]);
}

static void read_far(void *self, uint32_t index, uint32_t round) {
    const Memory *m = self;
    size_t        at = round * m->bytes % m->around;
    m->isa->probe_read(place(m, index, at), m->bytes / sizeof(float), m->out[index]);
}

static void triad_far(void *self, uint32_t index, uint32_t round) {
    const Memory *m = self;
    float        *a = place(m, index, round * m->bytes % m->around);
    size_t        n = m->bytes / 3 / sizeof(float);
    m->isa->probe_triad(a + n, a + 2 * n, n, a);
}

// Goes through all of it once, so that what it starts with is no longer in any cache.
static void leave_caches(void *ctx, uint32_t index, uint32_t count) {
    const Memory *m = ctx;
    (void)count;
    m->isa->probe_read(place(m, index, 0), m->share / sizeof(float), m->out[index]);
}

static void touch(void *ctx, uint32_t index, uint32_t count) {
    const Memory *m = ctx;
    (void)count;
    for (size_t at = 0; at < m->share; at += 4096) *place(m, index, at) = 1;
}

typedef struct Probing {
    const Isa   *isa;
    Team        *team;
    TimeNs       step_ns;
    ProgressSink sink;
    int64_t      done;
    Memory       mem;
    size_t       room;  // bytes at mem.base
} Probing;

static void step(Probing *p) {
    p->done++;
    progress_tell(p->sink, p->done, STEPS);
}

static double memory_rate(Probing *p, uint32_t count, ProbeWork *work) {
    p->mem.share = p->room / count / CHUNK_BYTES * CHUNK_BYTES;
    if (work != read_near) {
        p->mem.bytes = CHUNK_BYTES;
        p->mem.around = p->mem.share;
        team_run_some(p->team, count, leave_caches, &p->mem);
    }
    TimeNs took = probe_sample(p->team, count, p->step_ns, work, &p->mem);
    step(p);
    return took == 0 ? 0 : (double)count * (double)p->mem.bytes / (double)took;
}

static ProbeRate memory_rates(Probing *p, size_t bytes, ProbeWork *work) {
    if (work == read_near) {
        p->mem.around = bytes / CHUNK_STEP * CHUNK_STEP;
        size_t times = (SAMPLE_BYTES + p->mem.around - 1) / p->mem.around;
        p->mem.bytes = p->mem.around * times;
    }
    ProbeRate r = {.bytes = bytes};
    r.one = memory_rate(p, 1, work);
    r.all = memory_rate(p, team_size(p->team), work);
    return r;
}

// Enough of an L3 to leave L2 behind, little enough that all cores' shares stay in it.
static size_t l3_share(const Cpu *c) {
    uint32_t sharing = c->n_l3 > 0 ? (c->n_cores + c->n_l3 - 1) / c->n_l3 : 1;
    size_t   share = c->l3_bytes / 3 / sharing, l2 = 2 * probe_caches(c).l2;
    return share > l2 ? share : l2;
}

static void probe_memory(Probing *p, const Cpu *c, Probe *out) {
    CacheSizes s = probe_caches(c);
    size_t     far = p->room / team_size(p->team);
    team_run(p->team, touch, &p->mem);
    out->read[PROBE_L1] = memory_rates(p, s.l1 / 2, read_near);
    out->read[PROBE_L2] = memory_rates(p, s.l2 / 2, read_near);
    if (s.l3 > 0 && l3_share(c) <= far)
        out->read[PROBE_L3] = memory_rates(p, l3_share(c), read_near);
    else
        step(p), step(p);
    out->read[PROBE_DRAM] = memory_rates(p, far, read_far);
    out->triad = memory_rates(p, far, triad_far);
}

// Eight times the L3s together, as far as memory allows.
static size_t far_bytes(const Cpu *c, uint32_t members) {
    size_t   bytes = 8 * c->l3_bytes * (c->n_l3 > 0 ? c->n_l3 : 1);
    uint64_t ram = cpu_mem_budget(&cgroup_roots) / 8;
    if (bytes < DRAM_LEAST) bytes = DRAM_LEAST;
    if (bytes > DRAM_MOST) bytes = DRAM_MOST;
    if (bytes > ram) bytes = (size_t)ram;
    size_t least = (size_t)members * CHUNK_BYTES;
    return bytes > least ? bytes : least;
}

static Err probe_with(Probing *p, Arena *a, const Cpu *c, Probe *out) {
    uint32_t n = team_size(p->team);
    p->room = far_bytes(c, n);
    TRY(arena_init(a, p->room + HUGE_PAGE + n * sizeof *p->mem.out));
    p->mem.base = arena_alloc(a, 1, p->room, HUGE_PAGE);
    (void)madvise(p->mem.base, p->room, MADV_HUGEPAGE);  // what refuses it is a little slower
    p->mem.share = p->room / n;
    p->mem.out = arena_alloc(a, n, sizeof *p->mem.out, TENSOR_ALIGN);
    out->fma.one = fma_rate(p->team, 1, p->isa, p->step_ns);
    step(p);
    out->fma.all = fma_rate(p->team, n, p->isa, p->step_ns);
    step(p);
    probe_memory(p, c, out);
    return ERR_OK;
}

Err probe_machine(const Cpu *cpu, const Isa *isa, Team *team, bool quick, ProgressSink sink,
                  Probe *out) {
    Arena   a = {0};
    Probe   found = {.cores = team_size(team)};
    Probing p = {.isa = isa, .team = team, .sink = sink, .mem.isa = isa};
    p.step_ns = quick ? STEP_NS / 5 : STEP_NS;
    team_pin(team);
    Err e = probe_with(&p, &a, cpu, &found);
    team_unpin(team);
    arena_finish(&a);
    TRY(e);
    found.clock_ns = probe_clock_cost(CLOCK_MONOTONIC);
    found.thread_clock_ns = probe_clock_cost(CLOCK_THREAD_CPUTIME_ID);
    TRY(probe_hops(cpu, p.step_ns, &found.hop));
    step(&p);
    TRY(probe_wakes(cpu, p.step_ns, &found.wake));
    step(&p);
    *out = found;
    return ERR_OK;
}

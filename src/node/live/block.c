#include "node/live/block.h"

#include <time.h>

#include "base/clock.h"
#include "base/err.h"

// Reading the thread's CPU clock is expensive, so the sample at the end of a block is reused as the
// start of the next, unless the core was idle in between.
enum { IDLE_NS = 100000 };

static TimeNs thread_time(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void clock_begin(BlockClock *c) {
    TimeNs wall = clock_monotonic_ns();
    if (wall - c->wall < IDLE_NS) return;
    c->cpu = thread_time();
    c->wall = wall;
}

static TimeNs clock_lost(BlockClock *c) {
    TimeNs wall = clock_monotonic_ns(), cpu = thread_time();
    TimeNs lost = (wall - c->wall) - (cpu - c->cpu);
    c->wall = wall;
    c->cpu = cpu;
    return lost > 0 ? lost : 0;
}

// Consecutive layers with one task run on member 0 without barriers.
static void plan_leg(Block *b) {
    b->to = b->from + 1;
    if (b->count == 1 || !program_is_serial(b->program, b->from)) return;
    while (b->to < b->end && program_is_serial(b->program, b->to)) b->to++;
}

static double model_time(const Block *b, uint32_t layer, uint32_t cores) {
    return (double)node_time(b->model, layer, b->versions[layer], node_count_index(b->model, cores),
                             0);
}

static void account(Block *b) {
    uint32_t wanted = b->wanted > b->count ? b->wanted : b->count;
    for (uint32_t l = b->from; l < b->to && l < b->model->n_layers; l++) {
        double t = model_time(b, l, b->count);
        b->expected_ns += t;
        b->unhindered_ns += wanted == b->count ? t : model_time(b, l, wanted);
    }
}

static void note_area(Block *b, TimeNs t) {
    b->area_ns += (double)(t - b->area_from) * b->count;
    b->area_from = t;
}

static void note_growth(Block *b, TimeNs t, Cores more) {
    if (b->n_growths == BLOCK_GROWTHS) {
        BlockGrowth *last = &b->growths[BLOCK_GROWTHS - 1];
        last->cores = cores_union(last->cores, &more);
        return;
    }
    b->growths[b->n_growths++] = (BlockGrowth){t, b->from, more};
}

// Members joining at the next barrier, numbered from `index`. They are counted before the phase
// flips but posted after, so that none reaches the barrier early.
typedef struct Joiners {
    Cores    cores;
    uint32_t index;
} Joiners;

static void take_in(Block *b, Joiners *j) {
    if (atomic_load_explicit(&b->offer, memory_order_acquire) != BLOCK_OFFERED) return;
    TimeNs t = clock_monotonic_ns();
    *j = (Joiners){b->more, b->count};
    note_area(b, t);
    note_growth(b, t, b->more);
    b->count += cores_count(&b->more);
    atomic_store_explicit(&b->offer, BLOCK_OPEN, memory_order_release);
}

static void call_joiners(Block *b, const Joiners *j) {
    uint32_t index = j->index;
    for (uint32_t c = cores_next(&j->cores, 0); c < CORES_MAX; c = cores_next(&j->cores, c + 1))
        workers_post(b->workers, c, b, index++);
}

static void close_block(Block *b) {
    (void)atomic_exchange_explicit(&b->offer, BLOCK_CLOSED, memory_order_acq_rel);
    b->ended = clock_monotonic_ns();
    note_area(b, b->ended);
}

// Run by the last member at a barrier, while the others wait.
static void advance(Block *b, Joiners *j) {
    account(b);
    b->from = b->to;
    if (b->from < b->end) run_memory_check_stop(b->mem);
    b->skip = b->mem->failed != ERR_OK || b->mem->complete;
    if (b->from == b->end) {
        close_block(b);
        return;
    }
    atomic_store_explicit(&b->at, b->from, memory_order_relaxed);
    take_in(b, j);
    plan_leg(b);
}

// True for the last member to arrive.
static bool meet(Block *b, uint32_t count) {
    Joiners  joiners = {0};
    Barrier *all = &b->barrier;
    uint32_t phase = atomic_load_explicit(&all->phase, memory_order_relaxed);
    if (count > 1 &&
        atomic_fetch_add_explicit(&all->arrived, 1, memory_order_acq_rel) + 1 < count) {
        spin_wait_not(&all->phase, phase);
        return false;
    }
    advance(b, &joiners);
    atomic_store_explicit(&all->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&all->phase, phase + 1, memory_order_release);
    if (joiners.index != 0) call_joiners(b, &joiners);
    return true;
}

// The interpreted tail follows the model's layers and has one version.
static uint32_t version_of(const Block *b, uint32_t layer) {
    return layer < b->model->n_layers ? b->versions[layer] : 0;
}

void block_run(Block *b, uint32_t core, uint32_t index) {
    BlockClock *clock = &b->clocks[core];
    clock_begin(clock);
    for (;;) {
        uint32_t count = b->count, from = b->from, to = b->to;
        bool     over = to == b->end;
        for (uint32_t l = from; l < to && !b->skip; l++)
            program_run_layer(b->program, b->mem, l, version_of(b, l), index, count, b->outputs);
        if (over) atomic_fetch_add_explicit(&b->stolen_ns, clock_lost(clock), memory_order_relaxed);
        bool last = meet(b, count);
        if (over && last) b->over(b->self, b);
        if (over) return;
    }
}

void block_start(Block *b, TimeNs t, const Cores *cores, Cores *asleep) {
    uint32_t index = 0;
    b->count = b->began_with = cores_count(cores);
    b->from = b->first;
    b->skip = false;
    b->began = b->area_from = t;
    b->area_ns = b->expected_ns = b->unhindered_ns = 0;
    b->n_growths = 0;
    atomic_store_explicit(&b->stolen_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&b->at, b->first, memory_order_relaxed);
    atomic_store_explicit(&b->offer, BLOCK_OPEN, memory_order_relaxed);
    plan_leg(b);
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1))
        if (workers_give(b->workers, c, b, index++)) cores_add(asleep, c);
}

bool block_offer(Block *b, const Cores *more) {
    uint32_t open = BLOCK_OPEN;
    if (atomic_load_explicit(&b->offer, memory_order_acquire) != BLOCK_OPEN) return false;
    b->more = *more;
    return atomic_compare_exchange_strong_explicit(&b->offer, &open, BLOCK_OFFERED,
                                                   memory_order_acq_rel, memory_order_acquire);
}

#include "node/live/block.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"

// Reading the thread's CPU clock is expensive, so the sample at the end of a block is reused as the
// start of the next, unless the core was idle in between.
enum { IDLE_NS = 100000 };

// A sleeping worker takes up to this long to start on an idle core.
enum { WAKE_NS = 150000 };

// A block that has run for less is not asked whether its core was taken.
enum { LONG_NS = 500000 };

// A layer that takes longer than two slices is computed in slices.
enum { SLICE_NS = 500000 };

// A thread's clocks at the last sample: wall time beyond the thread's CPU time was stolen.
typedef struct BlockClock {
    TimeNs wall, cpu;
} BlockClock;

static _Thread_local BlockClock own_clock;

static TimeNs thread_time(clockid_t thread) {
    struct timespec t = {0};
    (void)clock_gettime(thread, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static TimeNs clock_begin(BlockClock *c) {
    TimeNs wall = clock_monotonic_ns();
    if (wall - c->wall < IDLE_NS) return wall;
    c->cpu = thread_time(CLOCK_THREAD_CPUTIME_ID);
    c->wall = wall;
    return wall;
}

// The system takes the core at the end of a system call, as reading the CPU time is one: the wall
// clock is read after it.
static TimeNs clock_lost(BlockClock *c) {
    TimeNs cpu = thread_time(CLOCK_THREAD_CPUTIME_ID), wall = clock_monotonic_ns();
    TimeNs lost = (wall - c->wall) - (cpu - c->cpu);
    c->wall = wall;
    c->cpu = cpu;
    return lost > 0 ? lost : 0;
}

// The interpreted tail follows the model's layers and has one version.
static uint32_t version_of(const Block *b, uint32_t layer) {
    return layer < b->model->n_layers ? b->versions[layer] : 0;
}

static double model_time(const Block *b, uint32_t layer, uint32_t cores) {
    return (double)node_time(b->model, layer, version_of(b, layer),
                             node_count_index(b->model, cores), 0);
}

static uint32_t choose_slices(const Block *b) {
    double ns = b->from < b->model->n_layers ? model_time(b, b->from, b->count) : 0;
    if (ns < 2 * SLICE_NS) return 1;
    uint32_t most = program_slices(b->program, b->from, b->version, b->count);
    return ns / SLICE_NS < most ? (uint32_t)(ns / SLICE_NS) : most;
}

// Consecutive layers with one task run on member 0 without barriers.
static void plan_leg(Block *b) {
    b->to = b->from + 1;
    b->version = version_of(b, b->from);
    b->slice = (StepSlice){0, 1};
    if (!program_is_serial(b->program, b->from)) b->slice.of = choose_slices(b);
    if (b->count == 1 || !program_is_serial(b->program, b->from)) return;
    while (b->to < b->end && program_is_serial(b->program, b->to)) b->to++;
}

static void account(Block *b, uint32_t slices) {
    uint32_t wanted = b->wanted > b->count ? b->wanted : b->count;
    double   share = (double)slices / b->slice.of;
    for (uint32_t l = b->from; l < b->to && l < b->model->n_layers; l++) {
        double t = model_time(b, l, b->count) * share;
        b->expected_ns += t;
        b->unhindered_ns += wanted == b->count ? t : model_time(b, l, wanted) * share;
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
    uint32_t offered = BLOCK_OFFERED;
    if (atomic_load_explicit(&b->offer, memory_order_relaxed) != BLOCK_OFFERED ||
        !atomic_compare_exchange_strong(&b->offer, &offered, BLOCK_TAKEN))
        return;
    TimeNs t = clock_monotonic_ns();
    *j = (Joiners){b->more, b->count};
    note_area(b, t);
    note_growth(b, t, b->more);
    b->count += cores_count(&b->more);
}

// The caller is a member, so the block cannot end meanwhile.
static void call_joiners(Block *b, const Joiners *j) {
    uint32_t index = j->index;
    for (uint32_t c = cores_next(&j->cores, 0); c < CORES_MAX; c = cores_next(&j->cores, c + 1))
        workers_post(b->workers, c, b, index++);
    atomic_store_explicit(&b->offer, BLOCK_OPEN, memory_order_release);
}

static bool close_block(Block *b) {
    (void)atomic_exchange_explicit(&b->offer, BLOCK_CLOSED, memory_order_acq_rel);
    b->ended = clock_monotonic_ns();
    note_area(b, b->ended);
    return true;
}

// Run by the last member at a barrier, while the others wait. True: the block has ended.
static bool advance(Block *b, Joiners *j) {
    uint32_t front = atomic_load_explicit(&b->front, memory_order_relaxed) & ~BLOCK_FROZEN;
    bool     within = front < b->slice.of;
    account(b, front - b->slice.at);
    b->slice.at = front;
    if (!within) {
        b->from = b->to;
        b->slice = (StepSlice){0, 1};
    }
    if (b->from == b->end) return close_block(b);
    run_memory_check_stop(b->mem);
    bool enough = b->mem->failed != ERR_OK || b->mem->complete;
    if (enough || atomic_load_explicit(&b->yield, memory_order_relaxed)) return close_block(b);
    atomic_store_explicit(&b->at, b->from, memory_order_relaxed);
    take_in(b, j);
    if (!within) plan_leg(b);
    atomic_store_explicit(&b->front, b->slice.at, memory_order_relaxed);
    return false;
}

typedef enum Meeting { MEMBER_STAYS, MEMBER_LEAVES, LAST_LEAVES } Meeting;

// The phase is twice the number of blocks that ended in this memory, plus a bit that flips at each
// barrier of the block: a member that waits sees whether its block has ended, even if later blocks
// have begun meanwhile.
static Meeting meet(Block *b, uint32_t count) {
    Joiners  joiners = {0};
    Barrier *all = &b->barrier;
    uint32_t phase = atomic_load_explicit(&all->phase, memory_order_relaxed);
    if (count > 1 &&
        atomic_fetch_add_explicit(&all->arrived, 1, memory_order_acq_rel) + 1 < count) {
        spin_wait_not(&all->phase, phase);
        uint32_t now = atomic_load_explicit(&all->phase, memory_order_acquire);
        return now / 2 == phase / 2 ? MEMBER_STAYS : MEMBER_LEAVES;
    }
    bool over = advance(b, &joiners);
    atomic_store_explicit(&all->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&all->phase, over ? (phase | 1) + 1 : phase ^ 1, memory_order_release);
    if (joiners.index != 0) call_joiners(b, &joiners);
    return over ? LAST_LEAVES : MEMBER_STAYS;
}

static bool should_meet(const Block *b, uint32_t k) {
    return (k == 1 && program_checks_inputs(b->program, b->from)) ||
           atomic_load_explicit(&b->yield, memory_order_relaxed) ||
           atomic_load_explicit(&b->offer, memory_order_relaxed) == BLOCK_OFFERED ||
           run_memory_stopped(b->mem);
}

// Whether the member computes slice k. Members do not wait for each other between slices, but all
// compute the same ones: once frozen, those that one of them has begun.
static bool begins_slice(Block *b, uint32_t k) {
    if (k >= b->slice.of) return false;
    uint32_t front = atomic_load_explicit(&b->front, memory_order_relaxed);
    if (k > b->slice.at && should_meet(b, k)) front = atomic_fetch_or(&b->front, BLOCK_FROZEN);
    while ((front & ~BLOCK_FROZEN) <= k) {
        if ((front & BLOCK_FROZEN) != 0) return false;
        if (atomic_compare_exchange_weak(&b->front, &front, k + 1)) return true;
    }
    return true;
}

static void run_leg(Block *b, uint32_t index, uint32_t count) {
    StepSlice s = b->slice;
    for (; begins_slice(b, s.at); s.at++)
        for (uint32_t l = b->from; l < b->to; l++)
            program_run_slice(b->program, b->mem, l, l == b->from ? b->version : version_of(b, l),
                              s, index, count, b->outputs);
}

// A worker that is woken may wait for its core.
static void note_start(Block *b, uint32_t index, TimeNs t) {
    TimeNs late = t - b->began, most = atomic_load_explicit(&b->start_ns, memory_order_relaxed);
    if (index >= b->began_with) return;
    while (late > most &&
           !atomic_compare_exchange_weak_explicit(&b->start_ns, &most, late, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static void show_clock(Block *b) {
    clockid_t own = 0;
    if (pthread_getcpuclockid(pthread_self(), &own) != 0) return;
    b->first_wall = own_clock.wall;
    b->first_cpu = own_clock.cpu;
    atomic_store_explicit(&b->first_clock, own, memory_order_release);
}

static bool may_end(const Block *b) {
    return b->to == b->end || atomic_load_explicit(&b->yield, memory_order_relaxed);
}

void block_run(Block *b, uint32_t index) {
    Meeting m = MEMBER_STAYS;
    note_start(b, index, clock_begin(&own_clock));
    if (index == 0) show_clock(b);
    while (m == MEMBER_STAYS) {
        uint32_t count = b->count;
        run_leg(b, index, count);
        if (may_end(b))
            atomic_fetch_add_explicit(&b->stolen_ns, clock_lost(&own_clock), memory_order_relaxed);
        m = meet(b, count);
    }
    if (m == LAST_LEAVES) b->over(b->self, b);
}

TimeNs block_held_up(const Block *b) {
    TimeNs stolen = atomic_load_explicit(&b->stolen_ns, memory_order_relaxed);
    TimeNs start = atomic_load_explicit(&b->start_ns, memory_order_relaxed),
           all = b->ended - b->began;
    if (start > WAKE_NS) stolen += start - WAKE_NS;
    return stolen < all ? stolen : all;
}

TimeNs block_held_so_far(const Block *b, TimeNs now) {
    clockid_t clock = atomic_load_explicit(&b->first_clock, memory_order_acquire);
    TimeNs    all = now - b->began - WAKE_NS;
    if (all < LONG_NS || clock == 0) return all < LONG_NS ? 0 : all;
    TimeNs cpu = thread_time(clock) - b->first_cpu;
    TimeNs lost = now - b->first_wall - cpu;
    TimeNs start = atomic_load_explicit(&b->start_ns, memory_order_relaxed);
    if (start > WAKE_NS) lost += start - WAKE_NS;
    return lost < 0 || cpu < 0 ? 0 : lost < all ? lost : all;
}

TimeNs block_held_after(const Block *b) {
    return clock_monotonic_ns() - b->ended < IDLE_NS ? 0 : clock_lost(&own_clock);
}

void block_start(Block *b, TimeNs t, const Cores *cores, Cores *asleep) {
    uint32_t index = 0;
    b->count = b->began_with = cores_count(cores);
    b->from = b->first.layer;
    b->began = b->area_from = t;
    b->area_ns = b->expected_ns = b->unhindered_ns = 0;
    b->n_growths = 0;
    atomic_store_explicit(&b->stolen_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&b->start_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&b->first_clock, 0, memory_order_relaxed);
    atomic_store_explicit(&b->at, b->from, memory_order_relaxed);
    atomic_store_explicit(&b->offer, BLOCK_OPEN, memory_order_relaxed);
    atomic_store_explicit(&b->hold, BLOCK_HOLDS, memory_order_relaxed);
    atomic_store_explicit(&b->yield, false, memory_order_relaxed);
    plan_leg(b);
    if (b->first.slice.at > 0) {
        b->slice = b->first.slice;
        b->version = b->first.version;
    }
    atomic_store_explicit(&b->front, b->slice.at, memory_order_relaxed);
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1))
        if (workers_give(b->workers, c, b, index++)) cores_add(asleep, c);
}

bool block_offer(Block *b, const Cores *more) {
    uint32_t open = BLOCK_OPEN;
    if (b->solo || atomic_load_explicit(&b->offer, memory_order_acquire) != BLOCK_OPEN)
        return false;
    b->more = *more;
    return atomic_compare_exchange_strong_explicit(&b->offer, &open, BLOCK_OFFERED,
                                                   memory_order_acq_rel, memory_order_acquire);
}

bool block_seal(Block *b, Cores *back) {
    uint32_t state = atomic_load(&b->offer);
    while (state == BLOCK_OPEN || state == BLOCK_OFFERED) {
        uint32_t was = state;
        if (!atomic_compare_exchange_strong(&b->offer, &state, BLOCK_CLOSED)) continue;
        if (was == BLOCK_OFFERED) *back = b->more;
        return true;
    }
    return state == BLOCK_CLOSED;
}

static bool settle_hold(Block *b, BlockHold to) {
    uint32_t holds = BLOCK_HOLDS;
    return atomic_compare_exchange_strong(&b->hold, &holds, to);
}

bool block_demote(Block *b) { return settle_hold(b, BLOCK_DEMOTED); }
bool block_leave(Block *b) { return settle_hold(b, BLOCK_LEFT); }

BlockPoint block_point(const Block *b) {
    bool within = b->slice.at > 0;
    return (BlockPoint){.layer = b->from,
                        .slice = within ? b->slice : (StepSlice){0},
                        .version = within ? b->version : 0};
}

double block_point_share(const BlockPoint *p) {
    return p->slice.of > 0 ? (double)p->slice.at / p->slice.of : 0;
}

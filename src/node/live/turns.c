// Turns: when demoted blocks compute.
//
// A demoted block pauses at its stop points (base/work_stop.h) except on its turn. Turns are given
// on cores that no block uses, and end when one does; demoted blocks take turns in order of their
// last one. While no core is idle, one of them at a time gets a small share of a core, so that all
// of them end at last.
//
// Code without stop points does not pause. If the threads of a block compute on after they were
// told to pause, their priority is lowered. Only then, and late: a thread of low priority may hold
// a lock of the system, and it cannot be used again.
#include "base/clock.h"
#include "node/live/live_int.h"

enum { TURN_NS = 2000000, WINDOW_NS = 20000000 };  // a turn, and the time that has one at least

// CPU time in which work that was told to pause gets to a stop point; between two looks whether.
enum { HEED_NS = 10000000, LOOK_NS = 3000000 };

enum { HEEDED_NS = 500000 };  // work that uses less CPU time in a pause has paused

typedef struct Turns {
    NodeLive *live;
    TimeNs    now, next;  // next: when to look again
    Cores     idle;       // cores without a block and without a turn
    uint32_t  n_paused, n_on_turn;
} Turns;

static uint32_t demoted_at(const NodeLive *l, uint32_t k) {
    return l->queue.running[l->queue.n_running - l->queue.n_demoted + k];
}

static void look_at(Turns *t, TimeNs at) {
    if (at < t->next) t->next = at;
}

static void tell(const LiveRequest *x, WorkState state) {
    work_stop_tell(&x->ctx->mem.stop, state);
}

// Stopped work goes on until it ends, whatever the cores do: it ends soon.
static bool is_over(const LiveRequest *x) {
    return atomic_load_explicit(&x->ctx->mem.stop, memory_order_relaxed) == WORK_STOP;
}

void turns_pause(NodeLive *l, LiveRequest *x, TimeNs now) {
    if (x->on_turn && !x->shares) l->turns_ns += now - x->turn_at;
    x->on_turn = x->shares = x->heeded = false;
    x->turn_at = now;
    x->cpu_ns = worker_list_cpu_ns(x->threads);
    x->used_ns = 0;
    x->look_at = now + LOOK_NS;
    tell(x, WORK_PAUSE);
}

// CPU time that threads used although they were told to pause adds up over short pauses, in which
// none was seen to pause.
static void count_unheeded(LiveRequest *x) {
    TimeNs used = worker_list_cpu_ns(x->threads) - x->cpu_ns;
    x->unheeded_ns = x->heeded || used < HEEDED_NS ? 0 : x->unheeded_ns + used;
}

static void resume_work(Turns *t, LiveRequest *x, uint32_t core) {
    count_unheeded(x);
    if (core != x->turn_core) workers_move(t->live->workers, x->threads, core);
    x->turn_core = core;
    x->on_turn = true;
    x->turn_at = t->now;
    t->n_on_turn++;
    t->n_paused--;
    tell(x, WORK_GO);
}

// A turn ends when a block has its core, or after its time if other demoted blocks wait for theirs.
static void end_or_keep(Turns *t, LiveRequest *x) {
    TimeNs until = x->turn_at + TURN_NS;
    bool   idle = cores_has(&t->idle, x->turn_core), over = t->now >= until;
    bool   stays = idle ? !over || t->n_paused == 0 : x->shares && !over;
    if (!stays) {
        turns_pause(t->live, x, t->now);
        t->n_paused++;
        return;
    }
    cores_remove(&t->idle, x->turn_core);
    t->n_on_turn++;
    x->shares = !idle;
    if (!idle || t->n_paused > 0) look_at(t, until);
}

// A thread that pauses uses no more CPU time.
static void check_paused(Turns *t, LiveRequest *x) {
    if (x->lowered || x->heeded) return;
    if (t->now >= x->look_at) {
        TimeNs used = worker_list_cpu_ns(x->threads) - x->cpu_ns;
        x->heeded = used == x->used_ns;
        x->lowered = x->unheeded_ns + used >= HEED_NS;
        x->used_ns = used;
        x->look_at = t->now + LOOK_NS;
        if (x->lowered) workers_lower(x->threads);
    }
    if (!x->lowered && !x->heeded) look_at(t, x->look_at);
}

static LiveRequest *longest_paused(const NodeLive *l) {
    LiveRequest *best = NULL;
    for (uint32_t k = 0; k < l->queue.n_demoted; k++) {
        LiveRequest *x = &l->beside[demoted_at(l, k)];
        if (!x->on_turn && !is_over(x) && (best == NULL || x->turn_at < best->turn_at)) best = x;
    }
    return best;
}

// At the end of a window in which demoted blocks had less than a turn.
static void share(Turns *t) {
    NodeLive *l = t->live;
    if (t->now < l->turns_from + WINDOW_NS) {
        look_at(t, l->turns_from + WINDOW_NS);
        return;
    }
    bool enough = l->turns_ns >= TURN_NS;
    l->turns_from = t->now;
    l->turns_ns = 0;
    look_at(t, t->now + (enough ? WINDOW_NS : TURN_NS));
    if (enough) return;
    LiveRequest *x = longest_paused(l);
    resume_work(t, x, x->turn_core);
    x->shares = true;
}

void turns_give(NodeLive *l) {
    Turns t = {.live = l, .now = clock_monotonic_ns(), .next = INT64_MAX, .idle = live_free(l)};
    for (uint32_t k = 0; k < l->queue.n_demoted; k++) {
        const LiveRequest *x = &l->beside[demoted_at(l, k)];
        t.n_paused += !x->on_turn && !is_over(x);
    }
    for (uint32_t k = 0; k < l->queue.n_demoted; k++) {
        LiveRequest *x = &l->beside[demoted_at(l, k)];
        if (is_over(x)) continue;
        if (x->on_turn)
            end_or_keep(&t, x);
        else
            check_paused(&t, x);
    }
    for (uint32_t c = cores_next(&t.idle, 0); t.n_paused > 0 && c < CORES_MAX;
         c = cores_next(&t.idle, c + 1))
        resume_work(&t, longest_paused(l), c);
    if (t.n_paused > 0 && t.n_on_turn == 0) share(&t);
    if (t.n_paused > 0 && t.n_on_turn > 0) look_at(&t, t.now + TURN_NS);
    if (t.next < INT64_MAX) live_wake(l, t.next);
}

#include "policy/chip/common/dispatch.h"

void task_queue_carve(TaskQueue *q, uint32_t n_slots, Carve *from) {
    *q = (TaskQueue){.heap = {.items = carve(from, HeapItem, n_slots), .capacity = n_slots}};
}

QueuedTask task_queue_pop(TaskQueue *q) {
    if (!q->built) heap_build(&q->heap);
    q->built = true;
    HeapItem x = heap_pop(&q->heap);
    return (QueuedTask){heap_double_of_key(x.key), x.id, x.order};
}

void task_queue_push(TaskQueue *q, QueuedTask x) {
    heap_push(&q->heap, heap_key_of_double(x.key), x.place, x.task);
}

uint32_t task_queue_fill(TaskQueue *q, const ChipView *v, const Feasibility *f, TaskKey *key,
                         const void *self, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    task_queue_clear(q);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            late = infeasible(f, v, t);
        if (late && f->late_action == LATE_DROP && n < max)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            task_queue_add(q, key(self, v, t, late), v->waiting[i]);
    }
    return n;
}

static UnitPick choose(const Dispatch *d, const UnitTimeline *t, const ChipTask *task) {
    if (d->choice == CHOOSE_FIRST_FREE) return unit_timeline_first_free(t, task);
    if (d->choice == CHOOSE_FASTEST) return unit_timeline_fastest(t, task);
    return unit_timeline_first_to_end(t, task, (float)d->patience);
}

uint32_t dispatch_all(const Dispatch *d, TaskQueue *q, UnitTimeline *t, ChipAction *out,
                      uint32_t max) {
    uint32_t n = 0;
    while (!task_queue_empty(q) && t->n_free > 0 && n < max) {
        uint32_t        i = task_queue_pop(q).task;
        const ChipTask *task = &t->view->tasks[i];
        UnitPick        p = choose(d, t, task);
        if (p.unit == CHIP_NONE) continue;
        if (p.wait == 0)
            out[n++] = (ChipAction){.verb = CHIP_START, .task = i, .unit = p.unit};
        else if (d->strict)
            break;
        unit_timeline_reserve(t, task, p);
    }
    return n;
}

size_t state_size(StateCarve *fn, const ChipSetup *s, const void *settings) {
    Carve c = {0};
    (void)fn(s, settings, &c);
    return c.used;
}

void *state_place(StateCarve *fn, const ChipSetup *s, const void *settings, void *memory) {
    Carve c = {.base = memory};
    // cppcheck-suppress returnDanglingLifetime ; fn returns a part of memory, not of c
    return fn(s, settings, &c);
}

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    TaskQueue      queue;
    DispatchState *state = carve(from, DispatchState, 1);
    task_queue_carve(&queue, s->n_slots, from);
    if (state != NULL) *state = (DispatchState){.settings = settings, .queue = queue};
    return state;
}

size_t dispatch_state_size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

void dispatch_state_init(void *state, const ChipSetup *setup, const void *settings,
                         const void *loaded) {
    (void)loaded;
    (void)state_place(carve_all, setup, settings, state);
}

typedef struct Keyed {
    const KeyedOrderSettings *cfg;
    KeyedOrderKey            *key;
} Keyed;

static double key_of(const void *self, const ChipView *v, const ChipTask *t, bool late) {
    const double last = 1e18;  // beyond any time: 30 years
    const Keyed *k = self;
    return k->key(k->cfg, v, t) + (late ? last : 0);
}

uint32_t keyed_order_decide(DispatchState *s, KeyedOrderKey *key, const ChipView *v,
                            ChipAction *out, uint32_t max) {
    const KeyedOrderSettings *cfg = s->settings;
    Keyed                     k = {cfg, key};
    Feasibility               f = {cfg->late_action, cfg->safety_factor};
    uint32_t                  n = task_queue_fill(&s->queue, v, &f, key_of, &k, out, max);
    if (task_queue_empty(&s->queue) || v->n_free == 0) return n;
    unit_timeline_open(&s->timeline, v);
    Dispatch d = {.choice = CHOOSE_FIRST_TO_END, .patience = cfg->patience};
    return n + dispatch_all(&d, &s->queue, &s->timeline, out + n, max - n);
}

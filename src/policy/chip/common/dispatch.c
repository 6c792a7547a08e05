#include "policy/chip/common/dispatch.h"

void task_queue_carve(TaskQueue *o, uint32_t n_slots, Carve *from) {
    o->at = carve(from, QueuedTask, n_slots);
    task_queue_clear(o);
}

static bool before(const QueuedTask *a, const QueuedTask *b) {
    return a->key != b->key ? a->key < b->key : a->place < b->place;
}

static void sink(TaskQueue *o, uint32_t i) {
    QueuedTask moved = o->at[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= o->n) break;
        if (child + 1 < o->n && before(&o->at[child + 1], &o->at[child])) child++;
        if (!before(&o->at[child], &moved)) break;
        o->at[i] = o->at[child];
        i = child;
    }
    o->at[i] = moved;
}

QueuedTask task_queue_pop(TaskQueue *o) {
    if (!o->sorted)
        for (uint32_t i = o->n / 2; i-- > 0;) sink(o, i);
    o->sorted = true;
    QueuedTask first = o->at[0];
    o->at[0] = o->at[--o->n];
    if (o->n > 0) sink(o, 0);
    return first;
}

void task_queue_push(TaskQueue *o, QueuedTask x) {
    uint32_t i = o->n++;
    for (; i > 0 && before(&x, &o->at[(i - 1) / 2]); i = (i - 1) / 2) o->at[i] = o->at[(i - 1) / 2];
    o->at[i] = x;
}

static UnitPick pick(const Dispatch *s, const UnitTimeline *f, const ChipTask *t) {
    if (s->rule == CHOOSE_FIRST_FREE) return unit_timeline_first_free(f, t);
    if (s->rule == CHOOSE_FASTEST) return unit_timeline_fastest(f, t);
    return unit_timeline_first_to_end(f, t, (float)s->patience);
}

uint32_t dispatch_all(const Dispatch *s, TaskQueue *o, UnitTimeline *f, ChipAction *out,
                      uint32_t max) {
    uint32_t n = 0;
    while (o->n > 0 && f->n_free > 0 && n < max) {
        uint32_t        task = task_queue_pop(o).task;
        const ChipTask *t = &f->view->tasks[task];
        UnitPick        p = pick(s, f, t);
        if (p.unit == CHIP_NONE) continue;
        if (p.wait == 0)
            out[n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = p.unit};
        else if (s->strict)
            break;
        unit_timeline_reserve(f, t, p);
    }
    return n;
}

// TaskQueue: tasks that wait, the least key first; equal ones in the order in which they were
// added.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/carve.h"
#include "policy/chip/common/unit_timeline.h"

typedef struct QueuedTask {
    double   key;
    uint32_t task;   // index into the view's tasks
    uint32_t place;  // among those added
} QueuedTask;

typedef struct TaskQueue {
    QueuedTask *at;
    uint32_t    n;
    bool        sorted;  // as a heap
} TaskQueue;

void task_queue_carve(TaskQueue *o, uint32_t n_slots, Carve *from);

static inline void task_queue_clear(TaskQueue *o) {
    o->n = 0;
    o->sorted = false;
}

// All are added before the first is popped; later ones are pushed.
static inline void task_queue_add(TaskQueue *o, double key, uint32_t task) {
    o->at[o->n] = (QueuedTask){key, task, o->n};
    o->n++;
}

QueuedTask task_queue_pop(TaskQueue *o);                 // n > 0
void       task_queue_push(TaskQueue *o, QueuedTask x);  // one that was popped, with another key

// Dispatch: tasks in a policy's order, each to the unit that a rule picks for it.

typedef enum UnitChoice {
    CHOOSE_FIRST_FREE,  // see unit_timeline_first_free, unit_timeline_fastest,
                        // unit_timeline_first_to_end
    CHOOSE_FASTEST,
    CHOOSE_FIRST_TO_END,
} UnitChoice;

typedef struct Dispatch {
    UnitChoice rule;
    double     patience;  // see unit_timeline_first_to_end
    bool       strict;    // once somebody has to wait, all after it do
} Dispatch;

// Empties the order as far as there are free units, and returns how many actions it wrote.
uint32_t dispatch_all(const Dispatch *s, TaskQueue *o, UnitTimeline *f, ChipAction *out,
                      uint32_t max);

// TaskQueue: waiting tasks by ascending key, equal keys in the order in which they were added.
// Dispatch: starts the tasks of a queue, each on the unit that a rule chooses.
// KeyedOrder: a whole policy of these, given the key.
#pragma once

#include "base/carve.h"
#include "base/heap.h"
#include "policy/chip/common/feasibility.h"
#include "policy/chip/common/unit_timeline.h"

typedef struct QueuedTask {
    double   key;
    uint32_t task;   // index into the view's tasks
    uint32_t place;  // among those added
} QueuedTask;

typedef struct TaskQueue {
    Heap heap;
    bool built;  // heap order holds
} TaskQueue;

void task_queue_carve(TaskQueue *q, uint32_t n_slots, Carve *from);

static inline void task_queue_clear(TaskQueue *q) {
    q->heap.n = 0;
    q->built = false;
}

static inline bool task_queue_empty(const TaskQueue *q) { return heap_empty(&q->heap); }

// All tasks are added before the first pop.
static inline void task_queue_add(TaskQueue *q, double key, uint32_t task) {
    q->heap.items[q->heap.n] = (HeapItem){heap_key_of_double(key), q->heap.n, task};
    q->heap.n++;
}

QueuedTask task_queue_pop(TaskQueue *q);                 // not empty
void       task_queue_push(TaskQueue *q, QueuedTask x);  // a popped task, with another key

static inline double task_queue_first_key(const TaskQueue *q) {  // not empty, after a pop
    return heap_double_of_key(q->heap.items[0].key);
}

// Key of a task; late: it is infeasible.
typedef double TaskKey(const void *self, const ChipView *v, const ChipTask *t, bool late);

// Fills the queue with the waiting tasks. Infeasible ones are dropped instead if the late action
// says so and the actions do not exceed max. Returns the number of actions written.
uint32_t task_queue_fill(TaskQueue *q, const ChipView *v, const Feasibility *f, TaskKey *key,
                         const void *self, ChipAction *out, uint32_t max);

typedef enum UnitChoice {  // see unit_timeline_first_free, _fastest and _first_to_end
    CHOOSE_FIRST_FREE,
    CHOOSE_FASTEST,
    CHOOSE_FIRST_TO_END,
} UnitChoice;

typedef struct Dispatch {
    UnitChoice choice;
    double     patience;  // of CHOOSE_FIRST_TO_END
    bool       strict;    // no task starts after one that has to wait
} Dispatch;

// Pops tasks while there are free units. Returns the number of actions written.
uint32_t dispatch_all(const Dispatch *d, TaskQueue *q, UnitTimeline *t, ChipAction *out,
                      uint32_t max);

// Carves a policy's state from `from`; returns NULL if that only measures.
typedef void *StateCarve(const ChipSetup *s, const void *settings, Carve *from);

// Bytes of a state; the state, placed in memory of that size.
size_t state_size(StateCarve *fn, const ChipSetup *s, const void *settings);
void  *state_place(StateCarve *fn, const ChipSetup *s, const void *settings, void *memory);

// DispatchState: the state of a policy that needs no more than a queue and a timeline.
typedef struct DispatchState {
    const void  *settings;  // of the policy, borrowed
    TaskQueue    queue;
    UnitTimeline timeline;
} DispatchState;

size_t dispatch_state_size(const ChipSetup *setup, const void *settings);
void   dispatch_state_init(void *state, const ChipSetup *setup, const void *settings,
                           const void *loaded);

// KeyedOrder: a policy that orders tasks by a key and starts each on the unit where its layer ends
// first. Infeasible tasks come last or are dropped.
#define KEYED_ORDER_SETTINGS(X, action, factor, waits)                                             \
    FEASIBILITY_SETTINGS(X, action, factor) PATIENCE_SETTING(X, waits)

typedef struct KeyedOrderSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_LAST, 1.0, 1.0)
#undef X
} KeyedOrderSettings;

// Nanoseconds; the least first.
typedef double KeyedOrderKey(const KeyedOrderSettings *cfg, const ChipView *v, const ChipTask *t);

// The fields of a policy's table; the file has `rows` of KeyedOrderSettings and `decide`.
#define KEYED_ORDER_POLICY(id, text)                                                               \
    .name = id, .about = text, .rows = rows, .n_rows = sizeof rows / sizeof *rows,                 \
    .settings_size = sizeof(KeyedOrderSettings), .state_size = dispatch_state_size,                \
    .init = dispatch_state_init, .decide = decide

uint32_t keyed_order_decide(DispatchState *s, KeyedOrderKey *key, const ChipView *v,
                            ChipAction *out, uint32_t max);

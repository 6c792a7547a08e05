// Requests that are alive: a dense array of tasks, and who waits, by arrival.
#include <string.h>

#include "base/err.h"
#include "chip/sim/chip_sim_int.h"

// Where a request stands among those that wait; or where it would.
static uint32_t waiting_at(const ChipSim *e, uint64_t id) {
    uint32_t lo = 0, hi = e->n_waiting;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (e->tasks[e->waiting[mid]].request.id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void to_the_middle(ChipSim *e) {
    uint32_t *to = e->line + (e->room - e->n_waiting) / 2;
    memmove(to, e->waiting, e->n_waiting * sizeof *to);
    e->waiting = to;
}

// The shorter side makes way, so that both ends of a long line are quick.
static void wait_in_line(ChipSim *e, uint32_t task) {
    uint32_t i = waiting_at(e, e->tasks[task].request.id);
    bool     first_half = i < e->n_waiting / 2;
    if (first_half ? e->waiting == e->line : e->waiting + e->n_waiting == e->line + e->room)
        to_the_middle(e);
    uint32_t *w = e->waiting;
    if (first_half) {
        memmove(w - 1, w, i * sizeof *w);
        e->waiting = --w;
    } else {
        memmove(w + i + 1, w + i, (e->n_waiting - i) * sizeof *w);
    }
    w[i] = task;
    e->n_waiting++;
}

static void stop_waiting(ChipSim *e, uint32_t task) {
    uint32_t  i = waiting_at(e, e->tasks[task].request.id);
    uint32_t *w = e->waiting;
    CHECK(i < e->n_waiting && w[i] == task);
    if (i < e->n_waiting / 2) {
        memmove(w + 1, w, i * sizeof *w);
        e->waiting = w + 1;
    } else {
        memmove(w + i, w + i + 1, (e->n_waiting - 1 - i) * sizeof *w);
    }
    e->n_waiting--;
}

void chip_sim_task_to_unit(ChipSim *e, uint32_t task, uint32_t unit) {
    stop_waiting(e, task);
    e->tasks[task].unit = unit;
    e->tasks[task].since = e->now;
}

void chip_sim_task_to_waiting(ChipSim *e, uint32_t task) {
    e->tasks[task].unit = CHIP_NONE;
    e->tasks[task].since = e->now;
    wait_in_line(e, task);
}

void chip_sim_arrive(ChipSim *e) {
    uint32_t           i = e->next_arrival++, x = e->n_tasks++;
    const ChipRequest *r = &e->run->trace.at[i];
    e->tasks[x] = (ChipTask){
        .request = *r, .slot = e->slots[--e->n_slots_left], .unit = CHIP_NONE, .since = r->arrival};
    e->tasks[x].request.id = i;
    e->place[i] = x;
    wait_in_line(e, x);
    if (e->setup.firm) heap_push(&e->deadlines, r->deadline, 0, i);
    if (e->run->records.put == NULL) return;
    record_put(e->run->records, &(Record){.at = r->arrival,
                                          .kind = RECORD_ARRIVE,
                                          .request = i,
                                          .tenant = r->tenant,
                                          .deadline = r->deadline});
}

static void count(ChipTenantStats *t, bool hit) {
    const float keeps = 0.98F;  // of its weight, whenever another one ends
    float       n = t->n * keeps + 1;
    t->hit_rate += ((hit ? 1.0F : 0.0F) - t->hit_rate) / n;
    t->n = n;
}

void chip_sim_answer(ChipSim *e, uint32_t task, Outcome o) {
    const ChipRequest *r = &e->tasks[task].request;
    ChipAnswer        *x = &e->result->answers[r->id];
    bool               answered_once = x->outcome == OUTCOMES;
    CHECK(answered_once);
    *x = (ChipAnswer){.finish = e->now, .outcome = o, .tenant = r->tenant};
    e->answered++;
    e->result->span = e->now - e->run->trace.at[0].arrival;
    count(&e->tenant_stats[r->tenant], o == OUTCOME_MET);
    if (e->run->records.put == NULL) return;
    record_put(e->run->records,
               &(Record){.at = e->now,
                         .kind = o == OUTCOME_REJECTED ? RECORD_REJECT : RECORD_FINISH,
                         .request = r->id,
                         .tenant = r->tenant,
                         .outcome = o,
                         .why = o == OUTCOME_REJECTED ? "dropped" : NULL});
}

// The last task takes the place of one that is gone.
void chip_sim_remove_task(ChipSim *e, uint32_t task) {
    const ChipTask *gone = &e->tasks[task];
    uint32_t        last = --e->n_tasks;
    if (gone->unit == CHIP_NONE) stop_waiting(e, task);
    e->slots[e->n_slots_left++] = gone->slot;
    if (last == task) return;
    const ChipTask *moves = &e->tasks[last];
    if (moves->unit == CHIP_NONE)
        e->waiting[waiting_at(e, moves->request.id)] = task;
    else
        e->units[moves->unit].task = task;
    e->place[moves->request.id] = task;
    e->tasks[task] = *moves;
}

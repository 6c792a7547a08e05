// Tasks: a dense array of the requests in progress, and the waiting ones by arrival.
#include <string.h>

#include "base/err.h"
#include "chip/sim/chip_sim_int.h"

// Index of a request in `waiting`, or where it would be inserted.
static uint32_t waiting_at(const ChipSim *sim, uint64_t id) {
    uint32_t lo = 0, hi = sim->n_waiting;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (sim->tasks[sim->waiting[mid]].request.id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void recentre(ChipSim *sim) {
    uint32_t *to = sim->buffer + (sim->room - sim->n_waiting) / 2;
    memmove(to, sim->waiting, sim->n_waiting * sizeof *to);
    sim->waiting = to;
}

// Moves the shorter side, so that both ends of a long queue are fast.
static void enqueue(ChipSim *sim, uint32_t task) {
    uint32_t i = waiting_at(sim, sim->tasks[task].request.id);
    bool     first_half = i < sim->n_waiting / 2;
    if (first_half ? sim->waiting == sim->buffer
                   : sim->waiting + sim->n_waiting == sim->buffer + sim->room)
        recentre(sim);
    uint32_t *w = sim->waiting;
    if (first_half) {
        memmove(w - 1, w, i * sizeof *w);
        sim->waiting = --w;
    } else {
        memmove(w + i + 1, w + i, (sim->n_waiting - i) * sizeof *w);
    }
    w[i] = task;
    sim->n_waiting++;
}

static void dequeue(ChipSim *sim, uint32_t task) {
    uint32_t  i = waiting_at(sim, sim->tasks[task].request.id);
    uint32_t *w = sim->waiting;
    CHECK(i < sim->n_waiting && w[i] == task);
    if (i < sim->n_waiting / 2) {
        memmove(w + 1, w, i * sizeof *w);
        sim->waiting = w + 1;
    } else {
        memmove(w + i, w + i + 1, (sim->n_waiting - 1 - i) * sizeof *w);
    }
    sim->n_waiting--;
}

void chip_sim_task_to_unit(ChipSim *sim, uint32_t task, uint32_t unit) {
    dequeue(sim, task);
    sim->tasks[task].unit = unit;
    sim->tasks[task].since = sim->now;
}

void chip_sim_task_to_waiting(ChipSim *sim, uint32_t task) {
    sim->tasks[task].unit = CHIP_NONE;
    sim->tasks[task].since = sim->now;
    enqueue(sim, task);
}

void chip_sim_arrive(ChipSim *sim) {
    uint32_t           i = sim->next_arrival++, x = sim->n_tasks++;
    const ChipRequest *r = &sim->run->trace.at[i];
    sim->tasks[x] = (ChipTask){.request = *r,
                               .slot = sim->slots[--sim->n_slots_left],
                               .unit = CHIP_NONE,
                               .since = r->arrival};
    sim->tasks[x].request.id = i;
    sim->index[i] = x;
    enqueue(sim, x);
    if (sim->setup.firm) heap_push(&sim->deadlines, r->deadline, 0, i);
    if (sim->run->records.put == NULL) return;
    record_put(sim->run->records, &(Record){.at = r->arrival,
                                            .kind = RECORD_ARRIVE,
                                            .request = i,
                                            .tenant = r->tenant,
                                            .deadline = r->deadline});
}

static void update_stats(ChipTenantStats *t, bool hit) {
    const float keep = 0.98F;  // factor on the weight of earlier requests
    float       n = t->n * keep + 1;
    t->hit_rate += ((hit ? 1.0F : 0.0F) - t->hit_rate) / n;
    t->n = n;
}

void chip_sim_answer(ChipSim *sim, uint32_t task, Outcome o) {
    const ChipRequest *r = &sim->tasks[task].request;
    ChipAnswer        *x = &sim->result->answers[r->id];
    bool               answered_once = x->outcome == OUTCOMES;
    CHECK(answered_once);
    *x = (ChipAnswer){.finish = sim->now, .outcome = o, .tenant = r->tenant};
    sim->answered++;
    sim->result->span = sim->now - sim->run->trace.at[0].arrival;
    update_stats(&sim->tenant_stats[r->tenant], o == OUTCOME_MET);
    if (sim->run->records.put == NULL) return;
    record_put(sim->run->records,
               &(Record){.at = sim->now,
                         .kind = o == OUTCOME_REJECTED ? RECORD_REJECT : RECORD_FINISH,
                         .request = r->id,
                         .tenant = r->tenant,
                         .outcome = o,
                         .why = o == OUTCOME_REJECTED ? "dropped" : NULL});
}

// The last task takes the index of the removed one.
void chip_sim_remove_task(ChipSim *sim, uint32_t task) {
    const ChipTask *gone = &sim->tasks[task];
    uint32_t        last = --sim->n_tasks;
    if (gone->unit == CHIP_NONE) dequeue(sim, task);
    sim->slots[sim->n_slots_left++] = gone->slot;
    if (last == task) return;
    const ChipTask *moves = &sim->tasks[last];
    if (moves->unit == CHIP_NONE)
        sim->waiting[waiting_at(sim, moves->request.id)] = task;
    else
        sim->units[moves->unit].task = task;
    sim->index[moves->request.id] = task;
    sim->tasks[task] = *moves;
}

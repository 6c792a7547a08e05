#include "policy/node/common/list_schedule.h"

static const uint8_t *versions_for(const ListSchedule *list, const NodeModel *m, uint32_t cores) {
    if (list->versions != NULL) return list->versions;
    return node_best_versions(m, node_count_index(m, cores), list->level);
}

static const NodeModel *model_of(const NodeView *v, const NodeRequest *r) {
    return v->setup->tenants[r->tenant].model;
}

uint32_t list_schedule_grow(const NodeView *v, const CorePlacement *placement, Cores *free,
                            uint32_t n_free, NodeAction *out, uint32_t max) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_running && n < max && n_free > 0; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        uint32_t           has = cores_count(&r->cores);
        bool               last = r->layer + 1 >= r->next;  // no layer boundary is left
        if (has >= r->wanted || last) continue;
        uint32_t more = r->wanted - has < n_free ? r->wanted - has : n_free;
        Cores    added = placement == NULL ? core_placement_first(free, more)
                                           : core_placement_slices(placement, free, more, &r->cores);
        *free = cores_difference(*free, &added);
        n_free -= more;
        out[n++] = (NodeAction){.verb = NODE_GROW, .request = v->running[i], .cores = added};
    }
    return n;
}

typedef struct Dispatch {
    Cores    free;
    uint32_t n_free, n;
    bool     blocked;  // the first request in order waits for cores
} Dispatch;

static void start(const ListSchedule *list, uint32_t request, Dispatch *d, NodeAction *out) {
    const NodeView    *v = list->view;
    const NodeRequest *r = &v->requests[request];
    BlockRequest       block = list->ask(list->policy, v, r);
    uint32_t           given = block.cores < d->n_free ? block.cores : d->n_free;
    if ((double)given < list->min_start * (double)block.cores) {
        d->blocked = !list->backfill;
        return;
    }
    Cores cores = core_placement_first(&d->free, given);
    d->free = cores_difference(d->free, &cores);
    d->n_free -= given;
    out[d->n++] = (NodeAction){.verb = NODE_START,
                               .request = request,
                               .n_layers = block.n_layers,
                               .wanted = block.cores,
                               .cores = cores,
                               .versions = versions_for(list, model_of(v, r), given)};
}

static bool is_late(const ListSchedule *list, const NodeRequest *r) {
    return list->late_last && r->deadline < list->view->now;
}

// Late requests sort behind all others.
static TimeNs deadline_key(const void *of, const NodeRequest *r) {
    const ListSchedule *list = of;
    return is_late(list, r) ? r->deadline + INT64_MAX / 2 : r->deadline;
}

static void start_by_deadline(const ListSchedule *list, Dispatch *d, NodeAction *out,
                              uint32_t max) {
    request_queue_fill(list->queue, list->view, deadline_key, list);
    while (!heap_empty(&list->queue->heap) && !d->blocked && d->n < max && d->n_free > 0)
        start(list, heap_pop(&list->queue->heap).id, d, out);
}

static void start_by_arrival(const ListSchedule *list, bool late, Dispatch *d, NodeAction *out,
                             uint32_t max) {
    const NodeView *v = list->view;
    for (uint32_t i = 0; i < v->n_waiting && !d->blocked && d->n < max && d->n_free > 0; i++)
        if (is_late(list, &v->requests[v->waiting[i]]) == late) start(list, v->waiting[i], d, out);
}

uint32_t list_schedule_run(const ListSchedule *list, NodeAction *out, uint32_t max) {
    Dispatch d = {.free = list->view->free, .n_free = list->view->n_free};
    if (list->queue != NULL) {
        start_by_deadline(list, &d, out, max);
    } else {
        start_by_arrival(list, false, &d, out, max);
        if (list->late_last) start_by_arrival(list, true, &d, out, max);
    }
    if (list->grow && !d.blocked)
        d.n += list_schedule_grow(list->view, NULL, &d.free, d.n_free, out + d.n, max - d.n);
    return d.n;
}

double list_schedule_load(const NodeView *v, const uint16_t *waiting) {
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < v->n_running; i++) wanted += v->requests[v->running[i]].wanted;
    for (uint32_t i = 0; i < v->n_waiting; i++)
        wanted += waiting[v->requests[v->waiting[i]].tenant];
    return (double)wanted / (double)v->setup->machine->n_cores;
}

#include "policy/node/common/list_schedule.h"

#include "policy/node/common/core_placement.h"

static const uint8_t *versions_for(const ListSchedule *list, const NodeModel *m, uint32_t cores) {
    if (list->versions != NULL) return list->versions;
    return node_best_versions(m, node_count_index(m, cores), list->level);
}

static const NodeModel *model_of(const NodeView *v, const NodeRequest *r) {
    return v->setup->tenants[r->tenant].model;
}

// What was started with less than it wanted, oldest first.
static uint32_t grow(const ListSchedule *list, Cores *free, uint32_t n_free, NodeAction *out,
                     uint32_t max) {
    const NodeView *v = list->view;
    uint32_t        n = 0;
    for (uint32_t i = 0; i < v->n_running && n < max && n_free > 0; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        uint32_t           has = cores_count(&r->cores);
        bool               last = r->layer + 1 >= r->next;  // growth would come too late
        if (has >= r->wanted || last) continue;
        uint32_t more = r->wanted - has < n_free ? r->wanted - has : n_free;
        Cores    added = core_placement_first(free, more);
        *free = cores_difference(*free, &added);
        n_free -= more;
        out[n++] = (NodeAction){.verb = NODE_GROW, .request = v->running[i], .cores = added};
    }
    return n;
}

typedef struct Serving {
    Cores    free;
    uint32_t n_free, n;
    bool     held;  // somebody in front waits for cores
} Serving;

static void serve(const ListSchedule *list, uint32_t request, Serving *s, NodeAction *out) {
    const NodeView    *v = list->view;
    const NodeRequest *r = &v->requests[request];
    BlockRequest       ask = list->ask(list->policy, v, r);
    uint32_t           given = ask.cores < s->n_free ? ask.cores : s->n_free;
    if ((double)given < list->start * (double)ask.cores) {
        s->held = !list->overtake;
        return;
    }
    Cores cores = core_placement_first(&s->free, given);
    s->free = cores_difference(s->free, &cores);
    s->n_free -= given;
    out[s->n++] = (NodeAction){.verb = NODE_START,
                               .request = request,
                               .n_layers = ask.n_layers,
                               .wanted = ask.cores,
                               .cores = cores,
                               .versions = versions_for(list, model_of(v, r), given)};
}

static bool is_late(const ListSchedule *list, const NodeRequest *r) {
    return list->yield && r->deadline < list->view->now;
}

// Who is late goes behind all others.
static TimeNs urgency(const void *of, const NodeRequest *r) {
    const ListSchedule *list = of;
    return is_late(list, r) ? r->deadline + INT64_MAX / 2 : r->deadline;
}

static void serve_urgent(const ListSchedule *list, Serving *s, NodeAction *out, uint32_t max) {
    request_queue_fill(list->queue, list->view, urgency, list);
    while (!heap_empty(&list->queue->heap) && !s->held && s->n < max && s->n_free > 0)
        serve(list, heap_pop(&list->queue->heap).id, s, out);
}

static void serve_first(const ListSchedule *list, bool late, Serving *s, NodeAction *out,
                        uint32_t max) {
    const NodeView *v = list->view;
    for (uint32_t i = 0; i < v->n_waiting && !s->held && s->n < max && s->n_free > 0; i++)
        if (is_late(list, &v->requests[v->waiting[i]]) == late) serve(list, v->waiting[i], s, out);
}

uint32_t list_schedule_run(const ListSchedule *list, NodeAction *out, uint32_t max) {
    Serving s = {.free = list->view->free, .n_free = list->view->n_free};
    if (list->queue != NULL) {
        serve_urgent(list, &s, out, max);
    } else {
        serve_first(list, false, &s, out, max);
        if (list->yield) serve_first(list, true, &s, out, max);
    }
    if (list->grow && !s.held) s.n += grow(list, &s.free, s.n_free, out + s.n, max - s.n);
    return s.n;
}

double list_schedule_load(const NodeView *v, const uint16_t *waiting) {
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < v->n_running; i++) wanted += v->requests[v->running[i]].wanted;
    for (uint32_t i = 0; i < v->n_waiting; i++)
        wanted += waiting[v->requests[v->waiting[i]].tenant];
    return (double)wanted / (double)v->setup->machine->n_cores;
}

#include "policy/node/line.h"

#include "policy/node/place.h"

static const uint8_t *versions_for(const Line *line, const NodeModel *m, uint32_t cores) {
    if (line->versions != NULL) return line->versions;
    return node_pick(m, node_count(m, cores), line->level);
}

static const NodeModel *model_of(const NodeView *v, const NodeRequest *r) {
    return v->setup->tenants[r->tenant].model;
}

// What was started with less than it wanted, oldest first.
static uint32_t grow(const Line *line, Cores *free, uint32_t n_free, NodeAction *out,
                     uint32_t max) {
    const NodeView *v = line->view;
    uint32_t        n = 0;
    for (uint32_t i = 0; i < v->n_running && n < max && n_free > 0; i++) {
        const NodeRequest *r = &v->requests[v->running[i]];
        uint32_t           has = cores_count(&r->cores);
        bool               last = r->layer + 1 >= r->next;  // growth would come too late
        if (has >= r->wanted || last) continue;
        uint32_t more = r->wanted - has < n_free ? r->wanted - has : n_free;
        Cores    added = place_first(free, more);
        *free = cores_without(*free, &added);
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

static void serve(const Line *line, uint32_t request, Serving *s, NodeAction *out) {
    const NodeView    *v = line->view;
    const NodeRequest *r = &v->requests[request];
    LineAsk            ask = line->ask(line->policy, v, r);
    uint32_t           given = ask.cores < s->n_free ? ask.cores : s->n_free;
    if ((double)given < line->start * (double)ask.cores) {
        s->held = !line->overtake;
        return;
    }
    Cores cores = place_first(&s->free, given);
    s->free = cores_without(s->free, &cores);
    s->n_free -= given;
    out[s->n++] = (NodeAction){.verb = NODE_START,
                               .request = request,
                               .n_layers = ask.n_layers,
                               .wanted = ask.cores,
                               .cores = cores,
                               .versions = versions_for(line, model_of(v, r), given)};
}

static bool is_late(const Line *line, const NodeRequest *r) {
    return line->yield && r->deadline < line->view->now;
}

// Who is late goes behind all others.
static TimeNs urgency(const void *of, const NodeRequest *r) {
    const Line *line = of;
    return is_late(line, r) ? r->deadline + INT64_MAX / 2 : r->deadline;
}

static void serve_urgent(const Line *line, Serving *s, NodeAction *out, uint32_t max) {
    queue_fill(line->queue, line->view, urgency, line);
    while (line->queue->n > 0 && !s->held && s->n < max && s->n_free > 0)
        serve(line, queue_pop(line->queue).request, s, out);
}

static void serve_first(const Line *line, bool late, Serving *s, NodeAction *out, uint32_t max) {
    const NodeView *v = line->view;
    for (uint32_t i = 0; i < v->n_waiting && !s->held && s->n < max && s->n_free > 0; i++)
        if (is_late(line, &v->requests[v->waiting[i]]) == late) serve(line, v->waiting[i], s, out);
}

uint32_t line_serve(const Line *line, NodeAction *out, uint32_t max) {
    Serving s = {.free = line->view->free, .n_free = line->view->n_free};
    if (line->queue != NULL) {
        serve_urgent(line, &s, out, max);
    } else {
        serve_first(line, false, &s, out, max);
        if (line->yield) serve_first(line, true, &s, out, max);
    }
    if (line->grow && !s.held) s.n += grow(line, &s.free, s.n_free, out + s.n, max - s.n);
    return s.n;
}

double line_load(const NodeView *v, const uint16_t *waiting) {
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < v->n_running; i++) wanted += v->requests[v->running[i]].wanted;
    for (uint32_t i = 0; i < v->n_waiting; i++)
        wanted += waiting[v->requests[v->waiting[i]].tenant];
    return (double)wanted / (double)v->setup->machine->n_cores;
}

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

static TimeNs deadline(const void *policy, const NodeRequest *r) {
    (void)policy;
    return r->deadline;
}

// The next in line; UINT32_MAX when all had their turn.
static uint32_t next_in_line(const Line *line, uint32_t turn) {
    if (line->queue != NULL)
        return line->queue->n > 0 ? queue_pop(line->queue).request : UINT32_MAX;
    return turn < line->view->n_waiting ? line->view->waiting[turn] : UINT32_MAX;
}

uint32_t line_serve(const Line *line, NodeAction *out, uint32_t max) {
    const NodeView *v = line->view;
    Serving         s = {.free = v->free, .n_free = v->n_free};
    const uint32_t  rounds = line->yield ? 2 : 1;
    for (uint32_t late = 0; late < rounds; late++) {
        if (line->queue != NULL) queue_fill(line->queue, v, deadline, NULL);
        for (uint32_t i = 0; !s.held && s.n < max && s.n_free > 0; i++) {
            uint32_t request = next_in_line(line, i);
            if (request == UINT32_MAX) break;
            bool is_late = v->requests[request].deadline < v->now;
            if (!line->yield || is_late == (late > 0)) serve(line, request, &s, out);
        }
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

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

uint32_t line_serve(const Line *line, NodeAction *out, uint32_t max) {
    const NodeView *v = line->view;
    Cores           free = v->free;
    uint32_t        n_free = v->n_free, n = 0, i = 0;
    for (; i < v->n_waiting && n < max && n_free > 0; i++) {
        const NodeRequest *r = &v->requests[v->waiting[i]];
        LineAsk            ask = line->ask(line->policy, v, r);
        uint32_t           given = ask.cores < n_free ? ask.cores : n_free;
        if ((double)given < line->start * (double)ask.cores) break;  // it keeps its place in front
        Cores cores = place_first(&free, given);
        free = cores_without(free, &cores);
        n_free -= given;
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[i],
                                .n_layers = ask.n_layers,
                                .wanted = ask.cores,
                                .cores = cores,
                                .versions = versions_for(line, model_of(v, r), given)};
    }
    if (line->grow && i == v->n_waiting) n += grow(line, &free, n_free, out + n, max - n);
    return n;
}

double line_load(const NodeView *v, const uint16_t *waiting) {
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < v->n_running; i++) wanted += v->requests[v->running[i]].wanted;
    for (uint32_t i = 0; i < v->n_waiting; i++)
        wanted += waiting[v->requests[v->waiting[i]].tenant];
    return (double)wanted / (double)v->setup->machine->n_cores;
}

// Validates and applies a policy's plan. An illegal plan is a bug in the policy
// and aborts the run.
#include <stdio.h>

#include "base/err.h"
#include "base/hash.h"
#include "node/sim/node_sim_int.h"

static void must(const NodeSim *s, bool ok, const char *what) {
    char text[256];
    if (ok) return;
    (void)snprintf(text, sizeof text, "policy %s: %s", s->run->policy->name, what);
    check_fail(text, __FILE__, __LINE__);
}

static const NodeModel *model_of(const NodeSim *s, const NodeRequest *r) {
    return s->run->setup.tenants[r->tenant].model;
}

static void check_start(const NodeSim *s, const NodeRequest *r, const NodeAction *x) {
    const NodeModel *m = model_of(s, r);
    must(s, r->state == NODE_WAITING, "starts a request that is running");
    must(s, x->n_layers > 0, "starts a block without layers");
    must(s, x->n_layers <= m->n_layers - r->next, "starts more layers than are left");
    must(s, cores_count(&x->cores) > 0, "starts a block without cores");
    must(s, cores_is_subset(&x->cores, &s->free), "starts a block on cores that are not free");
    must(s, x->versions != NULL, "starts a block without versions");
    for (uint32_t l = r->next; l < r->next + x->n_layers; l++)
        must(s, x->versions[l] < m->layers[l].n_versions,
             "names a version that the layer does not have");
}

static void check_grow(const NodeSim *s, const NodeRequest *r, const NodeAction *x) {
    must(s, r->state == NODE_RUNNING, "grows a request that is not running");
    must(s, cores_count(&x->cores) > 0, "grows a block by no cores");
    must(s, cores_is_subset(&x->cores, &s->free), "grows a block by cores that are not free");
}

static void start(NodeSim *s, NodeRequest *r, const NodeAction *x) {
    uint32_t got = cores_count(&x->cores);
    check_start(s, r, x);
    record_put(s->run->records,
               &(Record){.at = s->now,
                         .kind = RECORD_START,
                         .request = r->id,
                         .tenant = r->tenant,
                         .first = r->next,
                         .n_layers = x->n_layers,
                         .wanted = x->wanted,
                         .cores = x->cores,
                         .level = s->level,
                         .versions = hash_fnv(HASH_FNV_START, x->versions + r->next, x->n_layers)});
    s->extras[x->request].waited += s->now - r->since;
    s->result->blocks++;
    if (x->wanted > got) {
        s->result->conflicts++;
        r->conflicts++;
    }
    sim_start(s, x->request, x);
    r->first = r->layer = r->next;
    r->next += x->n_layers;
    r->wanted = x->wanted;
    r->versions = x->versions;
    r->cores = x->cores;
    r->since = s->now;
}

static void grow(NodeSim *s, NodeRequest *r, const NodeAction *x) {
    check_grow(s, r, x);
    const SimBlock *b = &s->blocks[s->extras[x->request].block];
    record_put(s->run->records, &(Record){.at = s->now,
                                          .kind = RECORD_GROW,
                                          .request = r->id,
                                          .tenant = r->tenant,
                                          .first = b->starting ? b->layer : b->layer + 1,
                                          .n_layers = b->end - b->layer,
                                          .cores = x->cores});
    s->result->grown++;
    sim_grow(s, x->request, x);
    r->cores = cores_union(r->cores, &x->cores);
}

static void carry_out(NodeSim *s, const NodeAction *x) {
    must(s, x->verb < NODE_VERBS, "unknown verb");
    if (x->verb == NODE_WAKE) {
        must(s, x->at > s->now, "wake-up in the past");
        if (x->at < s->wake) s->wake = x->at;
        return;
    }
    must(s, x->request < s->n_requests, "unknown request");
    must(s, s->named[x->request] != s->result->decisions, "names a request twice");
    s->named[x->request] = s->result->decisions;
    NodeRequest *r = &s->requests[x->request];
    if (x->verb == NODE_START) start(s, r, x);
    if (x->verb == NODE_GROW) grow(s, r, x);
    if (x->verb != NODE_REJECT) return;
    must(s, r->state == NODE_WAITING, "rejects a request that is running");
    must(s, x->reason < NODE_REASONS, "unknown reject reason");
}

static NodeAction *last_refusal(NodeAction *x, uint32_t n) {
    NodeAction *last = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (x[i].verb == NODE_REJECT && (last == NULL || x[i].request > last->request))
            last = &x[i];
    return last;
}

// Rejections are applied last, from the end, so that indices stay valid.
static void refuse(NodeSim *s, NodeAction *x, uint32_t n) {
    static const char *const reasons[NODE_REASONS] = {
#define X(id, name) [NODE_##id] = name,
#include "contract/node_reason.def"
#undef X
    };
    for (NodeAction *last; (last = last_refusal(x, n)) != NULL; last->verb = NODE_VERBS)
        sim_answer(s, last->request, OUTCOME_REJECTED, reasons[last->reason]);
}

static NodeView view_of(const NodeSim *s) {
    return (NodeView){.now = s->now,
                      .setup = &s->run->setup,
                      .requests = s->requests,
                      .waiting = s->waiting,
                      .running = s->running,
                      .n_requests = s->n_requests,
                      .n_waiting = s->n_waiting,
                      .n_running = s->n_running,
                      .free = s->free,
                      .n_free = s->n_free,
                      .level = s->level,
                      .pressure = (float)s->pressure};
}

static void tell_layers(NodeSim *s) {
    for (uint32_t i = 0; i < s->n_running; i++) {
        uint32_t x = s->running[i];
        s->requests[x].layer = s->blocks[s->extras[x].block].layer;
    }
}

void sim_decide(NodeSim *s) {
    uint32_t n = SIM_ACTIONS;
    s->wake = INT64_MAX;
    sim_watch(s);
    tell_layers(s);
    while (n == SIM_ACTIONS) {
        NodeView view = view_of(s);
        bool     refuses = false;
        s->result->decisions++;
        n = s->run->policy->decide(s->state, &view, s->actions, SIM_ACTIONS);
        must(s, n <= SIM_ACTIONS, "more actions than the buffer holds");
        for (uint32_t i = 0; i < n; i++) {
            carry_out(s, &s->actions[i]);
            refuses = refuses || s->actions[i].verb == NODE_REJECT;
        }
        if (refuses) refuse(s, s->actions, n);
    }
}

#include "node/sim/node_sim.h"

#include <string.h>

#include "base/err.h"
#include "node/sim/node_sim_int.h"

// Position of a request in the waiting list, ordered by arrival; or its insertion point.
static uint32_t waiting_at(const NodeSim *s, uint64_t id) {
    uint32_t lo = 0, hi = s->n_waiting;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->requests[s->waiting[mid]].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void stop_waiting(NodeSim *s, uint32_t request) {
    uint32_t i = waiting_at(s, s->requests[request].id);
    CHECK(i < s->n_waiting && s->waiting[i] == request);
    memmove(s->waiting + i, s->waiting + i + 1, (--s->n_waiting - i) * sizeof *s->waiting);
}

static void stop_running(NodeSim *s, uint32_t request) {
    uint32_t i = 0;
    while (s->running[i] != request) i++;
    memmove(s->running + i, s->running + i + 1, (--s->n_running - i) * sizeof *s->running);
}

void sim_to_running(NodeSim *s, uint32_t request) {
    stop_waiting(s, request);
    s->running[s->n_running++] = request;
    s->requests[request].state = NODE_RUNNING;
}

static void wait_in_line(NodeSim *s, uint32_t request) {
    uint32_t i = waiting_at(s, s->requests[request].id);
    memmove(s->waiting + i + 1, s->waiting + i, (s->n_waiting++ - i) * sizeof *s->waiting);
    s->waiting[i] = request;
}

void sim_to_waiting(NodeSim *s, uint32_t request) {
    stop_running(s, request);
    wait_in_line(s, request);
    s->requests[request].state = NODE_WAITING;
    s->requests[request].since = s->now;
}

// The last request moves into the slot of a removed one.
static void forget(NodeSim *s, uint32_t request) {
    uint32_t last = --s->n_requests;
    if (s->requests[request].state == NODE_WAITING)
        stop_waiting(s, request);
    else
        stop_running(s, request);
    if (last == request) return;
    if (s->requests[last].state == NODE_WAITING) {
        s->waiting[waiting_at(s, s->requests[last].id)] = request;
    } else {
        uint32_t i = 0;
        while (s->running[i] != last) i++;
        s->running[i] = request;
    }
    s->requests[request] = s->requests[last];
    s->extras[request] = s->extras[last];
    s->named[request] = s->named[last];
}

void sim_answer(NodeSim *s, uint32_t request, Outcome o, const char *why) {
    const NodeRequest *r = &s->requests[request];
    NodeAnswer        *x = &s->result->answers[r->id];
    x->finish = s->now;
    x->outcome = o;
    s->answered++;
    bool waited = s->extras[request].waited * 2 > r->deadline - r->arrival;
    if (s->run->admit && !s->extras[request].unpromised)
        admission_result(&s->admission, o != OUTCOME_MET && (waited || r->next == 0));
    if (o == OUTCOME_REJECTED && r->id >= s->run->skip && s->now <= r->deadline) s->missed++;
    record_put(s->run->records,
               &(Record){.at = s->now,
                         .kind = o == OUTCOME_REJECTED ? RECORD_REJECT : RECORD_FINISH,
                         .request = r->id,
                         .tenant = r->tenant,
                         .outcome = o,
                         .why = why});
    forget(s, request);
}

const char *sim_why_late(const NodeSim *s, uint32_t request) {
    const NodeRequest *r = &s->requests[request];
    const SimExtra    *e = &s->extras[request];
    double             waited = (double)e->waited;
    if (waited > (double)(r->deadline - r->arrival))
        return "overload: waited longer than its target";
    if (waited >= e->contention_ns && waited >= e->conflict_ns && waited > 0)
        return "queueing: waited for cores";
    if (e->contention_ns >= e->conflict_ns && e->contention_ns > 0)
        return "contention: cache and memory were shared";
    if (e->conflict_ns > 0) return "conflict: fewer cores than wanted";
    return "size: too slow even alone on its cores";
}

static uint32_t request_of(const NodeSim *s, const SimBlock *b) {
    uint32_t i = 0;
    while (&s->blocks[s->extras[s->running[i]].block] != b) i++;
    return s->running[i];
}

static void count_layer(const NodeSim *s, const SimBlock *b, SimExtra *e, const NodeRequest *r) {
    const NodeModel *m = b->model;
    uint32_t         wanted = node_count_index(m, r->wanted > 0 ? r->wanted : 1), v;
    double           took = (double)(s->now - b->began);
    e->contention_ns += took - b->quiet_ns;
    if (wanted <= b->count || b->starting) return;
    v = b->versions[b->layer];
    double lost =
        (double)(node_time(m, b->layer, v, b->count, 0) - node_time(m, b->layer, v, wanted, 0));
    if (lost > 0) e->conflict_ns += lost;
}

static void learn_work(NodeSim *s, const SimBlock *b, const NodeRequest *r, SimExtra *e) {
    const NodeModel *m = b->model;
    double           alone = (double)node_rest(m, m->rest_best, b->first, 0, 0) -
                   (double)node_rest(m, m->rest_best, b->end, 0, 0);
    if (s->run->admit)
        admission_note(&s->admission, b->tenant, alone, (double)(r->computed - e->learned), 0);
    e->learned = r->computed;
}

// True when the block ended.
static bool end_layer(NodeSim *s, SimBlock *b) {
    uint32_t     x = request_of(s, b);
    NodeRequest *r = &s->requests[x];
    double       took = (double)(s->now - b->began) * b->n_cores;
    count_layer(s, b, &s->extras[x], r);
    r->computed += (TimeNs)took;
    s->result->busy_core_ns += took;
    if (b->starting)
        b->starting = false;
    else
        b->layer++;
    if (b->layer < b->end) {
        sim_next_layer(s, b);
        return false;
    }
    record_put(s->run->records, &(Record){.at = s->now,
                                          .kind = RECORD_END,
                                          .request = r->id,
                                          .tenant = r->tenant,
                                          .first = b->first,
                                          .n_layers = b->end - b->first,
                                          .cores = cores_union(b->cores, &b->joining)});
    r->cores = b->cores;
    r->layer = b->end;
    learn_work(s, b, r, &s->extras[x]);
    sim_leave(s, b);
    if (b->end < b->model->n_layers)
        sim_to_waiting(s, x);
    else if (s->now <= r->deadline)
        sim_answer(s, x, OUTCOME_MET, NULL);
    else
        sim_answer(s, x, OUTCOME_LATE, sim_why_late(s, x));
    return true;
}

static void arrive(NodeSim *s) {
    uint32_t          i = s->next_arrival++;
    const Arrival    *at = &s->run->arrivals.at[i];
    const NodeTenant *t = &s->run->setup.tenants[at->tenant];
    uint32_t          x = s->n_requests++;
    s->requests[x] = (NodeRequest){.id = i,
                                   .tenant = at->tenant,
                                   .state = NODE_WAITING,
                                   .arrival = at->at,
                                   .deadline = at->at + t->qos_ns,
                                   .since = at->at};
    s->extras[x] = (SimExtra){0};
    s->named[x] = 0;
    wait_in_line(s, x);
    s->result->answers[i] = (NodeAnswer){.arrival = at->at, .tenant = at->tenant};
    s->result->answers[i].outcome = OUTCOMES;
    record_put(s->run->records, &(Record){.at = at->at,
                                          .kind = RECORD_ARRIVE,
                                          .request = i,
                                          .tenant = at->tenant,
                                          .deadline = at->at + t->qos_ns});
    if (!s->run->admit || admission_allows(&s->admission, at->tenant, s->now)) return;
    s->extras[x].unpromised = true;
    sim_answer(s, x, OUTCOME_REJECTED, "cannot meet its deadline behind what is before it");
}

static TimeNs next_finish(const NodeSim *s) {
    TimeNs t = INT64_MAX;
    for (uint32_t i = 0; i < s->n_running; i++)
        if (s->blocks[s->order[i]].finish < t) t = s->blocks[s->order[i]].finish;
    return t;
}

// With admission, requests that wait past their deadline are rejected.
static bool drop_late(NodeSim *s) {
    bool dropped = false;
    for (uint32_t i = s->n_waiting; s->run->admit && i-- > 0;) {
        if (s->requests[s->waiting[i]].deadline >= s->now) continue;
        sim_answer(s, s->waiting[i], OUTCOME_REJECTED, "cannot meet its deadline on all cores");
        dropped = true;
    }
    return dropped;
}

// Processes all events at the current time. True when the policy must decide.
static bool happen(NodeSim *s) {
    bool news = s->now >= s->wake;
    for (uint32_t i = 0; i < s->n_running;) {
        SimBlock *b = &s->blocks[s->order[i]];
        if (b->finish == s->now && end_layer(s, b))
            news = true;
        else
            i++;
    }
    for (; s->next_arrival < s->run->arrivals.n; news = true) {
        if (s->run->arrivals.at[s->next_arrival].at > s->now) break;
        arrive(s);
    }
    return drop_late(s) || news;
}

// Counts requests past their deadline as missed, for stopping early.
static bool misses_too_many(NodeSim *s) {
    const Arrivals *a = &s->run->arrivals;
    if (s->run->give_up <= 0) return false;
    for (uint32_t t = 0; t < s->run->setup.n_tenants; t++) {
        TimeNs qos = s->run->setup.tenants[t].qos_ns;
        for (uint32_t *i = &s->cursors[t]; *i < s->next_arrival; (*i)++) {
            const NodeAnswer *x = &s->result->answers[*i];
            if (a->at[*i].tenant != t || *i < s->run->skip) continue;
            if (a->at[*i].at + qos >= s->now) break;
            s->missed += x->outcome == OUTCOMES || x->finish > a->at[*i].at + qos;
        }
    }
    return s->missed > s->run->give_up * (double)(a->n - s->run->skip);
}

static void prepare(NodeSim *s, Arena *a) {
    uint32_t n = s->run->arrivals.n, cores = s->run->setup.machine->n_cores;
    s->requests = arena_new(a, NodeRequest, n);
    s->extras = arena_new(a, SimExtra, n);
    s->named = arena_new(a, uint64_t, n);
    s->waiting = arena_new(a, uint32_t, n);
    s->running = arena_new(a, uint32_t, cores);
    s->blocks = arena_new(a, SimBlock, cores);
    s->order = arena_new(a, uint32_t, cores);
    s->idle = arena_new(a, uint32_t, cores);
    s->slice_hot = arena_new(a, uint64_t, s->run->setup.machine->n_slices);
    s->slice_blocks = arena_new(a, uint16_t, s->run->setup.machine->n_slices);
    s->demands = arena_new(a, double, cores);
    s->rates = arena_new(a, double, cores);
    s->actions = arena_new(a, NodeAction, SIM_ACTIONS);
    s->cursors = arena_new(a, uint32_t, s->run->setup.n_tenants);
    for (uint32_t i = 0; i < cores; i++) {
        s->idle[s->n_idle++] = cores - 1 - i;
        s->blocks[i].slices = arena_new(a, uint8_t, s->run->setup.machine->n_slices);
    }
    s->free = cores_all(cores);
    s->n_free = cores;
    s->wake = INT64_MAX;
}

static Err prepare_admission(NodeSim *s, Arena *a) {
    const NodeSetup *setup = &s->run->setup;
    TRY(admission_init(&s->admission, setup->n_tenants, a));
    s->admission.cores = setup->machine->n_cores;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        const NodeTenant *t = &setup->tenants[i];
        double            alone = (double)node_rest(t->model, t->model->rest_best, 0, 0, 0);
        admission_join(&s->admission, i, alone, t->qos_ns, 0);
    }
    return ERR_OK;
}

static void prepare_policy(NodeSim *s, Arena *a) {
    const NodePolicy *p = s->run->policy;
    const NodeSetup  *setup = &s->run->setup;
    if (p->state_size != NULL)
        s->state = arena_alloc(a, p->state_size(setup, s->run->settings), 1, 64);
    if (p->init != NULL) p->init(s->state, setup, s->run->settings);
}

static TimeNs next_time(const NodeSim *s) {
    TimeNs t = next_finish(s);
    if (s->wake < t) t = s->wake;
    if (s->next_arrival < s->run->arrivals.n && s->run->arrivals.at[s->next_arrival].at < t)
        t = s->run->arrivals.at[s->next_arrival].at;
    return t;
}

static void give_up(NodeSim *s) {
    s->result->gave_up = true;
    while (s->next_arrival < s->run->arrivals.n) arrive(s);
    for (uint32_t i = 0; i < s->result->n; i++)
        if (s->result->answers[i].outcome == OUTCOMES) {
            s->result->answers[i].outcome = OUTCOME_LATE;
            s->result->answers[i].finish = s->now;
            s->answered++;
        }
}

static void go(NodeSim *s) {
    while (s->answered < s->result->n) {
        s->now = next_time(s);
        bool policy_holds_requests_forever = s->now == INT64_MAX;
        CHECK(!policy_holds_requests_forever);
        if (happen(s)) {
            sim_decide(s);
            if (misses_too_many(s)) {
                give_up(s);
                return;
            }
        }
        sim_flow(s);
    }
}

static void check_balance(const NodeResult *r) {
    uint32_t count[OUTCOMES] = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        CHECK(r->answers[i].outcome < OUTCOMES);
        count[r->answers[i].outcome]++;
    }
    CHECK(count[OUTCOME_MET] + count[OUTCOME_LATE] + count[OUTCOME_REJECTED] == r->n);
}

static Err check_run(const NodeRun *run) {
    for (uint32_t i = 0; i < run->setup.n_tenants; i++)
        if (run->setup.tenants[i].model->demand == NULL)
            return err_set(ERR_ARG, "tenant %s has a model that cannot be simulated",
                           run->setup.tenants[i].name);
    return ERR_OK;
}

Err node_sim(const NodeRun *run, const NodeMachineSpec *spec, Arena *a, NodeResult *out) {
    NodeResult r = {.n = run->arrivals.n};
    Arena      memory;
    NodeSim    s = {.run = run, .spec = spec, .result = &r};
    TRY(check_run(run));
    r.answers = arena_try_new(a, NodeAnswer, r.n);
    if (r.answers == NULL) return err_set(ERR_LIMIT, "no memory for %u requests", r.n);
    TRY(arena_init(&memory, (size_t)1 << 36));
    prepare(&s, &memory);
    prepare_policy(&s, &memory);
    Err e = prepare_admission(&s, &memory);
    if (e == ERR_OK) go(&s);
    arena_finish(&memory);
    TRY(e);
    check_balance(&r);
    if (r.n > 0) r.span = s.now - run->arrivals.at[0].at;
    *out = r;
    return ERR_OK;
}

// Tenants that join and leave: each has its contexts and tables in its own arena.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/live/live_int.h"

enum { MEMORY_PARTS = 32, PAGE = 4096, PAUSE_US = 50, JOB_CONTEXTS = 2 };

// Unless it joins in haste, touches every page now, so that no request takes page faults.
static Err prepare(NodeLive *l, LiveModel *m, ExecContext *p, bool haste) {
    p->outputs = arena_try_new(&m->arena, Tensor, m->program->shaped->graph->n_outputs);
    if (p->outputs == NULL) return err_set(ERR_LIMIT, "no memory for outputs");
    TRY(run_memory_init(&p->mem, m->program, l->o.cores));
    if (!haste) memset(p->mem.memory.base, 0, p->mem.memory.used);
    m->memory_bytes += p->mem.memory.used;
    return ERR_OK;
}

// A tenant's contexts are limited to a share of memory, but are at least two.
static uint32_t choose_places(const NodeLive *l, const LiveTenant *t) {
    uint32_t wish = t->contexts > 0 ? t->contexts : l->o.contexts;
    uint64_t each = t->program->arena_bytes + l->o.cores * program_scratch(t->program) + 1;
    uint64_t most = cpu_mem_budget(l->o.roots) / MEMORY_PARTS / each;
    if (most > wish) most = wish;
    return most < 2 && wish >= 2 ? 2 : most < 1 ? 1 : (uint32_t)most;
}

static Err fill(NodeLive *l, LiveModel *m, uint32_t n_contexts, bool haste) {
    m->contexts = arena_try_new(&m->arena, ExecContext, n_contexts);
    m->n_versions = arena_try_new(&m->arena, uint8_t, m->n_layers);
    m->solo = arena_try_new(&m->arena, uint8_t, m->n_layers);
    if (m->contexts == NULL || m->n_versions == NULL || m->solo == NULL)
        return err_set(ERR_LIMIT, "no memory for it");
    TRY(block_bounds_init(&m->bounds, m->program, m->tenant.model, &m->arena));
    m->n_versions[0] = 1;
    for (uint32_t i = 0; i < m->program->n_steps; i++)
        m->n_versions[i] = (uint8_t)m->program->steps[i].n_versions;
    for (; m->n_contexts < n_contexts; m->n_contexts++) {
        ExecContext *p = &m->contexts[m->n_contexts];
        TRY(prepare(l, m, p, haste));
        p->next = m->free;
        m->free = p;
    }
    m->memory_bytes += m->arena.used;
    return ERR_OK;
}

void live_forget_model(LiveModel *m) {
    for (uint32_t i = 0; i < m->n_contexts; i++) run_memory_finish(&m->contexts[i].mem);
    Arena a = m->arena;
    arena_finish(&a);
    *m = (LiveModel){0};
}

static Err make_model(NodeLive *l, const LiveTenant *t, LiveModel *m) {
    uint32_t n_contexts = choose_places(l, t), n_outputs = t->program->shaped->graph->n_outputs;
    size_t   each = sizeof(ExecContext) + n_outputs * sizeof(Tensor);
    size_t   bounds = 2 * sizeof(uint32_t) * ((size_t)program_layer_count(t->program) + 16);
    *m = (LiveModel){.program = t->program,
                     .inputs = t->inputs,
                     .tenant = t->tenant,
                     .n_layers = t->tenant.model->n_layers,
                     .room = t->queue,
                     .min_cores = t->min_cores,
                     .max_cores = t->max_cores};
    TRY(arena_init(&m->arena,
                   (n_contexts + 1) * (each + 128) + 2 * (size_t)m->n_layers + bounds + PAGE));
    Err e = fill(l, m, n_contexts, t->haste);
    if (e != ERR_OK) live_forget_model(m);
    return e;
}

static uint32_t find_hole(const NodeLive *l) {
    uint32_t i = 0;
    while (i < l->n_models && l->models[i].program != NULL) i++;
    return i;
}

// A program without steps counts as one layer: the interpreter.
static Err check_layers(const LiveTenant *t) {
    uint32_t want = t->program->n_steps > 0 ? t->program->n_steps : 1;
    if (t->tenant.model->n_layers == want && program_layer_count(t->program) > 0) return ERR_OK;
    return err_set(ERR_ARG, "its model has %u layers, its program %u steps",
                   t->tenant.model->n_layers, t->program->n_steps);
}

static void look_for_limits(NodeLive *l) {
    l->limited = false;
    for (uint32_t i = 0; i < l->n_models; i++)
        if (l->models[i].min_cores > 0 || l->models[i].max_cores > 0) l->limited = true;
}

static double alone_ns(const NodeTenant *t) {
    return (double)node_rest(t->model, t->model->rest_best, 0, 0, 0);
}

Err node_live_join(NodeLive *l, const LiveTenant *t, uint32_t *number) {
    LiveModel m;
    uint32_t  at = find_hole(l);
    Err       e = ERR_OK;
    if (at == l->o.tenants) e = err_set(ERR_LIMIT, "one more than %u tenants", l->o.tenants);
    if (e == ERR_OK) e = check_layers(t);
    if (e == ERR_OK) e = make_model(l, t, &m);
    if (e != ERR_OK) return err_add(e, "tenant '%s'", t->tenant.name);
    sched_lock(l);
    l->models[at] = m;
    if (at == l->n_models) l->n_models++;
    admission_join(&l->admission, at, alone_ns(&t->tenant), t->tenant.qos_ns, t->min_cores);
    look_for_limits(l);
    sched_unlock(l);
    *number = at;
    return ERR_OK;
}

Err node_live_join_jobs(NodeLive *l, const NodeTenant *t, uint32_t *number) {
    LiveTenant jobs = {.tenant = *t, .program = &l->jobs.program, .contexts = JOB_CONTEXTS};
    jobs.tenant.model = &l->jobs.model;
    return node_live_join(l, &jobs, number);
}

Err node_live_add(NodeLive *l, const LiveTenant *t) {
    uint32_t number = 0;
    return node_live_join(l, t, &number);
}

static void send_away(NodeLive *l, uint32_t tenant) {
    TimeNs t = clock_now(clock_monotonic());
    for (uint32_t k = 0; k < l->queue.n_waiting; k++) {
        uint32_t i = l->queue.waiting[k];
        if (l->queue.requests[i].tenant == tenant && !l->beside[i].gone)
            live_end(l, i, t, LIVE_CANCELLED, "its model was unloaded");
    }
    live_forget_gone(l);
}

// The last result is delivered before its block is returned, so wait for the block.
static void wait_until_gone(NodeLive *l, uint32_t tenant) {
    LiveModel *m = &l->models[tenant];
    sched_lock(l);
    m->served = false;
    while (m->waiting + m->running > 0) {
        send_away(l, tenant);
        sched_unlock(l);
        (void)usleep(PAUSE_US);
        sched_lock(l);
    }
}

void node_live_change_table(NodeLive *l, void (*change)(void *self), void *self) {
    sched_lock(l);
    change(self);
    sched_unlock(l);
}

void node_live_leave(NodeLive *l, uint32_t number) {
    LiveModel *m = &l->models[number];
    if (number >= l->n_models || m->program == NULL) return;
    wait_until_gone(l, number);
    LiveModel old = *m;
    *m = (LiveModel){0};
    admission_leave(&l->admission, number);
    while (l->n_models > 0 && l->models[l->n_models - 1].program == NULL) l->n_models--;
    look_for_limits(l);
    sched_unlock(l);
    live_forget_model(&old);
    live_free_retired(l);
}

#include "node/live/request_table.h"

#include "base/err.h"

Err request_table_init(RequestTable *q, uint32_t room, Arena *a) {
    *q = (RequestTable){.room = room};
    q->requests = arena_try_new(a, NodeRequest, room);
    q->waiting = arena_try_new(a, uint32_t, room);
    q->running = arena_try_new(a, uint32_t, room);
    q->where = arena_try_new(a, uint32_t, room);
    if (q->requests == NULL || q->waiting == NULL || q->running == NULL || q->where == NULL)
        return err_set(ERR_LIMIT, "no memory for %u requests at once", room);
    return ERR_OK;
}

static void put(RequestTable *q, uint32_t *list, uint32_t at, uint32_t i) {
    list[at] = i;
    q->where[i] = at;
}

static void leave_waiting(RequestTable *q, uint32_t i) {
    q->n_waiting--;
    for (uint32_t k = q->where[i]; k < q->n_waiting; k++) put(q, q->waiting, k, q->waiting[k + 1]);
}

// Makes i the last of those with cores.
static void put_last_with_cores(RequestTable *q, uint32_t i) {
    uint32_t last = q->n_running - q->n_demoted - 1, other = q->running[last];
    put(q, q->running, q->where[i], other);
    put(q, q->running, last, i);
}

static void leave_running(RequestTable *q, uint32_t i) {
    if (q->where[i] < q->n_running - q->n_demoted)
        put_last_with_cores(q, i);
    else
        q->n_demoted--;
    q->n_running--;
    put(q, q->running, q->where[i], q->running[q->n_running]);
}

void request_table_demote(RequestTable *q, uint32_t i) {
    CHECK(i < q->n && q->requests[i].state == NODE_RUNNING);
    CHECK(q->where[i] < q->n_running - q->n_demoted);
    put_last_with_cores(q, i);
    q->n_demoted++;
}

uint32_t request_table_add(RequestTable *q, const NodeRequest *r) {
    if (q->n == q->room) return UINT32_MAX;
    uint32_t i = q->n++;
    q->requests[i] = *r;
    q->requests[i].state = NODE_WAITING;
    put(q, q->waiting, q->n_waiting++, i);
    return i;
}

void request_table_run(RequestTable *q, uint32_t i) {
    CHECK(i < q->n && q->requests[i].state == NODE_WAITING);
    leave_waiting(q, i);
    q->requests[i].state = NODE_RUNNING;
    uint32_t at = q->n_running++ - q->n_demoted;
    if (q->n_demoted > 0) put(q, q->running, q->n_running - 1, q->running[at]);
    put(q, q->running, at, i);
}

void request_table_wait(RequestTable *q, uint32_t i) {
    CHECK(i < q->n && q->requests[i].state == NODE_RUNNING);
    leave_running(q, i);
    q->requests[i].state = NODE_WAITING;
    uint32_t k = q->n_waiting++;
    for (; k > 0 && q->requests[q->waiting[k - 1]].id > q->requests[i].id; k--)
        put(q, q->waiting, k, q->waiting[k - 1]);
    put(q, q->waiting, k, i);
}

uint32_t request_table_drop(RequestTable *q, uint32_t i) {
    CHECK(i < q->n);
    if (q->requests[i].state == NODE_WAITING)
        leave_waiting(q, i);
    else
        leave_running(q, i);
    uint32_t last = --q->n;
    if (last == i) return i;
    q->requests[i] = q->requests[last];
    put(q, q->requests[i].state == NODE_WAITING ? q->waiting : q->running, q->where[last], i);
    return last;
}

void request_table_show(const RequestTable *q, NodeView *view) {
    view->requests = q->requests;
    view->waiting = q->waiting;
    view->running = q->running;
    view->n_requests = q->n;
    view->n_waiting = q->n_waiting;
    view->n_running = q->n_running - q->n_demoted;
}

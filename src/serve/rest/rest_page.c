// Pages with long texts on a server with many models: metrics, statistics, the index. One page
// at a time is written, in slices, so that the loop serves others in between.
#include <stdio.h>
#include <stdlib.h>

#include "base/coroutine.h"
#include "serve/rest/rest_int.h"

enum { PAGE_BYTES = 128 << 20 };  // address space; the writers have limits of their own

// Of the loop's time, and until the next slice.
static const TimeNs PAGE_SLICE = 250000, PAGE_PAUSE = 250000;

struct RestPage {
    RestPageWrite *write;
    const char    *type;
    RestCall      *next;  // among calls with pages still to be written
    Arena          arena;
    Str            text;
    Err            result;
    char           why[160];  // result is no success
};

void rest_page_free(RestPage *p) {
    if (p == NULL) return;
    arena_finish(&p->arena);
    free(p);
}

static void fail(RestPage *p, Err e) {
    p->result = e;
    (void)snprintf(p->why, sizeof p->why, "%s", err_why());
}

static void write_page(void *self) {
    RestCall *c = self;
    RestPage *p = c->page;
    Err       e = p->write(c, &p->arena, &p->text);
    if (e != ERR_OK) fail(p, e);
}

static void answer(RestCall *c) {
    RestPage *p = c->page;
    c->waiting = false;
    if (c->x == NULL)
        rest_free(c);
    else if (p->result == ERR_OK)
        rest_piece(c, p->type, p->text);
    else
        rest_error(c, 503, 1, p->why);
}

// What clients ask for is charged like their other responses; metrics are for the operator, above
// all when memory runs out.
static bool has_memory(RestCall *c) {
    RestPage *p = c->page;
    Err       e = arena_init(&p->arena, PAGE_BYTES);
    if (e == ERR_OK && c->route.kind == ROUTE_STATS && !arena_charge(&p->arena, c->rest->o.memory))
        e = err_set(ERR_LIMIT, "no memory for statistics (`buffered_mb`)");
    if (e != ERR_OK) fail(p, e);
    return e == ERR_OK;
}

static RestCall *take_first(RestPages *q) {
    RestCall *c = q->first;
    q->first = c->page->next;
    if (q->first == NULL) q->last = NULL;
    return c;
}

// Begins the page of the first call that still waits for one.
static void begin(RestPages *q) {
    while (q->current == NULL && q->first != NULL) {
        RestCall *c = take_first(q);
        if (c->x != NULL && has_memory(c)) {
            q->current = c;
            coroutine_begin(q->coroutine, write_page, c);
        } else {
            answer(c);
        }
    }
}

static void wake(Rest *r, TimeNs at) {
    CHECK(loop_arm(r->o.loop, &r->pages.timer, at) == ERR_OK);  // only the first one can fail
}

static void work(void *self) {
    Rest      *r = self;
    RestPages *q = &r->pages;
    wake(r, INT64_MAX);
    begin(q);
    if (q->current == NULL) return;
    if (coroutine_resume(q->coroutine, PAGE_SLICE)) {
        RestCall *c = q->current;
        q->current = NULL;
        answer(c);
    }
    if (q->current != NULL || q->first != NULL) wake(r, loop_now(r->o.loop) + PAGE_PAUSE);
}

Err rest_pages_open(Rest *r) {
    RestPages *q = &r->pages;
    q->timer = (LoopTimer){.fire = work, .self = r};
    TRY(coroutine_create(&q->coroutine));
    return loop_arm(r->o.loop, &q->timer, INT64_MAX);
}

void rest_pages_close(Rest *r) {
    RestPages *q = &r->pages;
    loop_disarm(r->o.loop, &q->timer);
    coroutine_destroy(q->coroutine);
    if (q->current != NULL) rest_free(q->current);
    while (q->first != NULL) rest_free(take_first(q));
}

void rest_page(RestCall *c, const char *type, RestPageWrite *write) {
    RestPages *q = &c->rest->pages;
    bool       idle = q->current == NULL && q->first == NULL;
    c->page = calloc(1, sizeof *c->page);
    if (c->page == NULL) {
        rest_error(c, 503, 1, "out of memory; retry later");
        return;
    }
    c->page->write = write;
    c->page->type = type;
    c->waiting = true;
    if (q->last != NULL)
        q->last->page->next = c;
    else
        q->first = c;
    q->last = c;
    if (idle) wake(c->rest, loop_now(c->rest->o.loop));
}

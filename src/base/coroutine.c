#include "base/coroutine.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COROUTINE_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define COROUTINE_TSAN 1
#endif
#endif
#if defined(COROUTINE_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(COROUTINE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// CHECK_NS: work between two readings of the clock.
enum { STACK_BYTES = 256 << 10, CHECK_NS = 50000 };

typedef struct StackBounds {  // of the other side, for the address sanitizer
    void       *fake;
    const void *bottom;
    size_t      size;
} StackBounds;

struct Coroutine {
    ucontext_t own, caller;
    char      *stack;  // a guard page, then STACK_BYTES
    size_t     guard;
    void (*run)(void *self);
    void       *self;
    TimeNs      until;
    bool        begun, done;
    StackBounds inside, outside;
    void       *fiber, *caller_fiber;  // of the thread sanitizer
};

_Thread_local int64_t           coroutine_left = INT64_MAX;
static _Thread_local Coroutine *current;

Err coroutine_create(Coroutine **out) {
    size_t     page = (size_t)sysconf(_SC_PAGESIZE);
    Coroutine *c = calloc(1, sizeof *c);
    char      *stack = MAP_FAILED;
    if (c != NULL)
        stack = mmap(NULL, page + STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE) != 0) {
        if (stack != MAP_FAILED) (void)munmap(stack, page + STACK_BYTES);
        free(c);
        return err_set(ERR_LIMIT, "no memory for a stack of %d bytes", STACK_BYTES);
    }
    c->stack = stack;
    c->guard = page;
    *out = c;
    return ERR_OK;
}

static void forget_fiber(Coroutine *c) {
#if defined(COROUTINE_TSAN)
    if (c->fiber != NULL) __tsan_destroy_fiber(c->fiber);
#endif
    c->fiber = NULL;
}

void coroutine_destroy(Coroutine *c) {
    if (c == NULL) return;
    forget_fiber(c);
    (void)munmap(c->stack, c->guard + STACK_BYTES);
    free(c);
}

void coroutine_begin(Coroutine *c, void (*run)(void *self), void *self) {
    forget_fiber(c);
    c->run = run;
    c->self = self;
    c->begun = c->done = false;
    c->inside = c->outside = (StackBounds){0};
}

// Announce a switch of stacks to the sanitizers: before it, on the old stack, and after it, on the
// new one.
static void switch_begins(StackBounds *from, const StackBounds *to, void *fiber, bool last) {
#if defined(COROUTINE_ASAN)
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake, to->bottom, to->size);
#endif
#if defined(COROUTINE_TSAN)
    __tsan_switch_to_fiber(fiber, 0);
#endif
    (void)from, (void)to, (void)fiber, (void)last;
}

static void switch_ended(StackBounds *now, StackBounds *before) {
#if defined(COROUTINE_ASAN)
    __sanitizer_finish_switch_fiber(now->fake, before != NULL ? &before->bottom : NULL,
                                    before != NULL ? &before->size : NULL);
#endif
    (void)now, (void)before;
}

static void leave(Coroutine *c, bool last) {
    switch_begins(&c->inside, &c->outside, c->caller_fiber, last);
    CHECK(swapcontext(&c->own, &c->caller) == 0);
    switch_ended(&c->inside, &c->outside);
}

static void start(void) {
    Coroutine *c = current;
    switch_ended(&c->inside, &c->outside);
    c->run(c->self);
    c->done = true;
    leave(c, true);
    abort();
}

static void prepare(Coroutine *c) {
    CHECK(getcontext(&c->own) == 0);
    c->own.uc_stack.ss_sp = c->stack + c->guard;
    c->own.uc_stack.ss_size = STACK_BYTES;
    c->own.uc_link = NULL;
    makecontext(&c->own, start, 0);
    c->inside = (StackBounds){NULL, c->stack + c->guard, STACK_BYTES};
    c->begun = true;
#if defined(COROUTINE_TSAN)
    c->fiber = __tsan_create_fiber(0);
#endif
}

bool coroutine_resume(Coroutine *c, TimeNs slice_ns) {
    CHECK(c->run != NULL && !c->done && current == NULL);
    if (!c->begun) prepare(c);
#if defined(COROUTINE_TSAN)
    c->caller_fiber = __tsan_get_current_fiber();
#endif
    current = c;
    c->until = clock_monotonic_ns() + slice_ns;
    coroutine_left = CHECK_NS;
    switch_begins(&c->outside, &c->inside, c->fiber, false);
    CHECK(swapcontext(&c->caller, &c->own) == 0);
    switch_ended(&c->outside, NULL);
    coroutine_left = INT64_MAX;
    current = NULL;
    return c->done;
}

void coroutine_spend(uint32_t work) {
    Coroutine *c = current;
    (void)work;
    coroutine_left = c != NULL ? CHECK_NS : INT64_MAX;
    if (c != NULL && clock_monotonic_ns() >= c->until) leave(c, false);
}

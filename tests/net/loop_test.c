// The loop: timers in order, watches removed by other watches, no posted call lost.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "net/loop.h"
#include "tests/runner.h"

enum { N_TIMERS = 200, N_POSTERS = 4, N_POSTS = 5000 };

typedef struct Alarm {
    LoopTimer timer;
    struct Watch {
        Loop  *loop;
        int    fired, wanted;
        TimeNs last;
    } * watch;
} Alarm;

static void alarm_fire(void *self) {
    Alarm *a = self;
    assert_true(a->timer.at >= a->watch->last);
    assert_true(a->timer.at <= loop_now(a->watch->loop));
    assert_int_equal(a->timer.place, 0);
    a->watch->last = a->timer.at;
    if (++a->watch->fired == a->watch->wanted) loop_stop(a->watch->loop);
}

static void timers_fire_in_order_and_moved_ones_where_they_are_now(void **state) {
    (void)state;
    Loop *l;
    assert_int_equal(loop_create(&l), ERR_OK);
    struct Watch w = {.loop = l, .wanted = N_TIMERS - N_TIMERS / 4};
    Alarm        alarms[N_TIMERS];
    Rng          rng = {.s = 7};
    TimeNs       from = clock_now(clock_monotonic());
    for (int i = 0; i < N_TIMERS; i++) {
        alarms[i] = (Alarm){.timer = {.fire = alarm_fire, .self = &alarms[i]}, .watch = &w};
        TimeNs at = from + (TimeNs)rng_below(&rng, 20000000);
        assert_int_equal(loop_arm(l, &alarms[i].timer, at), ERR_OK);
    }
    for (int i = 0; i < N_TIMERS; i += 3) {
        TimeNs at = from + (TimeNs)rng_below(&rng, 20000000);
        assert_int_equal(loop_arm(l, &alarms[i].timer, at), ERR_OK);
    }
    for (int i = 0; i < N_TIMERS; i += 4) loop_disarm(l, &alarms[i].timer);
    loop_disarm(l, &alarms[0].timer);
    assert_int_equal(loop_run(l), ERR_OK);
    assert_int_equal(w.fired, w.wanted);
    loop_destroy(l);
}

typedef struct Again {
    Loop     *loop;
    LoopTimer timer;
    LoopPost  post;
    int       rounds;
} Again;

static void again_posted(void *self) { loop_stop(((Again *)self)->loop); }

static void again_fire(void *self) {
    Again *a = self;
    if (a->rounds++ == 0) loop_post(a->loop, &a->post);
    assert_int_equal(loop_arm(a->loop, &a->timer, 0), ERR_OK);
}

static void a_timer_that_is_always_due_leaves_room_for_others(void **state) {
    (void)state;
    Again a = {.timer = {.fire = again_fire, .self = &a},
               .post = {.run = again_posted, .self = &a}};
    assert_int_equal(loop_create(&a.loop), ERR_OK);
    assert_int_equal(loop_arm(a.loop, &a.timer, 0), ERR_OK);
    assert_int_equal(loop_run(a.loop), ERR_OK);
    assert_true(a.rounds >= 1);
    loop_destroy(a.loop);
}

typedef struct End {
    Loop       *loop;
    LoopFd      watch;
    struct End *other;
    int         calls;
} End;

static void end_ready(void *self, uint32_t events) {
    End *e = self;
    assert_true(events & EPOLLIN);
    e->calls++;
    loop_forget(e->loop,
                &e->other->watch);  // both are ready: the other must not be called any more
    loop_stop(e->loop);
}

static void what_was_forgotten_is_not_called(void **state) {
    (void)state;
    Loop *l;
    int   a[2], b[2];
    assert_int_equal(loop_create(&l), ERR_OK);
    assert_int_equal(pipe(a) | pipe(b), 0);
    End ends[2] = {{.loop = l, .other = &ends[1]}, {.loop = l, .other = &ends[0]}};
    for (int i = 0; i < 2; i++) {
        ends[i].watch = (LoopFd){
            .fd = i ? b[0] : a[0], .events = EPOLLIN, .ready = end_ready, .self = &ends[i]};
        assert_int_equal(loop_watch(l, &ends[i].watch), ERR_OK);
        assert_int_equal(write(i ? b[1] : a[1], "x", 1), 1);
    }
    assert_int_equal(loop_run(l), ERR_OK);
    assert_int_equal(ends[0].calls + ends[1].calls, 1);
    for (int i = 0; i < 2; i++) close(a[i]), close(b[i]);
    loop_destroy(l);
}

static void a_descriptor_that_epoll_does_not_take_is_an_error(void **state) {
    (void)state;
    Loop *l;
    assert_int_equal(loop_create(&l), ERR_OK);
    LoopFd f = {.fd = -1, .events = EPOLLIN};
    assert_int_equal(loop_watch(l, &f), ERR_IO);
    loop_destroy(l);
}

typedef struct Poster {
    LoopPost        post;
    struct Posters *posters;
    int             done;
    atomic_bool     ran;
} Poster;

typedef struct Posters {
    Loop  *loop;
    Poster posters[N_POSTERS];
    int    left;
} Posters;

static void poster_run(void *self) {
    Poster *p = self;
    p->done++;
    if (--p->posters->left == 0) loop_stop(p->posters->loop);
    atomic_store_explicit(&p->ran, true, memory_order_release);
}

static void *poster_main(void *self) {
    Poster *p = self;
    for (int i = 0; i < N_POSTS; i++) {
        loop_post(p->posters->loop, &p->post);
        while (!atomic_exchange_explicit(&p->ran, false, memory_order_acquire)) sched_yield();
    }
    return NULL;
}

static void posts_of_other_threads_all_run(void **state) {
    (void)state;
    Posters   c = {.left = N_POSTERS * N_POSTS};
    pthread_t threads[N_POSTERS];
    assert_int_equal(loop_create(&c.loop), ERR_OK);
    for (int i = 0; i < N_POSTERS; i++) {
        Poster *p = &c.posters[i];
        p->posters = &c;
        p->post = (LoopPost){.run = poster_run, .self = p};
        assert_int_equal(pthread_create(&threads[i], NULL, poster_main, p), 0);
    }
    assert_int_equal(loop_run(c.loop), ERR_OK);
    for (int i = 0; i < N_POSTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(c.posters[i].done, N_POSTS);
    }
    loop_destroy(c.loop);
}

typedef struct Queue {
    Loop    *loop;
    LoopPost posts[100];
    int      seen[100], n;
} Queue;

typedef struct Turn {
    Queue *queue;
    int    number;
} Turn;

static void turn_run(void *self) {
    Turn *t = self;
    t->queue->seen[t->queue->n++] = t->number;
    if (t->queue->n == 100) loop_stop(t->queue->loop);
}

static void posts_run_in_the_order_they_came(void **state) {
    (void)state;
    Queue q = {0};
    Turn  turns[100];
    assert_int_equal(loop_create(&q.loop), ERR_OK);
    for (int i = 0; i < 100; i++) {
        turns[i] = (Turn){&q, i};
        q.posts[i] = (LoopPost){.run = turn_run, .self = &turns[i]};
        loop_post(q.loop, &q.posts[i]);
    }
    assert_int_equal(loop_run(q.loop), ERR_OK);
    for (int i = 0; i < 100; i++) assert_int_equal(q.seen[i], i);
    loop_destroy(q.loop);
}

static void *stopper_main(void *loop) {
    usleep(2000);
    loop_stop(loop);
    return NULL;
}

static void it_stops_when_told_before_or_while_it_sleeps(void **state) {
    (void)state;
    Loop     *l;
    pthread_t thread;
    assert_int_equal(loop_create(&l), ERR_OK);
    loop_stop(l);
    assert_int_equal(loop_run(l), ERR_OK);
    assert_int_equal(pthread_create(&thread, NULL, stopper_main, l), 0);
    assert_int_equal(loop_run(l), ERR_OK);
    pthread_join(thread, NULL);
    loop_destroy(l);
    loop_destroy(NULL);
}

static TimeNs cpu_now(void) {
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void compute_run(void *loop) {
    for (TimeNs end = cpu_now() + 3000000; cpu_now() < end;) {
    }
    loop_stop(loop);
}

static void sleep_run(void *loop) {
    usleep(20000);
    loop_stop(loop);
}

static void turns_are_measured_in_cpu_time(void **state) {
    (void)state;
    Loop *l;
    assert_int_equal(loop_create(&l), ERR_OK);
    LoopPost asleep = {.run = sleep_run, .self = l}, busy = {.run = compute_run, .self = l};
    loop_post(l, &asleep);
    assert_int_equal(loop_run(l), ERR_OK);
    LoopCounts c = loop_counts(l);
    assert_true(c.longest >= 20000000);
    assert_true(c.worked < 10000000);
    uint64_t before = c.overlong;
    loop_post(l, &busy);
    assert_int_equal(loop_run(l), ERR_OK);
    c = loop_counts(l);
    assert_true(c.worked >= 3000000);
    assert_int_equal(c.overlong, before + 1);
    loop_destroy(l);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order_and_moved_ones_where_they_are_now),
        cmocka_unit_test(a_timer_that_is_always_due_leaves_room_for_others),
        cmocka_unit_test(what_was_forgotten_is_not_called),
        cmocka_unit_test(a_descriptor_that_epoll_does_not_take_is_an_error),
        cmocka_unit_test(posts_of_other_threads_all_run),
        cmocka_unit_test(posts_run_in_the_order_they_came),
        cmocka_unit_test(it_stops_when_told_before_or_while_it_sleeps),
        cmocka_unit_test(turns_are_measured_in_cpu_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "kernel/probe_sample.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

enum { LEAST_SAMPLES = 20, PATIENCE = 8 };

typedef struct Span {
    _Alignas(128) TimeNs begin;
    TimeNs end;
} Span;

typedef struct Sampling {
    Team      *team;
    ProbeWork *work;
    void      *self;
    Span      *spans;  // [count]
    TimeNs     best, start, budget;
    bool       stop;
} Sampling;

static TimeNs whole_span(const Sampling *s, uint32_t count) {
    TimeNs begin = s->spans[0].begin, end = s->spans[0].end;
    for (uint32_t i = 1; i < count; i++) {
        if (s->spans[i].begin < begin) begin = s->spans[i].begin;
        if (s->spans[i].end > end) end = s->spans[i].end;
    }
    return end - begin;
}

static void judge(Sampling *s, uint32_t count, uint32_t round) {
    TimeNs span = whole_span(s, count);
    if (span < 1) span = 1;
    if (round == 0 || span < s->best) s->best = span;
    TimeNs spent = s->spans[0].end - s->start;
    s->stop = spent >= (round + 1 < LEAST_SAMPLES ? PATIENCE * s->budget : s->budget);
}

static void sample(void *ctx, uint32_t index, uint32_t count) {
    Sampling *s = ctx;
    Clock     clock = clock_steady();
    for (uint32_t round = 0; !s->stop; round++) {
        team_barrier(s->team);
        s->spans[index].begin = clock_now(clock);
        s->work(s->self, index, round);
        s->spans[index].end = clock_now(clock);
        team_barrier(s->team);
        if (index == 0) judge(s, count, round);
        team_barrier(s->team);
    }
}

TimeNs probe_sample(Team *t, uint32_t count, TimeNs budget, ProbeWork *work, void *self) {
    Sampling s = {.team = t, .work = work, .self = self, .budget = budget};
    s.spans = aligned_alloc(_Alignof(Span), count * sizeof *s.spans);
    if (s.spans == NULL) return 0;
    s.start = clock_now(clock_steady());
    team_run_some(t, count, sample, &s);
    free(s.spans);
    return s.best;
}

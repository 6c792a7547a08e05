// The slow reference of chip_simulate: one nanosecond at a time, first come, first served.
#pragma once

#include "tests/chip/test_package.h"

typedef struct StepTask {
    uint32_t layer, unit;  // CHIP_NONE: it waits
    bool     arrived, over;
} StepTask;

typedef struct StepUnit {
    uint32_t task;  // CHIP_NONE: free
    TimeNs   begin;
    double   done, ns, asks, part;
} StepUnit;

typedef struct Stepwise {
    const ChipRun *run;
    float          cap;  // of every layer; see test_package_capped
    StepTask       tasks[TEST_PACKAGE_REQUESTS];
    StepUnit       units[CHIP_UNITS];
    ChipAnswer     answers[TEST_PACKAGE_REQUESTS];
    TimeNs         now;
    uint32_t       over;
} Stepwise;

static inline const ChipModel *step_model(const Stepwise *s, uint32_t task) {
    return s->run->setup.tenants[s->run->trace.at[task].tenant].model;
}

static inline void step_answer(Stepwise *s, uint32_t task, Outcome o) {
    s->tasks[task].over = true;
    s->answers[task] =
        (ChipAnswer){.finish = s->now, .outcome = o, .tenant = s->run->trace.at[task].tenant};
    s->over++;
}

static inline void step_ends(Stepwise *s) {
    for (uint32_t u = 0; u < s->run->setup.n_units; u++) {
        StepUnit *x = &s->units[u];
        if (x->task == CHIP_NONE || s->now < x->begin || x->done < x->ns - 1e-6) continue;
        StepTask *t = &s->tasks[x->task];
        t->unit = CHIP_NONE;
        t->layer++;
        if (!t->over && t->layer == step_model(s, x->task)->n_layers)
            step_answer(s, x->task,
                        s->now <= s->run->trace.at[x->task].deadline ? OUTCOME_MET : OUTCOME_LATE);
        x->task = CHIP_NONE;
    }
}

static inline void step_arrivals(Stepwise *s) {
    for (uint32_t i = 0; i < s->run->trace.n; i++) {
        const ChipRequest *r = &s->run->trace.at[i];
        if (r->arrival == s->now) s->tasks[i].arrived = true;
        if (s->run->setup.firm && s->tasks[i].arrived && !s->tasks[i].over && s->now >= r->deadline)
            step_answer(s, i, OUTCOME_REJECTED);
    }
}

static inline void step_starts(Stepwise *s) {
    for (uint32_t i = 0; i < s->run->trace.n; i++) {
        StepTask *t = &s->tasks[i];
        if (!t->arrived || t->over || t->unit != CHIP_NONE) continue;
        for (uint32_t u = 0; u < s->run->setup.n_units; u++) {
            const ChipCost *c = chip_cost(step_model(s, i), t->layer, s->run->setup.kind_of[u]);
            if (s->units[u].task != CHIP_NONE || !isfinite(c->ns)) continue;
            double b = (double)c->bytes_ns, asks = fmin(b, (double)s->cap);
            s->units[u] = (StepUnit){.task = i,
                                     .begin = s->now + s->run->controller.dispatch_ns,
                                     .ns = (double)c->ns,
                                     .asks = asks,
                                     .part = b > 0 ? asks / b : 1};
            t->unit = u;
            break;
        }
    }
}

// The water-filling level, by bisection.
static inline double step_level(const Stepwise *s, double bytes) {
    double lo = 0, hi = bytes;
    for (int i = 0; i < 60; i++) {
        double level = (lo + hi) / 2, sum = 0;
        for (uint32_t u = 0; u < s->run->setup.n_units; u++)
            if (s->units[u].task != CHIP_NONE && s->now >= s->units[u].begin)
                sum += fmin(s->units[u].asks, level);
        *(sum > bytes ? &hi : &lo) = level;
    }
    return (lo + hi) / 2;
}

static inline void step_progress(Stepwise *s) {
    double sum = 0, bytes = (double)s->run->setup.bytes_ns, level = 0;
    for (uint32_t u = 0; u < s->run->setup.n_units; u++)
        if (s->units[u].task != CHIP_NONE && s->now >= s->units[u].begin) sum += s->units[u].asks;
    if (s->run->sharing == CHIP_MAX_MIN) level = step_level(s, bytes);
    for (uint32_t u = 0; u < s->run->setup.n_units; u++) {
        StepUnit *x = &s->units[u];
        if (x->task == CHIP_NONE || s->now < x->begin) continue;
        if (s->run->sharing == CHIP_MAX_MIN)
            x->done += x->asks > 0 ? x->part * fmin(1, level / x->asks) : 1;
        else
            x->done += x->part * fmin(1, sum > 0 ? bytes / sum : 1);
    }
}

static inline void stepwise(const ChipRun *run, float cap, Stepwise *s) {
    *s = (Stepwise){.run = run, .cap = cap};
    for (uint32_t u = 0; u < CHIP_UNITS; u++) s->units[u].task = CHIP_NONE;
    for (uint32_t i = 0; i < TEST_PACKAGE_REQUESTS; i++) s->tasks[i].unit = CHIP_NONE;
    for (; s->over < run->trace.n; s->now++) {
        step_ends(s);
        step_arrivals(s);
        step_starts(s);
        step_progress(s);
    }
}

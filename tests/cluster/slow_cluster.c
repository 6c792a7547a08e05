#include "tests/cluster/slow_cluster.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/profile/profiles.h"
#include "tests/cluster/slow_profile.h"

typedef struct SlowJob {
    uint32_t     n, class_, changes, cores_milli, memory_mib;
    ClusterSlice slices[PLAN_CHECKER_SLICES];
    long double  left, owed, rate;
} SlowJob;

typedef struct Slow {
    const ClusterRun *run;
    SlowJob          *jobs;  // [n]
    uint32_t         *running, n_running;
    uint32_t          most_gpus;
    SlowCluster       out;
} Slow;

static void begin(Slow *s, Arena *arena) {
    const ClusterRun *run = s->run;
    uint64_t          gpus = 0, cores = 0, memory = 0;
    for (uint32_t i = 0; i < run->servers->n; i++) {
        const ServerSpec *x = &run->servers->at[i];
        gpus += x->gpus;
        cores += x->cores_milli;
        memory += x->memory_mib;
        if (x->gpus > s->most_gpus) s->most_gpus = x->gpus;
    }
    s->jobs = arena_new(arena, SlowJob, run->jobs->n);
    s->running = arena_new(arena, uint32_t, run->jobs->n);
    for (uint32_t i = 0; i < run->jobs->n; i++) {
        const Job *j = &run->jobs->at[i];
        uint64_t   milli = (uint64_t)j->gpus * j->gpu_milli;
        s->jobs[i] = (SlowJob){.left = j->work,
                               .cores_milli = j->cores_milli,
                               .memory_mib = j->memory_mib,
                               .class_ = run->class_of == NULL ? CLUSTER_NONE : run->class_of[i]};
        if (j->cores_milli == 0) s->jobs[i].cores_milli = (uint32_t)(cores * milli / gpus / 1000);
        if (j->memory_mib == 0) s->jobs[i].memory_mib = (uint32_t)(memory * milli / gpus / 1000);
    }
}

static const ClusterProfile *profile_of(const Slow *s, const SlowJob *x) {
    return &s->run->profiles->at[x->class_];
}

// Below the table's range and the share the rate is proportional.
static double lack(double has, double share, double least) {
    double need = fmin(share, least);
    return need > 0 ? fmin(1, has / need) : 1;
}

// The job's default demand stands for the share of its class.
static double fed(const ClusterProfiles *all, const SlowJob *x, const Job *j,
                  const ClusterSlice *at) {
    const ClusterProfile *p = &all->at[x->class_];
    double                n = at->gpus;
    double                cores = floor((double)x->cores_milli * n / j->gpus);
    double                memory = floor((double)x->memory_mib * n / j->gpus);
    if (at->cores_milli == (uint32_t)cores && at->memory_mib == (uint32_t)memory) return 1;
    double c = x->cores_milli > 0
                   ? all->share_cores * (at->cores_milli / n) * j->gpus / x->cores_milli
                   : at->cores_milli / n / 1e3;
    double r = x->memory_mib > 0 ? all->share_gb * (at->memory_mib / n) * j->gpus / x->memory_mib
                                 : at->memory_mib / n / 1024;
    double now = slow_profile_grid(&p->speed, c, r);
    double usual = slow_profile_grid(&p->speed, all->share_cores, all->share_gb);
    return now / usual * lack(c, all->share_cores, p->speed.row[0]) *
           lack(r, all->share_gb, p->speed.column[0]);
}

static double on_type(const Slow *s, const ClusterProfile *p, const ClusterSlice *at) {
    const char *name = s->run->servers->at[at->server].gpu_type;
    for (uint32_t t = 0; t < s->run->profiles->n_types; t++)
        if (strcmp(s->run->profiles->type[t], name) == 0 && p->iteration_s[t] > 0)
            return p->iteration_s[0] / p->iteration_s[t];
    return 1;
}

static double spread(const ClusterProfile *p, uint32_t gpus, uint32_t servers) {
    return servers == 1 ? 1 : slow_profile_grid(&p->spread, gpus, servers);
}

static double law(double gpus) { return gpus / (0.95 + 0.05 * gpus); }

static double scaling(const ClusterProfile *p, double gpus) {
    return p->scaling.rows == 0 ? law(gpus) : slow_profile_grid(&p->scaling, gpus, 1);
}

static bool holds(const SlowJob *x, uint32_t server, uint32_t gpu) {
    for (uint32_t i = 0; i < x->n; i++)
        if (x->slices[i].server == server && (x->slices[i].mask >> gpu & 1) != 0) return true;
    return false;
}

static double beside(const Slow *s, uint32_t job, uint32_t server, uint32_t gpu) {
    const SlowJob *x = &s->jobs[job];
    double         speed = 1, n = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const SlowJob *y = &s->jobs[s->running[i]];
        if (x == y || y->class_ == CLUSTER_NONE || !holds(y, server, gpu)) continue;
        speed *= profile_pair(s->run->profiles, x->class_, y->class_);
        n++;
    }
    bool fits = speed > 0;
    assert_true(fits || s->run->jobs->at[job].gpu_milli < CLUSTER_WHOLE_GPU);
    return n > 1 || !fits ? fmax(speed, 1 / (n + 1)) : speed;
}

static double rate_of(const Slow *s, uint32_t job) {
    const SlowJob *x = &s->jobs[job];
    const Job     *j = &s->run->jobs->at[job];
    double         least = INFINITY, company = 1, has = 0, gpus = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        has += (double)x->slices[i].gpus * x->slices[i].gpu_milli;
        gpus += x->slices[i].gpus;
    }
    if (j->gpus == 0) return 1;
    if (x->class_ == CLUSTER_NONE) return has / (gpus * j->gpu_milli) * law(gpus) / law(j->gpus);
    const ClusterProfile *p = profile_of(s, x);
    for (uint32_t i = 0; i < x->n; i++) {
        least =
            fmin(least, fed(s->run->profiles, x, j, &x->slices[i]) * on_type(s, p, &x->slices[i]));
        for (uint32_t g = 0; g < CLUSTER_GPUS; g++)
            if ((x->slices[i].mask >> g & 1) != 0)
                company = fmin(company, beside(s, job, x->slices[i].server, g));
    }
    double now = scaling(p, gpus) * spread(p, (uint32_t)gpus, x->n);
    double usual =
        scaling(p, j->gpus) * spread(p, j->gpus, (uint32_t)ceil((double)j->gpus / s->most_gpus));
    return least * now / usual * company;
}

static void pass(Slow *s, long double ns) {
    for (uint32_t i = 0; i < s->n_running; i++) {
        SlowJob    *x = &s->jobs[s->running[i]];
        long double restart = fminl(ns, x->owed);
        x->owed -= restart;
        x->left -= (ns - restart) * x->rate;
    }
}

static void leave(Slow *s, uint32_t at) {
    s->jobs[s->running[at]].n = 0;
    s->running[at] = s->running[--s->n_running];
}

static void finish(Slow *s, uint32_t at) {
    const SlowJob *x = &s->jobs[s->running[at]];
    double         last = fmax(1, (double)x->rate);
    double         off = ((double)fabsl(x->left + x->owed) - last) / x->changes;
    if (off > s->out.worst) s->out.worst = off;
    s->out.ended++;
    leave(s, at);
}

static void take(Slow *s, const CheckedStep *step) {
    SlowJob *x = &s->jobs[step->job];
    if (step->verb == CLUSTER_PREEMPT) {
        uint32_t at = 0;
        double   own = x->class_ == CLUSTER_NONE ? 0 : profile_of(s, x)->restart_s * 1e9;
        bool     wide = s->run->jobs->at[step->job].gpus > s->most_gpus;
        while (s->running[at] != step->job) at++;
        leave(s, at);
        x->owed += own > 0 ? (TimeNs)(own + 0.5)
                           : (wide ? s->run->params.restart_wide : s->run->params.restart);
        x->changes++;
        return;
    }
    if (x->n == 0) s->running[s->n_running++] = step->job;
    x->n = step->n_slices;
    memcpy(x->slices, step->slices, x->n * sizeof *x->slices);
}

static void look_up(Slow *s) {
    for (uint32_t i = 0; i < s->n_running; i++) {
        SlowJob *x = &s->jobs[s->running[i]];
        double   rate = rate_of(s, s->running[i]);
        if (fabs(rate - (double)x->rate) > 1e-12) s->out.changes++, x->changes++;
        x->rate = rate;
        s->out.least_rate = fmin(s->out.least_rate, rate);
        s->out.most_rate = fmax(s->out.most_rate, rate);
    }
}

SlowCluster slow_cluster_follow(const ClusterRun *run, const PlanChecker *checker,
                                const ClusterResult *r, Arena *arena) {
    Slow     s = {.run = run, .out = {.least_rate = 1, .most_rate = 1}};
    uint32_t next = 0;
    begin(&s, arena);
    for (TimeNs now = 0; s.out.ended < r->n;) {
        TimeNs at = next < checker->n ? checker->log[next].at : INT64_MAX;
        for (uint32_t i = 0; i < s.n_running; i++)
            if (r->ends[s.running[i]].finish < at) at = r->ends[s.running[i]].finish;
        assert_true(at < INT64_MAX);
        pass(&s, at - now);
        now = at;
        for (uint32_t i = s.n_running; i-- > 0;)
            if (r->ends[s.running[i]].finish == now) finish(&s, i);
        for (; next < checker->n && checker->log[next].at == now; next++)
            take(&s, &checker->log[next]);
        look_up(&s);
    }
    return s.out;
}

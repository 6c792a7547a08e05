#include "node/admission.h"

#include <math.h>

enum {
    PLAN_NS = 10000000,
    MEMORY_NS = 100000000,
    LOST_NS = 1000000000,
    RESULTS = 32,
    CORRECT_NS = 40000000
};

static const double most_share = 0.95, least_share = 0.6;  // bounds of AdmissionTenant share
static const double burst = 0.5;                           // bucket size in targets
static const double learn = 0.1;                           // learning rate of measured work
static const double allowed = 0.05;                        // tolerated share of broken promises
static const double least = 0.05;   // lower bound of the available share of a core
static const double own_ns = 5000;  // engine overhead per request

Err admission_init(Admission *a, uint32_t tenants, Arena *arena) {
    *a = (Admission){.n = tenants, .cores = 1, .share = most_share};
    a->of = arena_try_new(arena, AdmissionTenant, tenants);
    return a->of != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for %u tenants", tenants);
}

static void weigh(AdmissionTenant *t) { t->work_ns = t->alone_ns * t->slow + own_ns; }

void admission_join(Admission *a, uint32_t tenant, double alone_ns, TimeNs qos_ns, uint32_t kept) {
    a->of[tenant] = (AdmissionTenant){
        .alone_ns = alone_ns, .slow = 1, .qos_ns = qos_ns, .kept = kept, .saved_ns = INFINITY};
    weigh(&a->of[tenant]);
    a->planned = 0;
}

void admission_leave(Admission *a, uint32_t tenant) { a->of[tenant] = (AdmissionTenant){0}; }

void admission_note(Admission *a, uint32_t tenant, double alone_ns, double core_ns,
                    double stolen_ns) {
    AdmissionTenant *t = &a->of[tenant];
    double           lost = fmin(fmax(stolen_ns, 0), core_ns), own = core_ns - lost;
    a->spent_ns += core_ns;
    a->stolen_ns += lost;
    if (!(alone_ns > 0) || !(t->alone_ns > 0)) return;
    t->slow += learn * fmin(alone_ns / t->alone_ns, 1) * (own / alone_ns - t->slow);
    weigh(t);
}

// Cores that may be promised: those available after time stolen by other processes.
static double promised(const Admission *a) {
    double ours = a->spent_ns > 0 ? 1 - a->stolen_ns / a->spent_ns : 1;
    return a->share * a->cores * fmax(ours, least);
}

// Decays the offered load and refills the token buckets, up to what can still meet the target.
static void catch_up(AdmissionTenant *t, TimeNs now) {
    double passed = (double)(now - t->at), most = t->part * burst * (double)t->qos_ns;
    t->at = now;
    if (!(passed > 0)) return;
    t->wants *= exp(-passed / MEMORY_NS);
    t->saved_ns = fmin(t->saved_ns + t->part * passed, fmax(most, 2 * t->work_ns));
}

// Max-min division: tenants that want no more than an equal part of the rest get it, repeatedly;
// each gets at least its reserved cores.
static double level_off(const Admission *a) {
    double level = 0;
    for (uint32_t greedy = UINT32_MAX;;) {
        double   left = promised(a);
        uint32_t n = 0;
        for (uint32_t i = 0; i < a->n; i++) {
            const AdmissionTenant *t = &a->of[i];
            if (t->wants <= fmax(level, t->kept))
                left -= t->wants;
            else if (t->kept > level)
                left -= t->kept;
            else
                n++;
        }
        if (n == 0 || n >= greedy) return level;
        level = fmax(left, 0) / n;
        greedy = n;
    }
}

void admission_result(Admission *a, bool broken) {
    a->ended++;
    a->waited += broken;
}

// A policy may not use all cores, or the system may keep some: broken
// promises reveal it.
static void correct(Admission *a, TimeNs now) {
    if (a->ended < RESULTS || now < a->corrected) return;
    double broken = (double)a->waited / a->ended;
    if (broken > allowed) a->share *= 1 - fmin(broken, 0.05);
    if (broken < allowed / 2) a->share += 0.01;
    a->corrected = now + CORRECT_NS;
    a->share = fmin(fmax(a->share, least_share), most_share);
    a->ended = a->waited = 0;
}

static void plan(Admission *a, TimeNs now) {
    double wanted = 0, fade = exp(-PLAN_NS / (double)LOST_NS);
    a->planned = now + PLAN_NS;
    a->spent_ns *= fade;
    a->stolen_ns *= fade;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->of[i].work_ns == 0) continue;
        catch_up(&a->of[i], now);
        wanted += a->of[i].wants;
    }
    correct(a, now);
    a->crowded = wanted > promised(a);
    double level = a->crowded ? level_off(a) : INFINITY;
    for (uint32_t i = 0; i < a->n; i++) a->of[i].part = fmax(level, a->of[i].kept);
}

bool admission_allows(Admission *a, uint32_t tenant, TimeNs now) {
    AdmissionTenant *t = &a->of[tenant];
    if (now >= a->planned) plan(a, now);
    catch_up(t, now);
    t->wants += t->work_ns / MEMORY_NS;
    if (!a->crowded || t->wants <= t->part) return true;
    if (t->saved_ns < t->work_ns) return false;
    t->saved_ns -= t->work_ns;
    return true;
}

#include "bench/tenants/rounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/peak.h"

enum { OWN = CONTEST_EQUALS, LOADS = CONTEST_EQUALS + 1, LEAST_REQUESTS = 80 };

static bool is_peer(const Contender *c) { return strncmp(c->name, "ort_", 4) == 0; }

// The shortest that contenders of one kind take for a network.
static TimeNs best_alone(const Rounds *r, uint32_t tenant, bool peers) {
    TimeNs best = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (is_peer(r->contenders[i]) == peers && (best == 0 || r->alone[i][tenant] < best))
            best = r->alone[i][tenant];
    return best;
}

Err rounds_open(Rounds *r) {
    for (uint32_t i = 0; i < r->n; i++)
        TRY(booth_start(&r->booths[i], r->contenders[i], &r->terms));
    for (uint32_t i = 0; i < r->n; i++) TRY(booth_alone(&r->booths[i], r->terms.n, r->alone[i]));
    for (uint32_t t = 0; t < r->terms.n; t++) {
        TimeNs ours = best_alone(r, t, false), theirs = best_alone(r, t, true);
        r->qos_ns[t] = mix_qos(ours > theirs ? ours : theirs, r->rules->slack);
        (void)fprintf(stderr, "%s alone: ours %.2f ms, ONNX Runtime %.2f ms; QoS %.2f ms\n",
                      r->terms.names[t], (double)ours / 1e6, (double)theirs / 1e6,
                      (double)r->qos_ns[t] / 1e6);
    }
    return ERR_OK;
}

void rounds_close(Rounds *r) {
    for (uint32_t i = 0; i < r->n; i++) booth_end(&r->booths[i]);
}

static Trial trial_of(const Rounds *r, double rate, uint64_t seed) {
    Trial  t = {.rate = rate, .seed = seed};
    double n = rate * r->rules->seconds;
    t.n = n > LEAST_REQUESTS ? (uint32_t)n : LEAST_REQUESTS;
    t.skip = t.n / 20;
    memcpy(t.qos_ns, r->qos_ns, sizeof t.qos_ns);
    return t;
}

static PeakRule peak_rule(const Rounds *r) {
    PeakRule rule = PEAK_RULE_DEFAULT;
    double   mean_s = 0;
    for (uint32_t t = 0; t < r->terms.n; t++)
        mean_s += (double)best_alone(r, t, false) / 1e9 / r->terms.n;
    rule.target = r->rules->target;
    rule.tolerance = r->rules->tolerance;
    rule.start = 0.4 / mean_s;
    rule.least = rule.start / 64;
    rule.most = rule.start * 64;
    rule.trials = 20;
    return rule;
}

// One trial of each search at a time; who begins changes from round to round.
static Err search_seed(Rounds *r, uint64_t seed, Peak *peaks, Progress *p) {
    PeakRule rule = peak_rule(r);
    bool     done[ROUNDS_CONTENDERS] = {false};
    uint32_t left = r->n;
    for (uint32_t i = 0; i < r->n; i++) peak_begin(&peaks[i], &rule);
    for (uint32_t turn = 0; left > 0; turn++) {
        for (uint32_t k = 0; k < r->n; k++) {
            uint32_t i = (k + turn) % r->n;
            double   rate = 0;
            Tally    tally;
            if (done[i]) continue;
            done[i] = !peak_next(&peaks[i], &rate);
            if (done[i]) {
                left--;
                progress_step(p, 1);
                continue;
            }
            Trial t = trial_of(r, rate, seed);
            TRY(booth_try(&r->booths[i], &t, &tally, NULL, NULL));
            peak_tell(&peaks[i], rate, (double)tally.met / tally.n);
        }
    }
    return ERR_OK;
}

static void keep_trials(const Peak *p, ContestEntry *e) {
    for (uint32_t k = 0; k < p->n; k++)
        e->trials[e->n_trials++] = (ContestTrial){p->trials[k].rate, p->trials[k].hit_rate};
}

static Err search(Rounds *r, Progress *p, Arena *a, ContestMix *out) {
    uint32_t seeds = r->rules->seeds;
    double  *rates = arena_new(a, double, r->n *seeds);
    Peak    *peaks = arena_new(a, Peak, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        out->entries[i].policy = r->contenders[i]->name;
        out->entries[i].trials = arena_new(a, ContestTrial, seeds * PEAK_TRIALS);
    }
    for (uint32_t s = 0; s < seeds; s++) {
        TRY(search_seed(r, s + 1, peaks, p));
        for (uint32_t i = 0; i < r->n; i++) {
            rates[i * seeds + s] = peak_rate(&peaks[i]);
            keep_trials(&peaks[i], &out->entries[i]);
        }
    }
    for (uint32_t i = 0; i < r->n; i++)
        out->entries[i].qps = stats_mean(rates + (size_t)i * seeds, seeds);
    return ERR_OK;
}

// Means over the seeds, added up trial by trial.
static void add_own(ContestEntry *e, const Tally *t, double part) {
    e->mean_ms += t->mean_ms * part;
    e->p99_ms += t->p99_ms * part;
    e->hit_rate += part * t->met / t->n;
    e->conflict_rate += t->conflict_rate * part;
    e->core_use += t->core_use * part;
}

static Err run_load(Rounds *r, uint32_t load, uint64_t seed, Arena *a, ContestMix *m) {
    double part = 1.0 / r->rules->seeds;
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t      i = (k + (uint32_t)seed) % r->n;
        ContestEntry *e = &m->entries[i];
        double        rate = load == OWN ? r->rules->calm * e->qps.mean : m->equal[load];
        Tally         tally;
        if (!(rate > 0)) continue;
        Trial   t = trial_of(r, rate, seed);
        double *ms = load == 0 && seed == 1 ? arena_new(a, double, t.n) : NULL;
        TRY(booth_try(&r->booths[i], &t, &tally, ms, ms != NULL ? &e->n_latencies : NULL));
        if (ms != NULL) e->latencies_ms = ms;
        if (load == OWN) {
            add_own(e, &tally, part);
        } else {
            e->equal_ms[load] += tally.mean_ms * part;
            e->equal_hit[load] += part * tally.met / tally.n;
        }
    }
    return ERR_OK;
}

Err rounds_run(Rounds *r, const char *baseline, Progress *p, Arena *a, ContestMix *out) {
    Contest only = {.baseline = baseline};
    char   *about = arena_str(a, "QoS:");
    for (uint32_t t = 0; t < r->terms.n; t++)
        about = arena_printf(a, "%s%s %s %.4g ms", about, t > 0 ? "," : "", r->terms.names[t],
                             (double)r->qos_ns[t] / 1e6);
    out->about = about;
    out->entries = arena_new(a, ContestEntry, r->n);
    out->n_entries = r->n;
    TRY(search(r, p, a, out));
    double of = contest_baseline(&only, out)->qps.mean;
    for (uint32_t i = 0; i < CONTEST_EQUALS; i++)
        out->equal[i] = of > 0 ? of * r->rules->equal_share[i] : NAN;
    for (uint32_t s = 1; s <= r->rules->seeds; s++)
        for (uint32_t load = 0; load < LOADS; load++) {
            TRY(run_load(r, load, s, a, out));
            progress_step(p, 1);
        }
    return ERR_OK;
}

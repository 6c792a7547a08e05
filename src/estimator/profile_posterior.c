#include "estimator/profile_posterior.h"

#include <math.h>

#include "contract/rate.h"

enum { POINTS = 6 };

// Amounts, relative to the default share, at which profiles are compared.
static const double points[POINTS] = {0.34, 0.67, 1, 1.5, 2, 3};

static double squared_distance(const ClusterProfiles *s, uint32_t a, uint32_t b) {
    double sum = 0;
    for (uint32_t r = 0; r < POINTS; r++)
        for (uint32_t c = 0; c < POINTS; c++) {
            double cores = points[r] * s->share_cores, gb = points[c] * s->share_gb;
            double x = log(fmax(profile_speed(&s->at[a], cores, gb), 1e-3)) -
                       log(fmax(profile_speed(&s->at[b], cores, gb), 1e-3));
            sum += x * x / (POINTS * POINTS);
        }
    for (uint32_t k = 0; k < s->n; k++) {
        double x = fmax(profile_pair(s, a, k), 0.1), y = fmax(profile_pair(s, b, k), 0.1);
        sum += log(x / y) * log(x / y) / s->n;
    }
    return sum;
}

Err profile_posterior_init(ProfilePosterior *p, const HypothesisTable *table,
                           const PosteriorParams *params, Arena *a) {
    *p = (ProfilePosterior){.params = *params, .table = *table};
    p->distance = arena_try_new(a, double, (size_t)table->n * table->n_classes);
    p->names = arena_try_new(a, PosteriorGroup, POSTERIOR_GROUPS);
    p->tenants = arena_try_new(a, PosteriorGroup, POSTERIOR_GROUPS);
    if (p->distance == NULL || p->names == NULL || p->tenants == NULL)
        return err_set(ERR_LIMIT, "no memory for hypotheses about profiles");
    for (uint32_t i = 0; i < table->n; i++)
        for (uint32_t k = 0; k < table->n_classes; k++)
            p->distance[(size_t)i * table->n_classes + k] = squared_distance(table->profiles, i, k);
    return ERR_OK;
}

static uint32_t slot_of(const PosteriorGroup *groups, uint64_t key) {
    uint32_t at = (uint32_t)(key % POSTERIOR_GROUPS), n = 0;
    while (groups[at].key != key && groups[at].key != 0 && n++ < POSTERIOR_GROUPS)
        at = (at + 1) % POSTERIOR_GROUPS;
    return at;
}

const PosteriorRecord *profile_posterior_find(const PosteriorGroup *groups, uint64_t key) {
    uint32_t at = slot_of(groups, key);
    return key != 0 && groups[at].key == key ? &groups[at].record : NULL;
}

PosteriorRecord *profile_posterior_group(PosteriorGroup *groups, uint64_t key) {
    uint32_t at = slot_of(groups, key);
    if (key == 0 || (groups[at].key != key && groups[at].key != 0)) return NULL;
    groups[at].key = key;
    return &groups[at].record;
}

static double library_weight(const HypothesisTable *t) {
    double all = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->log_power[i] == 0) all += t->profiles->at[t->base[i]].weight;
    return all;
}

static double power_weight(const ProfilePosterior *p, uint32_t i) {
    double z = p->table.log_power[i] / p->params.off;
    return exp(-z * z / 2);
}

static void normalise(double *w, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += w[i];
    for (uint32_t i = 0; i < n; i++) w[i] = sum > 0 ? w[i] / sum : 1.0 / n;
}

// Before any measurement of the job: its name if that is known, and its tenant's jobs.
static void prior(const ProfilePosterior *p, const PosteriorQuery *q, double *w) {
    const HypothesisTable *t = &p->table;
    const PosteriorRecord *of = profile_posterior_find(p->tenants, q->traits.tenant);
    double                 all = library_weight(t);
    for (uint32_t i = 0; i < t->n; i++)
        w[i] = (all > 0 ? t->profiles->at[t->base[i]].weight / all : 1) * power_weight(p, i);
    normalise(w, t->n);
    for (uint32_t i = 0; of != NULL && i < t->n; i++) w[i] += p->params.tenant * of->log_like[i];
    if (q->class == PROFILE_NONE) return;
    for (uint32_t i = 0; i < t->n; i++) {
        bool named = t->base[i] == q->class;
        w[i] = named ? power_weight(p, i) : p->params.other * w[i] / (1 + (of != NULL ? of->n : 0));
    }
}

void profile_posterior_weights(const ProfilePosterior *p, const PosteriorQuery *q,
                               double w[POSTERIOR_MOST]) {
    const PosteriorRecord *named = profile_posterior_find(p->names, q->traits.name);
    const PosteriorRecord *like = named != NULL ? named : q->own;
    double                 most = -INFINITY;
    prior(p, q, w);
    if (like == NULL) {
        normalise(w, p->table.n);
        return;
    }
    for (uint32_t i = 0; i < p->table.n; i++)
        most = fmax(most, like->log_like[i] + log(w[i] + 1e-12));
    for (uint32_t i = 0; i < p->table.n; i++)
        w[i] = exp(like->log_like[i] + log(w[i] + 1e-12) - most);
    normalise(w, p->table.n);
}

static double predicted(const RateMeasurement *m, uint32_t class) {
    ClusterJob j = *m->job;
    j.class = class;
    double alone = rate_alone(m->setup, &j, m->slices, m->n_slices);
    double share = profile_share(m->setup->profiles, class, m->corunners, m->n_corunners);
    if (!(share > 0)) share = 1.0 / (1.0 + m->n_corunners);
    return fmax(alone * share, 1e-4);
}

static double spread_of(const PosteriorParams *p) {
    return sqrt(p->noise * p->noise + p->misfit * p->misfit);
}

// Squared error of a measurement by the hypotheses that now fit best, in units of its noise.
static double left_over(const ProfilePosterior *p, const PosteriorQuery *q,
                        const PosteriorRecord *own, double log_rate, const double *of) {
    double         w[POSTERIOR_MOST], mean = 0;
    PosteriorQuery now = {q->traits, q->class, own};
    profile_posterior_weights(p, &now, w);
    for (uint32_t i = 0; i < p->table.n; i++) mean += w[i] * of[i];
    double z = (log_rate - mean) / spread_of(&p->params);
    return fmin(z * z, 100);
}

static void add_misfit(PosteriorRecord *r, double z2) {
    r->misfit += z2;
    r->n++;
}

// Where measurements miss every hypothesis, predictions are less certain, too.
static double widened(const ProfilePosterior *p, const PosteriorQuery *q) {
    const PosteriorRecord *named = profile_posterior_find(p->names, q->traits.name);
    const PosteriorRecord *r = named != NULL ? named : q->own;
    double                 own = spread_of(&p->params);
    if (r == NULL || r->n == 0) return own;
    double by = (p->params.degrees + r->misfit) / (p->params.degrees + r->n);
    return own * sqrt(fmax(by, 1));
}

bool profile_posterior_measured(ProfilePosterior *p, const PosteriorQuery *q,
                                const RateMeasurement *m, PosteriorRecord *own) {
    double least = INFINITY, most = -INFINITY, of[POSTERIOR_MOST];
    if (!(m->rate > 0)) return false;
    for (uint32_t i = 0; i < p->table.n; i++) {
        of[i] = log(predicted(m, i));
        least = fmin(least, of[i]);
        most = fmax(most, of[i]);
    }
    if (most - least < p->params.noise / 2) return false;
    PosteriorRecord *named = profile_posterior_group(p->names, q->traits.name);
    for (uint32_t i = 0; i < p->table.n; i++) {
        double z = (log(m->rate) - of[i]) / spread_of(&p->params);
        double like = -(p->params.degrees + 1) / 2 * log1p(z * z / p->params.degrees);
        own->log_like[i] += like;
        if (named != NULL) named->log_like[i] += like;
    }
    double z2 = left_over(p, q, own, log(m->rate), of);
    add_misfit(own, z2);
    if (named != NULL) add_misfit(named, z2);
    return true;
}

// Only jobs with measurements of their own tell what a tenant runs.
void profile_posterior_ended(ProfilePosterior *p, const PosteriorQuery *q) {
    double           w[POSTERIOR_MOST];
    PosteriorRecord *of = profile_posterior_group(p->tenants, q->traits.tenant);
    if (of == NULL || q->own == NULL || q->own->n == 0) return;
    profile_posterior_weights(p, q, w);
    for (uint32_t i = 0; i < p->table.n; i++) of->log_like[i] += w[i];
    of->n++;
}

uint32_t profile_posterior_class(const ProfilePosterior *p, const PosteriorQuery *q,
                                 double *log_sd) {
    double   w[POSTERIOR_MOST], least = INFINITY;
    uint32_t best = 0, n = p->table.n_classes;
    profile_posterior_weights(p, q, w);
    for (uint32_t k = 0; k < n; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < p->table.n; i++) sum += w[i] * p->distance[(size_t)i * n + k];
        if (sum >= least) continue;
        least = sum;
        best = k;
    }
    if (log_sd != NULL) *log_sd = sqrt(least);
    return best;
}

RateBelief profile_posterior_rate(const ProfilePosterior *p, const PosteriorQuery *q,
                                  const RateMeasurement *m) {
    double w[POSTERIOR_MOST], mean = 0, square = 0, own = widened(p, q);
    profile_posterior_weights(p, q, w);
    for (uint32_t i = 0; i < p->table.n; i++) {
        double x = log(predicted(m, i));
        mean += w[i] * x;
        square += w[i] * x * x;
    }
    return (RateBelief){exp(mean), sqrt(fmax(square - mean * mean, 0) + own * own)};
}

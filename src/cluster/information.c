#include "cluster/information.h"

#include <math.h>
#include <string.h>

#include "base/settings.h"
#include "cluster/profile/profile_variants.h"
#include "estimator/profile_posterior.h"

#define INFORMATION_SETTINGS(X)                                                                    \
    X(durations, string, "exact", 1, 16, "durations: exact, estimated or unknown")                 \
    X(error, double, 1.0, 0.0, 10.0, "estimated durations are off by a factor of e^error")         \
    X(profiles, string, "exact", 1, 16, "profiles: exact, library or unknown")                     \
    X(sigma, double, 0.4, 0.0, 3.0, "true profiles are off the library by a power of e^sigma")     \
    X(rates, string, "exact", 1, 16, "rates: exact or measured")                                   \
    X(delay_s, double, 30.0, 0.0, 86400.0, "seconds from a change of a rate to its measurement")   \
    X(noise, double, 0.03, 0.0, 1.0, "measured rates are off by a factor of e^noise")              \
    X(guard, double, 0.8, 0.0, 1.0, "default demand below this part of a believed rate; 0: never") \
    X(guard_times, int, 2, 1, 100, "measurements in a row that are too low for the guard to act")

typedef struct InformationSettings {
    INFORMATION_SETTINGS(SETTING_FIELD)
} InformationSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(InformationSettings, __VA_ARGS__)
    INFORMATION_SETTINGS(X)
#undef X
};

static const struct {
    const char *name, *durations, *profiles, *rates;
} sets[] = {{"perfect", "exact", "exact", "exact"},
            {"realistic", "unknown", "library", "measured"},
            {"blind", "unknown", "unknown", "measured"}};

enum { SETS = sizeof sets / sizeof *sets };

static Err find(const char *key, const char *value, const char *const *words, uint32_t n,
                uint32_t *out) {
    for (*out = 0; *out < n; (*out)++)
        if (strcmp(words[*out], value) == 0) return ERR_OK;
    return err_set(ERR_ARG, "--information: %s=%.40s: choose %s, %s%s%s", key, value, words[0],
                   words[1], n > 2 ? " or " : "", n > 2 ? words[2] : "");
}

static const char *const durations[] = {"exact", "estimated", "unknown"};
static const char *const profiles[] = {"exact", "library", "unknown"};
static const char *const rates[] = {"exact", "measured"};

static Err resolve(const InformationSettings *s, Information *out) {
    uint32_t d = 0, p = 0, r = 0;
    TRY(find("durations", s->durations, durations, 3, &d));
    TRY(find("profiles", s->profiles, profiles, 3, &p));
    TRY(find("rates", s->rates, rates, 2, &r));
    *out = (Information){.durations = (KnownDurations)d,
                         .profiles = (KnownProfiles)p,
                         .rates = (KnownRates)r,
                         .error = d == DURATIONS_ESTIMATED ? s->error : 0,
                         .sigma = p == PROFILES_EXACT ? 0 : s->sigma,
                         .noise = r == RATES_EXACT ? 0 : s->noise,
                         .delay = r == RATES_EXACT ? 0 : (TimeNs)(s->delay_s * 1e9),
                         .guard = p == PROFILES_EXACT || r == RATES_EXACT ? 0 : s->guard,
                         .guard_times = (uint32_t)s->guard_times};
    return ERR_OK;
}

static Err set_word(const char *word, bool first, Settings *s) {
    InformationSettings *v = s->values;
    if (strchr(word, '=') != NULL) {
        Err e = settings_set(s, word);
        return e == ERR_OK ? e : err_add(e, "--information");
    }
    for (uint32_t i = 0; first && i < SETS; i++) {
        if (strcmp(sets[i].name, word) != 0) continue;
        v->durations = sets[i].durations;
        v->profiles = sets[i].profiles;
        v->rates = sets[i].rates;
        return ERR_OK;
    }
    return err_set(ERR_ARG,
                   "--information %.40s: choose perfect, realistic or blind, then settings such as "
                   "profiles=library,sigma=0.2",
                   word);
}

Err information_read(const char *text, Arena *a, Information *out) {
    InformationSettings values;
    Settings            s = {rows, sizeof rows / sizeof *rows, &values, a};
    settings_default(&s);
    bool first = true;
    for (size_t n = 0; text != NULL && *text != '\0'; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        TRY(set_word(arena_printf(a, "%.*s", (int)n, text), first, &s));
        first = false;
    }
    return resolve(&values, out);
}

static const char *const estimators[] = {[ESTIMATOR_OFF] = "off",
                                         [ESTIMATOR_OWN] = "own",
                                         [ESTIMATOR_SHARED] = "shared",
                                         [ESTIMATOR_ATTENTION] = "attention",
                                         [ESTIMATOR_BOTH] = "both"};

Err information_set_estimator(Information *x, const char *word) {
    enum { KINDS = sizeof estimators / sizeof *estimators };
    if (word != NULL && strcmp(word, "on") == 0) word = "shared";
    for (uint32_t i = 0; i < KINDS; i++) {
        if (strcmp(estimators[i], word != NULL ? word : "off") != 0) continue;
        x->estimator = (EstimatorKind)i;
        return ERR_OK;
    }
    return err_set(ERR_ARG, "--estimator %.40s: choose off, own, shared, attention or both", word);
}

const char *information_text(const Information *x, Arena *a) {
    char *d = arena_printf(a, "durations %s", durations[x->durations]);
    char *p = arena_printf(a, "profiles %s", profiles[x->profiles]);
    char *r = arena_printf(a, "rates %s", rates[x->rates]);
    if (x->durations == DURATIONS_ESTIMATED) d = arena_printf(a, "%s (e^%.3g)", d, x->error);
    if (x->profiles != PROFILES_EXACT) p = arena_printf(a, "%s (sigma %.3g)", p, x->sigma);
    if (x->rates == RATES_MEASURED)
        r = arena_printf(a, "%s (%.3g s late, noise %.3g)", r, (double)x->delay / 1e9, x->noise);
    if (x->estimator == ESTIMATOR_OFF) return arena_printf(a, "%s, %s, %s", d, p, r);
    return arena_printf(a, "%s, %s, %s, refined by an estimator (%s)", d, p, r,
                        estimators[x->estimator]);
}

ClusterKnowledge information_knows(const Information *x, ClusterKnowledge at_most) {
    static const ClusterKnowledge most[] = {CLUSTER_ORACLE, CLUSTER_PREDICTED, CLUSTER_BLIND};
    ClusterKnowledge              told = most[x->durations];
    if (x->estimator && told == CLUSTER_BLIND) told = CLUSTER_PREDICTED;
    return told < at_most ? told : at_most;
}

static void draw_class(ClusterProfiles *p, uint32_t i, double sigma, Rng *rng) {
    ClusterProfile *c = &p->at[i];
    profile_grid_raise(&c->speed, exp(sigma * rng_normal(rng)));
    profile_grid_raise(&c->spread, exp(sigma * rng_normal(rng)));
    double harm = exp(sigma * rng_normal(rng));
    for (uint32_t k = 0; k < p->n; k++) {
        double *pair = &p->pair[(size_t)i * PROFILE_CLASSES + k];
        if (*pair > 0) *pair = pow(*pair, harm);
    }
    c->restart_s *= exp(sigma * rng_normal(rng));
    for (uint32_t t = 1; t < p->n_types; t++) c->iteration_s[t] *= exp(sigma * rng_normal(rng));
}

Err information_truth(const Information *x, const ClusterProfiles *library, Rng rng, Arena *a,
                      ClusterProfiles *out) {
    ClusterProfiles p;
    TRY(profile_copy(library, a, &p));
    for (uint32_t i = 0; x->sigma > 0 && i < p.n; i++) {
        Rng own = rng_fork(rng, i);
        draw_class(&p, i, x->sigma, &own);
    }
    TRY(profile_set_share(&p, p.share_cores, p.share_gb, &ALLOC_LEVEL_PARAMS));
    *out = p;
    return ERR_OK;
}

enum { SPARE = 2 };  // classes: the mean, and the default of the guard

static const double log_powers[] = {-0.5, 0.5};

Err information_hypotheses(const ClusterProfiles *library, Arena *a, ClusterProfiles *p,
                           HypothesisTable *out) {
    uint32_t n = library->n, mean = 0;
    TRY(profile_copy(library, a, p));
    *out = (HypothesisTable){.profiles = p};
    for (uint32_t i = 0; i < n; i++) out->base[i] = i;
    for (size_t k = 0; k < sizeof log_powers / sizeof *log_powers; k++) {
        if (p->n + n + SPARE > PROFILE_CLASSES) break;
        for (uint32_t i = 0; i < n; i++) {
            out->base[p->n] = i;
            out->log_power[p->n] = log_powers[k];
            profile_add_power(p, i, exp(log_powers[k]), a);
        }
    }
    out->n = p->n;
    TRY(profile_add_mean(p, &mean));
    p->at[mean].weight = 0;
    out->n_classes = mean + 1;
    return profile_set_share(p, p->share_cores, p->share_gb, &ALLOC_LEVEL_PARAMS);
}

// With unknown profiles the table has the mean alone: a policy cannot even see the library.
static Err keep_one(ClusterProfiles *p, uint32_t i) {
    ClusterProfile c = p->at[i];
    double         self = profile_pair(p, i, i);
    memset(p->at, 0, p->n * sizeof *p->at);
    memset(p->pair, 0, sizeof *p->pair * PROFILE_CLASSES * PROFILE_CLASSES);
    p->at[0] = c;
    p->at[0].weight = 1;
    p->n = 1;
    p->pair[0] = self;
    return profile_set_share(p, p->share_cores, p->share_gb, &ALLOC_LEVEL_PARAMS);
}

Err information_beliefs(const Information *x, const ClusterProfiles *library,
                        const uint32_t *class_of, uint32_t n, Arena *a, InformationBeliefs *out) {
    ClusterProfiles *p = arena_try_new(a, ClusterProfiles, 1);
    uint32_t        *classes = arena_try_new(a, uint32_t, n);
    uint32_t         mean = 0, fallback = PROFILE_NONE;
    if (p == NULL || classes == NULL)
        return err_set(ERR_LIMIT, "no memory for the beliefs about %u jobs", n);
    HypothesisTable *table = x->estimator ? arena_new(a, HypothesisTable, 1) : NULL;
    TRY(table != NULL ? information_hypotheses(library, a, p, table) : profile_copy(library, a, p));
    memcpy(classes, class_of, n * sizeof *classes);
    if (x->profiles == PROFILES_UNKNOWN && table == NULL) {
        TRY(profile_add_mean(p, &mean));
        TRY(keep_one(p, mean));
        for (uint32_t i = 0; i < n; i++)
            if (classes[i] != PROFILE_NONE) classes[i] = 0;
    }
    if (x->guard > 0) TRY(profile_add_default(p, &fallback));
    *out = (InformationBeliefs){p, classes, fallback, table};
    return ERR_OK;
}

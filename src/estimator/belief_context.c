#include "estimator/belief_context.h"

#include <math.h>
#include <string.h>

#include "learn/activation.h"

const BeliefAmounts belief_levels[BELIEF_LEVELS] = {
    {1.0 / 3, 1}, {2.0 / 3, 1}, {4.0 / 3, 1}, {2, 1}, {3, 1}, {1, 0.5}, {1, 2}, {0.5, 0.5}, {2, 2},
};

static float log_work(double s) {
    return (repro_log(1 + (float)s) - BELIEF_LOG_MIDDLE) / BELIEF_LOG_UNIT;
}

static void put_records(const BeliefJob *j, float *to) {
    memset(to, 0, (size_t)BELIEF_RECORDS * BELIEF_RECORD * sizeof *to);
    for (uint32_t i = 0; i < j->n_records; i++, to += BELIEF_RECORD) {
        const BeliefRecord *r = &j->records[i];
        to[0] = repro_log(r->cores);
        to[1] = repro_log(r->memory);
        to[2] = 0.5f * r->corunners;
        to[3] = repro_log(r->rate);
        to[4] = r->corunners > 0 ? 1 : 0;
    }
}

void belief_features(const BeliefJob *j, float to[BELIEF_JOB], float *records) {
    to[0] = log_work(j->work_s);
    to[1] = j->ended || j->work_s <= 0 ? 1 : 0;
    to[2] = repro_log(1 + (float)j->traits.gpus);
    to[3] = (float)j->n_records / BELIEF_RECORDS;
    to[4] = j->traits.name != 0 ? 1 : 0;
    to[5] = j->traits.tenant != 0 ? 1 : 0;
    put_records(j, records);
}

void belief_query_features(const BeliefJob *j, const float *told, float to[BELIEF_QUERY],
                           float *records) {
    belief_features(j, to, records);
    memset(to + BELIEF_JOB, 0, BELIEF_TOLD * sizeof *to);
    if (told == NULL) return;
    memcpy(to + BELIEF_JOB, told, BELIEF_LEVELS * sizeof *to);
    to[BELIEF_JOB + BELIEF_LEVELS] = 1;
}

typedef struct Relation {
    float tenant, name, gpus, age, gap_s;
} Relation;

static uint32_t age_of(const BeliefJob *q, const BeliefJob *j) {
    return q->serial > j->serial ? q->serial - j->serial : j->serial - q->serial;
}

static Relation relation(const BeliefJob *q, const BeliefJob *j) {
    return (Relation){
        .tenant = q->traits.tenant != 0 && q->traits.tenant == j->traits.tenant ? 1 : 0,
        .name = q->traits.name != 0 && q->traits.name == j->traits.name ? 1 : 0,
        .gpus = q->traits.gpus == j->traits.gpus ? 1 : 0,
        .age = (float)age_of(q, j),
        .gap_s = (float)fabs(q->submit_s - j->submit_s),
    };
}

static void put_pair(const Relation *r, const BeliefJob *j, uint32_t of_tenant, float *to) {
    float near = repro_exp(-r->gap_s / 120);
    to[0] = r->tenant;
    to[1] = r->name;
    to[2] = r->gpus;
    to[3] = r->tenant * r->name;
    to[4] = r->tenant * r->gpus;
    to[5] = repro_log(1 + r->age) / 6;
    to[6] = repro_exp(-r->age / 4);
    to[7] = repro_exp(-r->age / 40);
    to[8] = r->tenant * repro_exp(-(float)of_tenant / 3);
    to[9] = r->tenant * near;
    to[10] = near;
    to[11] = r->tenant * repro_exp(-r->gap_s / 3600);
    to[12] = j->ended ? 1 : 0;
    to[13] = j->n_records > 0 ? 1 : 0;
}

typedef struct Choice {
    float    score;
    uint32_t row;
} Choice;

// Keeps the best ones by descending score; of equal ones the first.
static void keep(Choice *best, uint32_t *n, Choice x) {
    uint32_t i = *n < BELIEF_CONTEXT ? (*n)++ : BELIEF_CONTEXT;
    if (i == BELIEF_CONTEXT && !(x.score > best[--i].score)) return;
    for (; i > 0 && x.score > best[i - 1].score; i--) best[i] = best[i - 1];
    best[i] = x;
}

uint32_t belief_select(const BeliefCandidates *c, const BeliefJob *query, uint32_t *rows,
                       float *pair) {
    Choice   best[BELIEF_CONTEXT];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const BeliefJob *j = &c->jobs[c->rows[i]];
        Relation         r = relation(query, j);
        float score = 2 * r.tenant + 2 * r.name + 0.5f * r.gpus - 0.35f * repro_log(1 + r.age) +
                      (j->n_records > 0 ? 0.3f : 0);
        keep(best, &n, (Choice){score, c->rows[i]});
    }
    for (uint32_t i = 0; i < n; i++) {
        const BeliefJob *j = &c->jobs[best[i].row];
        Relation         r = relation(query, j);
        uint32_t         of_tenant = 0;
        for (uint32_t k = 0; k < n; k++) {
            const BeliefJob *other = &c->jobs[best[k].row];
            of_tenant +=
                other->traits.tenant == j->traits.tenant && age_of(query, other) < age_of(query, j);
        }
        rows[i] = best[i].row;
        put_pair(&r, j, of_tenant, pair + (size_t)i * BELIEF_PAIR);
    }
    return n;
}

static bool near(float a, float b) { return a < 1.1f * b && b < 1.1f * a; }

void belief_job_record(BeliefJob *j, const BeliefRecord *r) {
    uint32_t at = 0;
    while (at < j->n_records &&
           !(near(j->records[at].cores, r->cores) && near(j->records[at].memory, r->memory) &&
             j->records[at].corunners == r->corunners))
        at++;
    if (at == BELIEF_RECORDS) {
        memmove(j->records, j->records + 1, (BELIEF_RECORDS - 1) * sizeof *j->records);
        at--;
    }
    j->records[at] = *r;
    if (at >= j->n_records) j->n_records = (uint8_t)(at + 1);
}

Err belief_context_init(BeliefContext *c, const float *w, uint32_t n_slots, Arena *a) {
    size_t n = (size_t)BELIEF_ENDED + n_slots;
    *c = (BeliefContext){.w = w,
                         .jobs = arena_try_new(a, BeliefJob, n),
                         .kv = arena_try(a, n * BELIEF_KV, sizeof(float), 64),
                         .encoded = arena_try_new(a, bool, n),
                         .active = arena_try_new(a, uint32_t, n_slots),
                         .position = arena_try_new(a, uint32_t, n_slots),
                         .rows = arena_try_new(a, uint32_t, n)};
    c->jobs_cache = arena_try(a, belief_jobs_cache(1), sizeof(float), 64);
    c->query_cache = arena_try(a, belief_queries_cache(1), sizeof(float), 64);
    if (c->jobs == NULL || c->kv == NULL || c->encoded == NULL || c->active == NULL ||
        c->position == NULL || c->rows == NULL || c->jobs_cache == NULL || c->query_cache == NULL)
        return err_set(ERR_LIMIT, "no memory for beliefs about %u jobs", n_slots);
    return ERR_OK;
}

void belief_context_arrive(BeliefContext *c, uint32_t slot, const JobTraits *t, double submit_s) {
    c->jobs[BELIEF_ENDED + slot] =
        (BeliefJob){.traits = *t, .submit_s = submit_s, .serial = (uint32_t)c->arrived++};
    c->encoded[BELIEF_ENDED + slot] = false;
}

static void activate(BeliefContext *c, uint32_t slot) {
    c->encoded[BELIEF_ENDED + slot] = false;
    if (c->position[slot] != 0) return;
    c->active[c->n_active] = slot;
    c->position[slot] = ++c->n_active;
}

// In steps of a quarter of a logarithm, so that few changes need a new encoding.
static double stepped(double s) {
    return s > 0 ? (double)repro_exp(floorf(4 * repro_log(1 + (float)s)) / 4) - 1 : 0;
}

void belief_context_work(BeliefContext *c, uint32_t slot, double work_s) {
    BeliefJob *j = &c->jobs[BELIEF_ENDED + slot];
    double     s = stepped(work_s);
    if (s == j->work_s && c->position[slot] != 0) return;
    j->work_s = s;
    activate(c, slot);
}

void belief_context_record(BeliefContext *c, uint32_t slot, const BeliefRecord *r) {
    belief_job_record(&c->jobs[BELIEF_ENDED + slot], r);
    activate(c, slot);
}

void belief_context_end(BeliefContext *c, uint32_t slot, double work_s) {
    uint32_t at = c->position[slot], row = (uint32_t)(c->ended++ % BELIEF_ENDED);
    if (at != 0) {
        uint32_t last = c->active[--c->n_active];
        c->active[at - 1] = last;
        c->position[last] = at;
        c->position[slot] = 0;
    }
    c->jobs[row] = c->jobs[BELIEF_ENDED + slot];
    c->jobs[row].work_s = work_s;
    c->jobs[row].ended = true;
    c->encoded[row] = false;
}

static BeliefCandidates candidates(BeliefContext *c, uint32_t slot) {
    BeliefCandidates x = {.jobs = c->jobs, .rows = c->rows};
    uint32_t         ended = c->ended < BELIEF_ENDED ? (uint32_t)c->ended : BELIEF_ENDED;
    for (uint32_t i = 0; i < ended; i++)
        c->rows[x.n++] = (uint32_t)((c->ended - 1 - i) % BELIEF_ENDED);
    for (uint32_t i = 0; i < c->n_active; i++)
        if (c->active[i] != slot) c->rows[x.n++] = BELIEF_ENDED + c->active[i];
    return x;
}

static void encode(BeliefContext *c, uint32_t row) {
    BeliefJob   *j = &c->jobs[row];
    float        features[BELIEF_JOB], records[BELIEF_RECORDS * BELIEF_RECORD];
    BeliefTokens t = {features, records, &j->n_records, 1};
    if (c->encoded[row]) return;
    belief_features(j, features, records);
    belief_net_encode(c->w, &t, c->kv + (size_t)row * BELIEF_KV, c->jobs_cache);
    c->encoded[row] = true;
}

void belief_context_ask(BeliefContext *c, uint32_t slot, const float *told, BeliefOutput *out) {
    BeliefJob       *j = &c->jobs[BELIEF_ENDED + slot];
    uint32_t         rows[BELIEF_CONTEXT], n;
    float            pair[BELIEF_CONTEXT * BELIEF_PAIR], raw[BELIEF_OUT];
    float            features[BELIEF_QUERY], records[BELIEF_RECORDS * BELIEF_RECORD];
    BeliefCandidates all = candidates(c, slot);
    n = belief_select(&all, j, rows, pair);
    for (uint32_t i = 0; i < n; i++) encode(c, rows[i]);
    belief_query_features(j, told, features, records);
    BeliefQueries q = {{features, records, &j->n_records, 1}, rows, &n, pair};
    belief_net_query(c->w, &q, c->kv, raw, c->query_cache);
    belief_net_output(raw, told, out);
}

enum { BINS = 128 };
static const double LOG_LONGEST = 18.5;

static double log_left(uint32_t bin, double part) { return (bin + part) * LOG_LONGEST / BINS; }

static void to_mass(const BeliefOutput *x, double done_s, double told_s, double told_sd,
                    double mass[BINS]) {
    double sum = 0, least = INFINITY, z[BINS] = {0};
    for (uint32_t b = 0; told_sd > 0 && b < BINS; b++) {
        z[b] = (log(exp(log_left(b, 0.5)) + done_s) - log(fmax(told_s, 1))) / told_sd;
        least = fmin(least, z[b] * z[b]);
    }
    for (uint32_t b = 0; b < BINS; b++) {
        mass[b] = 1e-9;
        for (uint32_t k = 0; k < BELIEF_MIX; k++) {
            double sd = (double)x->sd[k], y = (log_left(b, 0.5) - (double)x->mean[k]) / sd;
            mass[b] += (double)x->weight[k] / sd * exp(-y * y / 2);
        }
        if (told_sd > 0) mass[b] *= exp((least - z[b] * z[b]) / 2);
        sum += mass[b];
    }
    for (uint32_t b = 0; b < BINS; b++) mass[b] /= sum;
}

static double quantile(const double mass[BINS], double q) {
    double sum = 0;
    for (uint32_t b = 0; b < BINS; b++) {
        if (mass[b] > 0 && sum + mass[b] >= q) return exp(log_left(b, (q - sum) / mass[b]));
        sum += mass[b];
    }
    return exp(LOG_LONGEST);
}

DurationEstimate belief_left(const BeliefOutput *x, double done_s, double told_s, double told_sd) {
    double mass[BINS], middle[BINS], end[BINS], mean = 0, square = 0, sum = 0;
    to_mass(x, done_s, told_s, told_sd, mass);
    for (uint32_t b = 0; b < BINS; b++) {
        middle[b] = exp(log_left(b, 0.5));
        end[b] = exp(log_left(b, 1));
        sum += mass[b] * middle[b];
        mean += mass[b] * log_left(b, 0.5);
        square += mass[b] * log_left(b, 0.5) * log_left(b, 0.5);
    }
    return (DurationEstimate){.left_s = exp(mean),
                              .mean_s = sum,
                              .index = duration_index(BINS, mass, middle, end),
                              .log_sd = sqrt(fmax(square - mean * mean, 0)),
                              .low_s = quantile(mass, 0.05),
                              .high_s = quantile(mass, 0.95)};
}

#include "report/match.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

static double member_of(const MatchRun *r, size_t member) {
    double v;
    memcpy(&v, (const char *)r + member, sizeof v);
    return v;
}

Mean match_mean(const Match *m, const MatchEntry *e, size_t member) {
    double x[MATCH_TRACES];
    CHECK(m->traces <= MATCH_TRACES);
    for (uint32_t i = 0; i < m->traces; i++) x[i] = member_of(&e->runs[i], member);
    return stats_mean(x, m->traces);
}

static bool is_within(const MatchCell *c, const MatchWhere *w) {
    return (w->chip == NULL || strcmp(w->chip, c->chip) == 0) &&
           (w->mix == NULL || strcmp(w->mix, c->mix) == 0) &&
           (isnan(w->load) || w->load == c->load) &&
           (isnan(w->bandwidth) || w->bandwidth == c->bandwidth);
}

Mean match_over(const Match *m, const MatchWhere *w, const char *policy, size_t member) {
    double   x[MATCH_TRACES] = {0};
    uint32_t n = 0;
    CHECK(m->traces <= MATCH_TRACES);
    for (uint32_t i = 0; i < m->n_cells; i++) {
        const MatchEntry *e = match_find(&m->cells[i], policy);
        if (e == NULL || !is_within(&m->cells[i], w)) continue;
        for (uint32_t k = 0; k < m->traces; k++) x[k] += member_of(&e->runs[k], member);
        n++;
    }
    for (uint32_t k = 0; k < m->traces; k++) x[k] /= n > 0 ? n : 1;
    return stats_mean(x, n > 0 ? m->traces : 0);
}

const MatchEntry *match_find(const MatchCell *c, const char *policy) {
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i].policy, policy) == 0) return &c->entries[i];
    return NULL;
}

static double sla_of(const Match *m, const MatchEntry *e) {
    return match_mean(m, e, offsetof(MatchRun, sla)).mean;
}

static bool is_part(const Match *m, const MatchEntry *e) {
    return e->of != NULL && strcmp(e->of, m->champion) == 0;
}

static const MatchEntry *best(const Match *m, const MatchCell *c, bool clairvoyant) {
    const MatchEntry *found = NULL;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const MatchEntry *e = &c->entries[i];
        if (e->clairvoyant != clairvoyant || strcmp(e->policy, m->champion) == 0 || is_part(m, e))
            continue;
        if (found == NULL || sla_of(m, e) > sla_of(m, found)) found = e;
    }
    return found;
}

const MatchEntry *match_baseline(const Match *m, const MatchCell *c) { return best(m, c, false); }
const MatchEntry *match_bound(const Match *m, const MatchCell *c) { return best(m, c, true); }

const MatchEntry *match_part(const Match *m, const MatchCell *c) {
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (is_part(m, &c->entries[i])) return &c->entries[i];
    return NULL;
}

Mean match_margin(const Match *m, const MatchEntry *e, const MatchEntry *than) {
    double x[MATCH_TRACES];
    CHECK(m->traces <= MATCH_TRACES);
    for (uint32_t i = 0; i < m->traces; i++) x[i] = e->runs[i].sla - than->runs[i].sla;
    return stats_mean(x, m->traces);
}

// Over all cells, trace by trace: the champion less a policy, or less each cell's best baseline.
static Mean overall(const Match *m, const char *policy) {
    double x[MATCH_TRACES] = {0};
    CHECK(m->traces <= MATCH_TRACES);
    for (uint32_t i = 0; i < m->n_cells; i++) {
        const MatchCell  *c = &m->cells[i];
        const MatchEntry *ours = match_find(c, m->champion);
        const MatchEntry *theirs = policy != NULL ? match_find(c, policy) : match_baseline(m, c);
        for (uint32_t k = 0; k < m->traces; k++)
            x[k] += (ours->runs[k].sla - theirs->runs[k].sla) / m->n_cells;
    }
    return stats_mean(x, m->traces);
}

static MatchRival rival(const Match *m, const MatchEntry *of) {
    MatchRival r = {.policy = of->policy,
                    .paper = of->paper,
                    .clairvoyant = of->clairvoyant,
                    .margin = overall(m, of->policy),
                    .gain = NAN,
                    .theirs = NAN,
                    .our = NAN};
    for (uint32_t i = 0; i < m->n_cells; i++) {
        const MatchCell *c = &m->cells[i];
        double           theirs = sla_of(m, match_find(c, of->policy));
        double           ours = sla_of(m, match_find(c, m->champion));
        r.sla += theirs / m->n_cells;
        if (!(theirs > 0) || ours / theirs - 1 <= r.gain) continue;
        r.gain = ours / theirs - 1;
        r.theirs = theirs;
        r.our = ours;
        r.at = c;
    }
    return r;
}

static void judge_cell(const Match *m, const MatchCell *c, MatchVerdict *v) {
    const MatchEntry *ours = match_find(c, m->champion), *theirs = match_baseline(m, c),
                     *bound = match_bound(m, c), *part = match_part(m, c);
    Mean margin = match_margin(m, ours, theirs);
    v->sla += sla_of(m, ours) / m->n_cells;
    v->baseline_sla += sla_of(m, theirs) / m->n_cells;
    v->bound_sla += bound != NULL ? sla_of(m, bound) / m->n_cells : NAN;
    v->part = part != NULL ? part->policy : NULL;
    v->part_sla += part != NULL ? sla_of(m, part) / m->n_cells : NAN;
    v->ahead += margin.mean - margin.half > 0;
    v->behind += margin.mean + margin.half < 0;
    if (v->worst != NULL && margin.mean >= v->worst_margin.mean) return;
    v->worst = c;
    v->worst_margin = margin;
}

bool match_judge(const Match *m, Arena *a, MatchVerdict *out) {
    *out = (MatchVerdict){0};
    for (uint32_t i = 0; i < m->n_cells; i++) {
        const MatchCell *c = &m->cells[i];
        if (match_find(c, m->champion) == NULL || match_baseline(m, c) == NULL) return false;
    }
    if (m->n_cells == 0) return false;
    for (uint32_t i = 0; i < m->n_cells; i++) judge_cell(m, &m->cells[i], out);
    out->even = m->n_cells - out->ahead - out->behind;
    out->margin = overall(m, NULL);
    out->rivals = arena_new(a, MatchRival, m->cells[0].n_entries);
    for (uint32_t i = 0; i < m->cells[0].n_entries; i++)
        if (strcmp(m->cells[0].entries[i].policy, m->champion) != 0)
            out->rivals[out->n_rivals++] = rival(m, &m->cells[0].entries[i]);
    return true;
}

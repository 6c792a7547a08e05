#include <math.h>
#include <string.h>

#include "report/match.h"

#define MEAN(m, e, member) match_mean(m, e, offsetof(MatchRun, member)).mean

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *share_interval(Mean m) {  // it ends where shares do
    return json_pack("[ff]", fmax(m.mean - m.half, 0), fmin(m.mean + m.half, 1));
}

static json_t *levels(const Match *m, const MatchEntry *e) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < MATCH_LEVELS; i++) {
        size_t at = offsetof(MatchRun, level_sla) + i * sizeof(double);
        json_array_append_new(list, number(match_mean(m, e, at).mean));
    }
    return list;
}

static void add_margins(const Match *m, const MatchCell *c, const MatchEntry *e, json_t *to) {
    const MatchEntry *base = match_baseline(m, c), *bound = match_bound(m, c);
    Mean              margin = base != NULL ? match_margin(m, e, base) : (Mean){.mean = NAN};
    json_object_set_new(to, "margin", number(margin.mean));
    json_object_set_new(to, "margin_half", number(base != NULL ? margin.half : NAN));
    json_object_set_new(to, "below_oracle",
                        number(bound != NULL ? -match_margin(m, e, bound).mean : NAN));
}

static json_t *entry_json(const Match *m, const MatchCell *c, const MatchEntry *e) {
    Mean    sla = match_mean(m, e, offsetof(MatchRun, sla));
    json_t *doc =
        json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "policy", e->policy, "sla", number(sla.mean),
                  "sla_ci", share_interval(sla), "sla_half", number(sla.half), "energy_mj",
                  number(MEAN(m, e, energy_mj)), "policy_energy_share",
                  number(MEAN(m, e, policy_share)), "decision_us", number(MEAN(m, e, decision_us)));
    if (doc == NULL) return NULL;
    if (m->measured) json_object_set_new(doc, "measured_us", number(MEAN(m, e, measured_us)));
    add_margins(m, c, e, doc);
    json_object_set_new(doc, "slowdown", number(MEAN(m, e, slowdown)));
    json_object_set_new(doc, "request_mj", number(MEAN(m, e, request_mj)));
    json_object_set_new(doc, "bandwidth_use", number(MEAN(m, e, bandwidth_use)));
    json_object_set_new(doc, "unit_use", number(MEAN(m, e, unit_use)));
    json_object_set_new(doc, "level_sla", levels(m, e));
    json_object_set_new(doc, "worst_tenant",
                        e->worst_tenant != NULL ? json_string(e->worst_tenant) : json_null());
    json_object_set_new(doc, "worst_sla", number(e->worst_tenant != NULL ? e->worst_sla : NAN));
    json_object_set_new(doc, "clairvoyant", json_boolean(e->clairvoyant));
    if (e->of != NULL) json_object_set_new(doc, "part_of", json_string(e->of));
    return doc;
}

static json_t *place(const MatchCell *c) {
    return json_pack("{s:s,s:s,s:f,s:f}", "chip", c->chip, "mix", c->mix, "load", c->load,
                     "bandwidth", c->bandwidth);
}

static json_t *cell_json(const Match *m, const MatchCell *c) {
    const MatchEntry *base = match_baseline(m, c);
    json_t           *doc = place(c), *policies = json_array();
    for (uint32_t i = 0; i < c->n_entries; i++)
        json_array_append_new(policies, entry_json(m, c, &c->entries[i]));
    json_object_set_new(doc, "policies", policies);
    json_object_set_new(doc, "best_baseline",
                        base != NULL ? json_string(base->policy) : json_null());
    return doc;
}

static json_t *rival_json(const MatchRival *r) {
    json_t *doc = json_pack("{s:s,s:s?,s:f,s:o,s:o,s:o}", "policy", r->policy, "paper", r->paper,
                            "sla", r->sla, "margin", number(r->margin.mean), "margin_half",
                            number(r->margin.half), "largest_gain", number(r->gain));
    if (doc == NULL || r->at == NULL) return doc;
    json_object_set_new(doc, "at", place(r->at));
    json_object_set_new(doc, "sla_there", json_pack("[ff]", r->theirs, r->our));
    return doc;
}

static json_t *summary_json(const Match *m, Arena *a) {
    MatchVerdict v;
    if (!match_judge(m, a, &v)) return json_null();
    json_t *rivals = json_array();
    for (uint32_t i = 0; i < v.n_rivals; i++)
        json_array_append_new(rivals, rival_json(&v.rivals[i]));
    return json_pack("{s:s,s:f,s:f,s:o,s:f,s:o,s:i,s:i,s:i,s:o,s:f,s:o}", "champion", m->champion,
                     "sla", v.sla, "baseline_sla", v.baseline_sla, "oracle_sla",
                     number(v.bound_sla), "margin", v.margin.mean, "margin_half",
                     number(v.margin.half), "cells_ahead", (int)v.ahead, "cells_even", (int)v.even,
                     "cells_behind", (int)v.behind, "worst_cell", place(v.worst), "worst_margin",
                     v.worst_margin.mean, "rivals", rivals);
}

static json_t *sweep_json(const Match *m) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < m->n_sweep; i++) {
        const MatchPoint *p = &m->sweep[i];
        json_array_append_new(list, json_pack("{s:i,s:f,s:o,s:o,s:o,s:o}", "hidden", (int)p->hidden,
                                              "period_us", p->period_us, "policy_energy_share",
                                              number(p->share.mean), "share_half",
                                              number(p->share.half), "sla", number(p->sla.mean),
                                              "decision_us", number(p->decision_us.mean)));
    }
    return list;
}

Err match_json(const Match *m, Arena *scratch, json_t **out) {
    size_t  mark = scratch->used;
    json_t *cells = json_array();
    for (uint32_t i = 0; i < m->n_cells; i++)
        json_array_append_new(cells, cell_json(m, &m->cells[i]));
    *out = json_pack("{s:o,s:o,s:i,s:i,s:I}", "cells", cells, "summary", summary_json(m, scratch),
                     "traces", (int)m->traces, "requests", (int)m->requests, "first_seed",
                     (json_int_t)m->first_seed);
    arena_rewind(scratch, mark);
    if (*out == NULL) return err_set(ERR_INVALID, "a name in the results is not UTF-8");
    if (m->n_sweep > 0) json_object_set_new(*out, "sweep", sweep_json(m));
    return ERR_OK;
}

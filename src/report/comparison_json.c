// Members stand in the order of result/metric.def; what only one tier has follows them.
#include <math.h>

#include "report/comparison_report.h"

static json_t *number(double v) { return chart_number(v); }

static json_t *ends_json(const Metric *m, Mean x) {
    if (m->unit != NULL && m->unit[0] == '%')  // a share: the interval ends where shares do
        return json_pack("[ff]", fmax(x.mean - x.half, 0), fmin(x.mean + x.half, 1));
    if (!isfinite(x.half) || !isfinite(x.mean)) return json_null();
    return json_pack("[ff]", x.mean - x.half, x.mean + x.half);
}

static void add_metrics(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                        json_t *to) {
    for (MetricId id = 0; id < METRICS; id++) {
        const Metric *m = &metrics[id];
        bool          timed = (m->flags & METRIC_TIMED) == 0 || c->timed;
        if (!metric_has(c->tier, id) || (m->flags & METRIC_NESTED) != 0 || !timed) continue;
        Mean x = comparison_mean(c, cell, e, id);
        json_object_set_new(to, m->key, number(x.mean));
        if (m->ends != NULL) json_object_set_new(to, m->ends, ends_json(m, x));
        if (m->half != NULL) json_object_set_new(to, m->half, number(x.half));
    }
}

static json_t *seeds_json(const Comparison *c, const ComparisonEntry *e) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->seeds; i++) {
        json_t *one = json_pack("{s:I}", "seed", (json_int_t)c->first_seed + i);
        for (MetricId id = 0; id < METRICS; id++) {
            double v = e->values[(size_t)i * METRICS + id];
            bool   whole = (metrics[id].flags & METRIC_COUNT) != 0;
            if (metric_has(c->tier, id) && (metrics[id].flags & METRIC_SEEDS) != 0)
                json_object_set_new(one, metrics[id].key,
                                    whole ? json_integer((json_int_t)v) : number(v));
        }
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *equal_json(const Comparison *c, const ComparisonCell *cell,
                          const ComparisonEntry *e) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < COMPARISON_EQUALS; i++) {
        const EqualLoad *at = &cell->equal[i];
        if (!isfinite(at->rate)) continue;
        json_array_append_new(
            list,
            json_pack("{s:s,s:f,s:f,s:o,s:o}", "of", c->subject, "share", at->share, "qps",
                      at->rate, "mean_ms", number(comparison_mean(c, cell, e, at->latency).mean),
                      "hit_rate", number(comparison_mean(c, cell, e, at->hit_rate).mean)));
    }
    return list;
}

static void add_chip(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                     json_t *to) {
    json_t *levels = json_array();
    for (MetricId id = METRIC_SLA_HIGH; id <= METRIC_SLA_LOW; id++)
        json_array_append_new(levels, number(comparison_mean(c, cell, e, id).mean));
    json_object_set_new(to, "level_sla", levels);
    json_object_set_new(to, "worst_tenant",
                        e->worst_tenant != NULL ? json_string(e->worst_tenant) : json_null());
    json_object_set_new(to, "worst_sla", number(e->worst_tenant != NULL ? e->worst_sla : NAN));
    json_object_set_new(to, "clairvoyant", json_boolean(e->rank > c->fair_rank));
}

static json_t *entry_json(const Comparison *c, const ComparisonCell *cell,
                          const ComparisonEntry *e) {
    json_t *doc = json_pack("{s:s}", "policy", e->policy);
    if (doc == NULL) return NULL;
    if (e->knows != NULL) json_object_set_new(doc, "knows", json_string(e->knows));
    add_metrics(c, cell, e, doc);
    switch (c->tier) {
    case TIER_NODE: json_object_set_new(doc, "equal_load", equal_json(c, cell, e)); break;
    case TIER_CHIP: add_chip(c, cell, e, doc); break;
    case TIER_CLUSTER: json_object_set_new(doc, "seeds", seeds_json(c, e)); break;
    case TIERS: break;
    }
    if (e->part_of != NULL) json_object_set_new(doc, "part_of", json_string(e->part_of));
    return doc;
}

static json_t *field_json(const CellField *f) {
    switch (f->kind) {
    case FIELD_TEXT: return json_string(f->text);
    case FIELD_INT: return json_integer((json_int_t)f->number);
    case FIELD_REAL: return json_real(f->number);
    }
    return NULL;
}

static json_t *fields_json(const ComparisonCell *cell) {
    json_t *doc = json_object();
    for (uint32_t i = 0; i < cell->n_fields; i++) {
        const CellField *f = &cell->fields[i];
        json_t          *to = f->within != NULL ? json_object_get(doc, f->within) : doc;
        if (to == NULL) json_object_set_new(doc, f->within, to = json_object());
        json_object_set_new(to, f->key, field_json(f));
    }
    return doc;
}

static json_t *missing_json(const ComparisonCell *cell) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < cell->n_entries; i++)
        if (cell->entries[i].missing != NULL)
            json_array_append_new(list, json_pack("{s:s,s:s}", "policy", cell->entries[i].policy,
                                                  "why", cell->entries[i].missing));
    return list;
}

static json_t *best_json(const Comparison *c, const ComparisonCell *cell, MetricId id) {
    const ComparisonEntry *e = comparison_baseline(c, cell, id),
                          *ours = comparison_subject(c, cell);
    if (e == NULL || ours == NULL) return json_null();
    Mean r = comparison_ratio(c, ours, e, id);
    return json_pack("{s:s,s:o,s:o}", "policy", e->policy, "champion_ratio", number(r.mean),
                     "champion_ratio_ci", ends_json(&metrics[METRIC_JCT_RATIO], r));
}

static json_t *cell_json(const Comparison *c, const ComparisonCell *cell) {
    json_t *doc = fields_json(cell), *policies = json_array();
    for (uint32_t i = 0; i < cell->n_entries; i++)
        if (cell->entries[i].missing == NULL)
            json_array_append_new(policies, entry_json(c, cell, &cell->entries[i]));
    json_object_set_new(doc, "policies", policies);
    if (c->tier == TIER_CHIP) {
        const ComparisonEntry *base = comparison_baseline(c, cell, METRIC_SLA);
        json_object_set_new(doc, "best_baseline",
                            base != NULL ? json_string(base->policy) : json_null());
    }
    if (c->tier == TIER_CLUSTER) {
        json_object_set_new(doc, "missing", missing_json(cell));
        json_object_set_new(doc, "best_jct", best_json(c, cell, METRIC_JCT_MEAN_S));
        json_object_set_new(doc, "best_makespan", best_json(c, cell, METRIC_MAKESPAN_S));
    }
    return doc;
}

static json_t *policy_json(const Comparison *c, const ComparisonEntry *e) {
    Change x;
    if (!change_against(c, e->policy, METRIC_SLA, &x)) return NULL;
    json_t *doc = json_pack("{s:s,s:s?,s:f,s:o,s:o,s:o}", "policy", e->policy, "paper", e->paper,
                            "sla", x.theirs, "margin", number(x.by_seed.mean), "margin_half",
                            number(x.by_seed.half), "largest_gain", number(x.gain));
    if (doc == NULL || x.gain_at == NULL) return doc;
    json_object_set_new(doc, "at", fields_json(x.gain_at));
    json_object_set_new(doc, "sla_there", json_pack("[ff]", x.gain_theirs, x.gain_ours));
    return doc;
}

static double bound_sla(const Comparison *c) {
    double sum = 0;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        const ComparisonEntry *e = comparison_bound(c, &c->cells[i], METRIC_SLA);
        sum += e != NULL ? comparison_mean(c, &c->cells[i], e, METRIC_SLA).mean / c->n_cells : NAN;
    }
    return sum;
}

static json_t *chip_summary(const Comparison *c) {
    Change  x;
    json_t *policies = json_array();
    if (!change_against(c, NULL, METRIC_SLA, &x) || x.cells < c->n_cells) {
        json_decref(policies);
        return json_null();
    }
    for (uint32_t i = 0; i < c->cells[0].n_entries; i++) {
        json_t *one = policy_json(c, &c->cells[0].entries[i]);
        if (one != NULL) json_array_append_new(policies, one);
    }
    return json_pack("{s:s,s:f,s:f,s:o,s:f,s:o,s:i,s:i,s:i,s:o,s:f,s:o}", "champion", c->subject,
                     "sla", x.ours, "baseline_sla", x.theirs, "oracle_sla", number(bound_sla(c)),
                     "margin", x.by_seed.mean, "margin_half", number(x.by_seed.half), "cells_ahead",
                     (int)x.ahead, "cells_even", (int)x.even, "cells_behind", (int)x.behind,
                     "worst_cell", fields_json(x.worst_at), "worst_margin", x.worst.mean, "rivals",
                     policies);
}

static json_t *change_json(const Change *x) {
    const ComparisonCell *at = x->best_at;
    return json_pack("{s:f,s:f,s:f,s:s,s:i,s:f,s:i,s:i,s:i}", "mean", x->mean, "least",
                     x->best.mean, "most", x->worst.mean, "least_trace", at->group, "least_servers",
                     (int)comparison_field(at, "servers"), "least_load",
                     comparison_field(at, "load"), "cells_ahead", (int)x->ahead, "cells_even",
                     (int)x->even, "cells_behind", (int)x->behind);
}

static json_t *cluster_summary(const Comparison *c) {
    json_t *list = json_array();
    for (uint32_t i = 0; c->n_cells > 0 && i < c->cells[0].n_entries; i++) {
        const char *policy = c->cells[0].entries[i].policy;
        Change      jct, makespan;
        if (change_against(c, policy, METRIC_JCT_MEAN_S, &jct) &&
            change_against(c, policy, METRIC_MAKESPAN_S, &makespan))
            json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "policy", policy, "jct_change",
                                                  change_json(&jct), "makespan_change",
                                                  change_json(&makespan)));
    }
    return list;
}

static json_t *sweep_json(const Comparison *c) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n_sweep; i++) {
        const SweepPoint *p = &c->sweep[i];
        json_array_append_new(list, json_pack("{s:i,s:f,s:o,s:o,s:o,s:o}", "hidden", (int)p->hidden,
                                              "period_us", p->period_us, "policy_energy_share",
                                              number(p->share.mean), "share_half",
                                              number(p->share.half), "sla", number(p->sla.mean),
                                              "decision_us", number(p->decision_us.mean)));
    }
    return list;
}

static json_t *document(const Comparison *c, json_t *cells) {
    switch (c->tier) {
    case TIER_NODE: return json_pack("{s:s,s:o}", "machine", c->machine, "mixes", cells);
    case TIER_CHIP:
        return json_pack("{s:o,s:o,s:i,s:i,s:I}", "cells", cells, "summary", chip_summary(c),
                         "traces", (int)c->seeds, "requests", (int)c->requests, "first_seed",
                         (json_int_t)c->first_seed);
    case TIER_CLUSTER:
        return json_pack("{s:o,s:s,s:o,s:i,s:I}", "cells", cells, "champion", c->subject, "summary",
                         cluster_summary(c), "seeds", (int)c->seeds, "first_seed",
                         (json_int_t)c->first_seed);
    case TIERS: break;
    }
    return NULL;
}

Err report_json(const Comparison *c, json_t **out) {
    json_t *cells = json_array();
    for (uint32_t i = 0; i < c->n_cells; i++)
        json_array_append_new(cells, cell_json(c, &c->cells[i]));
    *out = document(c, cells);
    if (*out == NULL) return err_set(ERR_INVALID, "a name in the results is not UTF-8");
    if (c->n_sweep > 0) json_object_set_new(*out, "sweep", sweep_json(c));
    return ERR_OK;
}

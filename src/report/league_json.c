#include <math.h>
#include <string.h>

#include "report/league.h"

#define AT(member)         offsetof(LeagueRun, member)
#define MEAN(l, e, member) number(league_mean(l, e, AT(member)).mean)

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *interval(Mean m) {  // one seed has none
    if (!isfinite(m.half) || !isfinite(m.mean)) return json_null();
    return json_pack("[ff]", m.mean - m.half, m.mean + m.half);
}

static json_t *seeds_json(const League *l, const LeagueEntry *e) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < l->seeds; i++) {
        const LeagueRun *r = &e->runs[i];
        json_array_append_new(
            list, json_pack("{s:I,s:I,s:o,s:o,s:o,s:o}", "seed", (json_int_t)l->first_seed + i,
                            "jobs", (json_int_t)r->jobs, "jct_mean_s", number(r->jct_mean_s),
                            "makespan_s", number(r->makespan_s), "queue_mean_s",
                            number(r->queue_mean_s), "preemptions", number(r->preemptions)));
    }
    return list;
}

static void add_ratios(const League *l, const LeagueEntry *e, const LeagueEntry *ours, json_t *to) {
    const Mean none = {.mean = NAN, .half = NAN};
    Mean       jct = ours != NULL ? league_ratio(l, e, ours, AT(jct_mean_s)) : none;
    Mean       span = ours != NULL ? league_ratio(l, e, ours, AT(makespan_s)) : none;
    json_object_set_new(to, "jct_ratio", number(jct.mean));
    json_object_set_new(to, "jct_ratio_ci", interval(jct));
    json_object_set_new(to, "makespan_ratio", number(span.mean));
    json_object_set_new(to, "makespan_ratio_ci", interval(span));
}

static json_t *entry_json(const League *l, const LeagueEntry *e, const LeagueEntry *ours) {
    Mean    jct = league_mean(l, e, AT(jct_mean_s)), span = league_mean(l, e, AT(makespan_s));
    json_t *doc = json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "policy", e->policy, "knows",
                            e->knows, "jct_mean_s", number(jct.mean), "jct_ci_s", interval(jct),
                            "makespan_s", number(span.mean), "makespan_ci_s", interval(span),
                            "queue_mean_s", MEAN(l, e, queue_mean_s), "fairness",
                            MEAN(l, e, fairness), "decision_us", MEAN(l, e, decision_us));
    if (doc == NULL) return NULL;
    json_object_set_new(doc, "jct_p50_s", MEAN(l, e, jct_p50_s));
    json_object_set_new(doc, "jct_p99_s", MEAN(l, e, jct_p99_s));
    json_object_set_new(doc, "queue_p99_s", MEAN(l, e, queue_p99_s));
    json_object_set_new(doc, "gpu_use", MEAN(l, e, gpu_use));
    json_object_set_new(doc, "core_use", MEAN(l, e, core_use));
    json_object_set_new(doc, "memory_use", MEAN(l, e, memory_use));
    json_object_set_new(doc, "preemptions", MEAN(l, e, preemptions));
    json_object_set_new(doc, "levels", MEAN(l, e, levels));
    json_object_set_new(doc, "slowdown", MEAN(l, e, slowdown));
    add_ratios(l, e, ours, doc);
    json_object_set_new(doc, "seeds", seeds_json(l, e));
    if (e->of != NULL) json_object_set_new(doc, "part_of", json_string(e->of));
    return doc;
}

static json_t *missing_json(const LeagueCell *c) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (c->entries[i].missing != NULL)
            json_array_append_new(list, json_pack("{s:s,s:s}", "policy", c->entries[i].policy,
                                                  "why", c->entries[i].missing));
    return list;
}

static json_t *rival_json(const League *l, const LeagueCell *c, size_t member) {
    const LeagueEntry *e = league_rival(l, c, member), *ours = league_find(c, l->champion);
    if (e == NULL) return json_null();
    Mean r = league_ratio(l, ours, e, member);
    return json_pack("{s:s,s:o,s:o}", "policy", e->policy, "champion_ratio", number(r.mean),
                     "champion_ratio_ci", interval(r));
}

static json_t *cell_json(const League *l, const LeagueCell *c) {
    const LeagueEntry *ours = league_find(c, l->champion);
    json_t            *policies = json_array();
    json_t            *doc = json_pack(
                   "{s:s,s:i,s:s,s:I,s:f,s:{s:i,s:i},s:o}", "trace", c->trace, "servers", (int)c->n_servers,
                   "servers_from", c->servers, "gpus", (json_int_t)c->gpus, "load", c->load, "left_out",
                   "too_long", (int)c->long_ones, "too_large", (int)c->too_large, "policies", policies);
    if (doc == NULL) return NULL;
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (c->entries[i].missing == NULL)
            json_array_append_new(policies, entry_json(l, &c->entries[i], ours));
    json_object_set_new(doc, "missing", missing_json(c));
    json_object_set_new(doc, "best_jct", rival_json(l, c, AT(jct_mean_s)));
    json_object_set_new(doc, "best_makespan", rival_json(l, c, AT(makespan_s)));
    return doc;
}

static json_t *change_json(const LeagueChange *c) {
    return json_pack("{s:f,s:f,s:f,s:s,s:i,s:f,s:i,s:i,s:i}", "mean", c->mean, "least", c->least,
                     "most", c->most, "least_trace", c->at->trace, "least_servers",
                     (int)c->at->n_servers, "least_load", c->at->load, "cells_ahead", (int)c->ahead,
                     "cells_even", (int)c->even, "cells_behind", (int)c->behind);
}

static json_t *summary_json(const League *l) {
    json_t *list = json_array();
    for (uint32_t i = 0; l->n_cells > 0 && i < l->cells[0].n_entries; i++) {
        const LeagueEntry *e = &l->cells[0].entries[i];
        LeagueChange       jct, span;
        if (league_change(l, e->policy, AT(jct_mean_s), &jct) &&
            league_change(l, e->policy, AT(makespan_s), &span))
            json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "policy", e->policy,
                                                  "jct_change", change_json(&jct),
                                                  "makespan_change", change_json(&span)));
    }
    return list;
}

Err league_json(const League *l, json_t **out) {
    json_t *cells = json_array();
    for (uint32_t i = 0; i < l->n_cells; i++)
        json_array_append_new(cells, cell_json(l, &l->cells[i]));
    *out =
        json_pack("{s:o,s:s,s:o,s:i,s:I}", "cells", cells, "champion", l->champion, "summary",
                  summary_json(l), "seeds", (int)l->seeds, "first_seed", (json_int_t)l->first_seed);
    if (*out == NULL) return err_set(ERR_INVALID, "a name in the results is not UTF-8");
    return ERR_OK;
}

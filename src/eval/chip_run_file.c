#include "eval/run_file.h"

static json_t *units_json(const ChipScenario *s) {
    json_t *list = json_array();
    for (uint32_t u = 0; u < s->setup.n_units; u++)
        json_array_append_new(list, json_string(s->setup.kinds[s->setup.kind_of[u]].name));
    return list;
}

static json_t *tenants_json(const ChipScenario *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->workload.n; i++)
        json_array_append_new(list, json_pack("{s:s,s:f,s:f,s:I}", "name", s->tenants[i].name,
                                              "best_ms", (double)s->models[i].rest_ns[0] / 1e6,
                                              "base_ms", chip_scenario_base_ns(s, i) / 1e6,
                                              "layers", (json_int_t)s->models[i].n_layers));
    return list;
}

static json_t *header_json(const ChipScenario *s, const ChipRun *run, const ChipTraffic *t,
                           const ArgList *sets) {
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:f,s:f,s:f,s:I,s:I,s:I,s:o,s:o}", "run", "chip", "chip",
                     s->package.name, "mix", s->workload.name, "policy", run->policy->name, "set",
                     run_file_sets(sets), "load", t->load, "burst", t->burst, "bytes_ns",
                     (double)s->setup.bytes_ns, "seed", (json_int_t)t->seed, "requests",
                     (json_int_t)run->trace.n, "skip", (json_int_t)run->skip, "units",
                     units_json(s), "tenants", tenants_json(s));
}

Err chip_run_file_write(const char *path, const ChipScenario *s, const ChipRun *run,
                        const ChipTraffic *traffic, const ArgList *sets,
                        const RecordList *records) {
    return run_file_save(path, header_json(s, run, traffic, sets), records);
}

static const char *layer_name(const void *self, uint32_t tenant, uint32_t layer) {
    const ChipScenario *s = self;
    if (tenant >= s->workload.n || layer >= s->models[tenant].n_layers) return NULL;
    return s->models[tenant].layers[layer];
}

// "simba 0", "simba 1", "eyeriss 0"
static const char **track_names(const ChipScenario *s, Arena *a) {
    const char **names = arena_new(a, const char *, s->setup.n_units);
    uint32_t     n = 0;
    for (uint32_t k = 0; k < s->setup.n_kinds; k++)
        for (uint32_t u = 0; u < s->setup.kinds[k].n_units; u++)
            names[n++] = arena_printf(a, "%s %u", s->setup.kinds[k].name, u);
    return names;
}

Err chip_run_file_trace(const char *path, const ChipScenario *s, const char *policy,
                        const RecordList *records, Arena *scratch) {
    const char *names[CHIP_TENANTS];
    for (uint32_t i = 0; i < s->workload.n; i++) names[i] = s->tenants[i].name;
    Timeline t = {.title = arena_printf(scratch, "%s on %s, mix %s", policy, s->package.name,
                                        s->workload.name),
                  .tenants = names,
                  .n_tenants = s->workload.n,
                  .n_cores = s->setup.n_units,
                  .track_names = track_names(s, scratch),
                  .layer = layer_name,
                  .self = s};
    return run_file_save_trace(path, &t, records, scratch);
}

#include "eval/run_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

Err run_file_save(const char *path, json_t *header, const RecordList *records) {
    if (header == NULL) return err_set(ERR_LIMIT, "no memory for the header of the records");
    Err e = record_save(path, header, records);
    json_decref(header);
    return e;
}

Err run_file_save_trace(const char *path, const Timeline *t, const RecordList *records,
                        Arena *scratch) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = timeline_write(f.out, t, records, scratch);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

json_t *run_file_sets(const ArgList *sets) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < sets->n; i++) json_array_append_new(list, json_string(sets->at[i]));
    return list;
}

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

enum { FILE_BYTES_MAX = 1 << 30 };

static Err write_all(FILE *f, const json_t *options, const JobEventLog *d) {
    json_t *header = json_pack("{s:s,s:s,s:O}", "run", "cluster", "version", COTENANT_VERSION,
                               "options", options);
    if (header == NULL) return err_set(ERR_LIMIT, "no memory for the header of the records");
    int wrong = json_dumpf(header, f, JSON_COMPACT);
    json_decref(header);
    if (wrong != 0) return err_set(ERR_IO, "writing a record failed");
    fputc('\n', f);
    job_event_log_write(d, f);
    return ERR_OK;
}

Err cluster_run_file_write(const char *path, const json_t *options, const JobEventLog *d) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = write_all(f.out, options, d);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

static Err read_header(const char *path, const json_t *header, json_t **options) {
    const char *run;
    TRY(json_get_text(header, "run", &run));
    if (strcmp(run, "cluster") != 0)
        return err_set(ERR_PARSE, "%s: records of a %s, not of a cluster", path, run);
    TRY(json_get_array(header, "options", options));
    json_incref(*options);
    return ERR_OK;
}

Err cluster_run_file_read(const char *path, Arena *a, json_t **options) {
    char   *text;
    size_t  len;
    json_t *header = NULL;
    TRY(file_read(path, FILE_BYTES_MAX, a, &text, &len));
    const char *end = memchr(text, '\n', len);
    TRY(json_parse(path, text, end != NULL ? (size_t)(end - text) : len, &header));
    Err e = read_header(path, header, options);
    json_decref(header);
    return e;
}

Err cluster_run_file_check(const char *path, const json_t *options, const JobEventLog *d,
                           Arena *scratch) {
    char  *was, *is = NULL;
    size_t was_len, is_len = 0;
    TRY(file_read(path, FILE_BYTES_MAX, scratch, &was, &was_len));
    FILE *f = open_memstream(&is, &is_len);
    if (f == NULL) return err_set(ERR_LIMIT, "no memory to compare with %s", path);
    Err  e = write_all(f, options, d);
    bool closed = fclose(f) == 0;
    bool same = closed && is_len == was_len && memcmp(is, was, is_len) == 0;
    free(is);
    TRY(e);
    if (same) return ERR_OK;
    return err_set(ERR_ARG,
                   "%s: the same options give another run now: the trace, the weights or this "
                   "program changed since",
                   path);
}

// cotenant chip explain: one decision of relmas: what it observed, the score of each task and unit,
// and why the chosen ones scored best.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/chip_args.h"
#include "eval/policy_choice.h"
#include "eval/chip_explanation.h"
#include "cli/commands.h"

typedef struct Options {
    ChipArgs    common;
    const char *mix, *policy;
    double      load, bandwidth, at;
    int64_t     seed, decision;
    bool        json;
} Options;

typedef struct Explanation {
    const ChipScenario    *scenario;
    const ChipExplanation *x;
    Arena                 *arena;
} Explanation;

static const char *outcome_name_of(RelmasDecision v) {
    static const char *const names[] = {"starts", "waits", "no bandwidth", "not in time"};
    return names[v];
}

static const char *name_of(const Explanation *s, uint32_t unit) {
    const ChipSetup *setup = &s->scenario->setup;
    uint32_t         first = 0;
    if (unit == CHIP_NONE) return "";
    while (setup->kind_of[first] != setup->kind_of[unit]) first++;
    return arena_printf(s->arena, "%s %u", setup->kinds[setup->kind_of[unit]].name, unit - first);
}

static const char *tenant_of(const Explanation *s, const ExplainedTask *t) {
    return s->scenario->tenants[t->request.tenant].name;
}

static const char *layer_of(const Explanation *s, const ExplainedTask *t) {
    return s->scenario->tenants[t->request.tenant].model->layers[t->layer];
}

static const Column unit_columns[] = {
    {.key = "unit", .head = "unit"},
    {.key = "request", .head = "request"},
    {.key = "free_in_us", .head = "free in", .unit = "us", .decimals = 1},
    {.key = "bytes_ns", .head = "demand", .unit = "B/ns", .decimals = 2},
    {.key = "cap_bytes_ns", .head = "limit", .unit = "B/ns", .decimals = 2},
};

static void fill_units(const Explanation *s, Table *t) {
    table_init(t, s->arena, unit_columns, sizeof unit_columns / sizeof *unit_columns);
    for (uint32_t u = 0; u < s->x->n_units; u++) {
        const ExplainedUnit *unit = &s->x->units[u];
        table_row(t);
        table_text(t, name_of(s, u));
        if (!unit->busy) continue;
        table_int(t, (int64_t)unit->request);
        table_real(t, (double)unit->free_in / 1e3);
        table_real(t, (double)unit->bytes_ns);
        if (isfinite(unit->cap)) table_real(t, (double)unit->cap);
    }
}

static const Column task_columns[] = {
    {.key = "request", .head = "request"},
    {.key = "tenant", .head = "tenant"},
    {.key = "layer", .head = "layer"},
    {.key = "left_ms", .head = "due in", .unit = "ms", .decimals = 2},
    {.key = "rest_ms", .head = "needs", .unit = "ms", .decimals = 2},
    {.key = "slack_ms", .head = "slack", .unit = "ms", .decimals = 2},
    {.key = "says_priority", .head = "priority", .decimals = 3},
    {.key = "says_fit", .head = "price", .decimals = 3},
    {.key = "says_time", .head = "time", .decimals = 3},
    {.key = "says_bytes", .head = "bytes", .decimals = 3},
    {.key = "size", .head = "size", .decimals = 2},
    {.key = "slack", .head = "slack", .decimals = 2},
    {.key = "fair", .head = "fair", .decimals = 2},
    {.key = "learned", .head = "learned", .decimals = 2},
    {.key = "worth", .head = "score", .decimals = 2},
    {.key = "unit", .head = "unit"},
    {.key = "verdict", .head = "verdict"},
};

static void fill_tasks(const Explanation *s, Table *t) {
    table_init(t, s->arena, task_columns, sizeof task_columns / sizeof *task_columns);
    for (uint32_t i = 0; i < s->x->n_tasks; i++) {
        const ExplainedTask *k = &s->x->tasks[i];
        const float output[] = {k->output.priority, k->output.fit, k->output.time, k->output.bytes};
        table_row(t);
        table_int(t, (int64_t)k->request.id);
        table_text(t, tenant_of(s, k));
        table_text(t, layer_of(s, k));
        table_real(t, k->left_ms);
        table_real(t, k->rest_ms);
        table_real(t, k->slack_ms);
        for (uint32_t j = 0; j < RELMAS_OUTPUTS; j++) {
            if (k->seen)
                table_real(t, (double)output[j]);
            else
                table_missing(t);
        }
        for (uint32_t j = 0; j < RELMAS_TASK_TERMS; j++) table_real(t, (double)k->parts[j] + 0.0);
        table_real(t, (double)k->score);
        table_text(t, name_of(s, k->unit));
        table_text(t, outcome_name_of(k->outcome));
    }
}

static const Column pair_columns[] = {
    {.key = "request", .head = "request"},
    {.key = "tenant", .head = "tenant"},
    {.key = "unit", .head = "unit"},
    {.key = "free_in_us", .head = "free in", .unit = "us", .decimals = 1},
    {.key = "fit", .head = "price", .decimals = 2},
    {.key = "time", .head = "time", .decimals = 2},
    {.key = "wait", .head = "wait", .decimals = 2},
    {.key = "learned", .head = "learned", .decimals = 2},
    {.key = "score", .head = "score", .decimals = 2},
    {.key = "chosen", .head = "chosen"},
};

static void fill_pairs(const Explanation *s, Table *t) {
    table_init(t, s->arena, pair_columns, sizeof pair_columns / sizeof *pair_columns);
    for (uint32_t i = 0; i < s->x->n_pairs; i++) {
        const ExplainedPair *p = &s->x->pairs[i];
        const ExplainedTask *k = &s->x->tasks[p->task];
        table_row(t);
        table_int(t, (int64_t)k->request.id);
        table_text(t, tenant_of(s, k));
        table_text(t, name_of(s, p->unit));
        table_real(t, (double)p->wait_ns / 1e3);
        for (uint32_t j = RELMAS_TASK_TERMS; j < RELMAS_TERMS; j++)
            table_real(t, (double)p->parts[j] + 0.0);
        table_real(t, (double)(k->score + p->fit));
        table_text(t, k->unit == p->unit ? outcome_name_of(k->outcome) : "");
    }
}

// "size +3.1, learned -0.4": at most three terms, the largest difference first.
static const char *differences(const Explanation *s, const float *a, const float *b, uint32_t from,
                               uint32_t to) {
    char *text = arena_str(s->arena, "");
    bool  listed[RELMAS_TERMS] = {0};
    for (uint32_t n = 0; n < 3; n++) {
        uint32_t most = to;
        for (uint32_t k = from; k < to; k++)
            if (!listed[k] && (most == to || fabsf(a[k] - b[k]) > fabsf(a[most] - b[most])))
                most = k;
        if (most == to || fabsf(a[most] - b[most]) < 0.005f) break;
        listed[most] = true;
        text = arena_printf(s->arena, "%s%s%s %+.2f", text, n > 0 ? ", " : "",
                            relmas_term_name((RelmasTerm)most), (double)(a[most] - b[most]));
    }
    return *text != '\0' ? text : "no difference of 0.01 or more";
}

static const ExplainedPair *second_unit(const Explanation *s, uint32_t task) {
    const ExplainedPair *best = NULL;
    for (uint32_t i = 0; i < s->x->n_pairs; i++) {
        const ExplainedPair *p = &s->x->pairs[i];
        if (p->task != task || p->unit == s->x->tasks[task].unit) continue;
        if (best == NULL || p->fit > best->fit) best = p;
    }
    return best;
}

// Why a task ranks before the next one.
static const char *why_task(const Explanation *s, uint32_t i) {
    const ExplainedTask *t = &s->x->tasks[i], *next = t + 1;
    if (i + 1 == s->x->n_tasks) return "no other task waits";
    return arena_printf(s->arena, "ranks before request %" PRIu64 " (%s), %.2f to %.2f: %s",
                        next->request.id, tenant_of(s, next), (double)t->score, (double)next->score,
                        differences(s, t->parts, next->parts, 0, RELMAS_TASK_TERMS));
}

static const char *why_unit(const Explanation *s, uint32_t i) {
    const ExplainedPair *won = chip_explanation_pair(s->x, i, s->x->tasks[i].unit);
    const ExplainedPair *other = second_unit(s, i);
    if (won == NULL || other == NULL) return "no other unit would be in time";
    return arena_printf(s->arena, "%s scores higher than %s, %.2f to %.2f: %s",
                        name_of(s, won->unit), name_of(s, other->unit), (double)won->fit + 0.0,
                        (double)other->fit + 0.0,
                        differences(s, won->parts, other->parts, RELMAS_TASK_TERMS, RELMAS_TERMS));
}

static void print_why(const Explanation *s) {
    for (uint32_t i = 0; i < s->x->n_tasks; i++) {
        const ExplainedTask *t = &s->x->tasks[i];
        if (t->outcome == RELMAS_NO_UNIT) continue;
        printf("request %" PRIu64 " (%s) %s%s%s\n  %s\n  %s\n", t->request.id, tenant_of(s, t),
               t->outcome == RELMAS_AWAIT_BANDWIDTH ? "has no bandwidth left on"
               : t->outcome == RELMAS_AWAIT_UNIT    ? "waits for"
                                                    : "starts on",
               " ", name_of(s, t->unit), why_task(s, i), why_unit(s, i));
    }
}

static Err print_explanation(const Explanation *s) {
    const ChipExplanation *x = s->x;
    Table                  units, tasks, pairs;
    printf("decision %" PRIu64 " at %.3f ms: %" PRIu64
           " tasks wait, %u of %u units are free, %.2f of "
           "%.2f bytes/ns are in demand\n\n",
           x->decision, (double)x->now / 1e6, x->waiting, x->n_free, x->n_units, (double)x->demand,
           (double)s->scenario->setup.bytes_ns);
    fill_units(s, &units);
    fill_tasks(s, &tasks);
    fill_pairs(s, &pairs);
    TRY(table_print(&units, stdout));
    puts("\ntasks by score, with the outputs of the network (blank: not in its window yet)\n");
    TRY(table_print(&tasks, stdout));
    puts("\nunits for each task; a task that waits for a busy unit reserves it before later "
         "tasks\n");
    TRY(table_print(&pairs, stdout));
    puts("");
    print_why(s);
    return ERR_OK;
}

static json_t *window_json(const ChipExplanation *x) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < x->n_seen; i++) {
        json_t *row = json_object();
        (void)json_object_set_new(row, "request", json_integer((json_int_t)x->seen[i]));
        for (uint32_t f = 0; f < RELMAS_FEATURES; f++)
            (void)json_object_set_new(
                row, relmas_feature_name(f),
                json_real((double)x->features[(size_t)i * RELMAS_FEATURES + f]));
        (void)json_array_append_new(all, row);
    }
    return all;
}

static json_t *why_json(const Explanation *s) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->x->n_tasks; i++) {
        const ExplainedTask *t = &s->x->tasks[i];
        if (t->outcome != RELMAS_START) continue;
        json_t *one = json_object();
        (void)json_object_set_new(one, "request", json_integer((json_int_t)t->request.id));
        (void)json_object_set_new(one, "unit", json_string(name_of(s, t->unit)));
        (void)json_object_set_new(one, "task", json_string(why_task(s, i)));
        (void)json_object_set_new(one, "choice", json_string(why_unit(s, i)));
        (void)json_array_append_new(all, one);
    }
    return all;
}

static Err print_json(const Explanation *s) {
    const ChipExplanation *x = s->x;
    Table                  tables[3];
    const char *const      names[3] = {"units", "tasks", "pairs"};
    json_t                *doc = json_object();
    Err                    e = ERR_OK;
    fill_units(s, &tables[0]);
    fill_tasks(s, &tables[1]);
    fill_pairs(s, &tables[2]);
    (void)json_object_set_new(doc, "decision", json_integer((json_int_t)x->decision));
    (void)json_object_set_new(doc, "at_us", json_real((double)x->now / 1e3));
    (void)json_object_set_new(doc, "waiting", json_integer((json_int_t)x->waiting));
    (void)json_object_set_new(doc, "demand_bytes_ns", json_real((double)x->demand));
    (void)json_object_set_new(doc, "bytes_ns", json_real((double)s->scenario->setup.bytes_ns));
    for (uint32_t i = 0; i < 3 && e == ERR_OK; i++) {
        json_t *rows = NULL;
        e = table_json(&tables[i], &rows);
        if (e == ERR_OK) (void)json_object_set_new(doc, names[i], rows);
    }
    (void)json_object_set_new(doc, "window", window_json(x));
    (void)json_object_set_new(doc, "why", why_json(s));
    if (e == ERR_OK) e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

static Err explain(const void *options, Arena *a) {
    const Options      *o = options;
    PolicyChoice        choice;
    ChipScenarioOptions so;
    ChipScenario        scenario;
    ChipTrace           trace;
    ChipExplanation    *x = arena_new(a, ChipExplanation, 1);
    DecisionQuery       query = {(uint64_t)o->decision, (TimeNs)(o->at * 1e3)};
    if (strcmp(o->policy, "relmas") != 0)
        return err_set(ERR_ARG, "--policy %s: only decisions of relmas can be explained",
                       o->policy);
    TRY(policy_choice_read(TIER_CHIP, "relmas", &o->common.sets, a, &choice));
    TRY(chip_args_scenario(&o->common, o->mix, o->bandwidth, &so));
    TRY(chip_scenario_open(&so, a, &scenario));
    ChipTraffic traffic = chip_args_traffic(&o->common, o->load, (uint64_t)o->seed);
    TRY(chip_scenario_trace(&scenario, &traffic, a, &trace));
    ChipRun run = chip_scenario_run(&scenario, trace);
    run.policy = choice.policy;
    run.settings = choice.settings;
    run.seed = (uint64_t)o->seed;
    TRY(chip_choice_load(&choice, &run.setup, a, &run.loaded));
    TRY(chip_explanation_find(&run, query, a, x));
    Explanation s = {&scenario, x, a};
    return o->json ? print_json(&s) : print_explanation(&s);
}

int cmd_chip_explain(const Command *c, int argc, char **argv) {
    Options o = {.mix = "mixed", .policy = "relmas", .load = 1, .seed = 101};
    ArgRow  rows[CHIP_ARG_ROWS + 8] = {
         {"mix", ARG_TEXT, &o.mix, "NAME", "a workload (default mixed)", 0, 0},
         {"load", ARG_REAL, &o.load, "L",
          "offered load; 1: what the package can just answer (default 1)", 0, 1000},
         {"bandwidth", ARG_REAL, &o.bandwidth, "B",
          "memory bandwidth in bytes per cycle (default: the package's)", 0, 1000000},
         {"seed", ARG_INT, &o.seed, "S", "seed of the requests (default 101)", 1, INT32_MAX},
         {"at", ARG_REAL, &o.at, "US", "earliest time", 0, 1000000000},
         {"decision", ARG_INT, &o.decision, "N",
          "the N-th decision (default: the first with a choice)", 1, INT32_MAX},
         {"policy", ARG_TEXT, &o.policy, "NAME", "policy (only relmas)", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    chip_args_rows(&o.common, rows + 8);
    int code = args_parse(c, rows, CHIP_ARG_ROWS + 8, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    return command_run(explain, &o);
}

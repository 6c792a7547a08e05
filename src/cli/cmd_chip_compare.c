// Policies on packages of accelerators against each other, cell by cell, in tables, as JSON, on a
// page.
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/chip_args.h"
#include "eval/chip_compare.h"
#include "eval/chip_run_file.h"
#include "eval/chip_sweep.h"
#include "cli/commands.h"
#include "base/parallel_for.h"
#include "base/option_list.h"
#include "policy/policies.h"

enum { FIRST_SEED = 101 };  // settings of policies were chosen on lower ones
enum { OWN_ROWS = 13, REQUESTS = 200, RUNS_MAX = 10000000 };

typedef struct Options {
    ChipArgs    common;
    const char *mix, *load, *bandwidth, *policies, *champion, *page, *trace;
    int64_t     traces, seed, threads;
    bool        json, measure, sweep;
} Options;

static Err read_rules(const Options *o, Arena *a, ChipCompareParams *r) {
    static const double own = 0;
    const char         *chips = o->common.chip != NULL ? o->common.chip : CHIP_SCENARIO_PACKAGE;
    *r = (ChipCompareParams){.bandwidths = &own,
                             .n_bandwidths = 1,
                             .burst = o->common.burst,
                             .requests = (uint32_t)o->common.requests,
                             .traces = (uint32_t)o->traces,
                             .first_seed = (uint64_t)o->seed,
                             .measure = o->measure,
                             .threads = parallel_threads(o->threads)};
    TRY(option_list_words("chip", chips, a, &r->chips, &r->n_chips));
    TRY(option_list_words("mix", o->mix, a, &r->mixes, &r->n_mixes));
    TRY(option_list_numbers("load", o->load, 0.001, 1000, a, &r->loads, &r->n_loads));
    if (o->bandwidth != NULL)
        TRY(option_list_numbers("bandwidth", o->bandwidth, 0.001, 1e6, a, &r->bandwidths,
                                &r->n_bandwidths));
    return chip_args_stage(&o->common, NULL, 0, &r->stage);
}

static Err check_size(const ChipCompareParams *r, uint32_t n_policies) {
    uint64_t cells = (uint64_t)r->n_chips * r->n_mixes * r->n_loads * r->n_bandwidths;
    if (cells * n_policies * r->traces <= RUNS_MAX) return ERR_OK;
    return err_set(ERR_ARG, "%llu cells of %u policies on %u traces are more than %d runs",
                   (unsigned long long)cells, n_policies, r->traces, RUNS_MAX);
}

static Err save_page(const Options *o, const Match *m, Arena *a) {
    AtomicFile f;
    Page       p;
    TRY(file_begin(&f, o->page));
    page_begin(&p, f.out, a, "Policies on packages of unlike accelerators");
    Err e = match_page(m, a, &p);
    if (e == ERR_OK) e = page_end(&p);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

static Err tell(const Options *o, const Match *m, Arena *a) {
    json_t *doc = NULL;
    if (o->page != NULL) TRY(save_page(o, m, a));
    if (!o->json) return match_print(m, a, stdout);
    TRY(match_json(m, a, &doc));
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

// The champion, or the first policy without one, in the first cell on the first trace.
static Err trace_first(const Options *o, const ChipCompareParams *r, const ChipChoices *c,
                       Arena *a) {
    uint32_t   who = 0;
    RecordList records = {.arena = a};
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->at[i].policy->name, o->champion) == 0) who = i;
    ChipScenarioOptions so = r->stage;
    ChipTraffic         t = {r->loads[0], r->burst, r->requests, r->first_seed};
    ChipScenario        stage;
    ChipTrace           trace;
    ChipResult          result;
    so.package = r->chips[0];
    so.workload = r->mixes[0];
    so.bandwidth = r->bandwidths[0];
    TRY(chip_scenario_open(&so, a, &stage));
    TRY(chip_scenario_trace(&stage, &t, a, &trace));
    ChipRun run = chip_scenario_run(&stage, trace);
    run.policy = c->at[who].policy;
    run.settings = c->at[who].settings;
    run.seed = t.seed;
    run.records = record_list(&records);
    TRY(chip_choice_load(&c->at[who], &stage.setup, a, &run.loaded));
    TRY(chip_simulate(&run, a, &result));
    return chip_run_file_trace(o->trace, &stage, run.policy->name, &records, a);
}

static const ChipChoice *swept(const Options *o, const ChipChoices *c) {
    for (uint32_t i = 0; i < c->n && (o->sweep || o->page != NULL); i++)
        if (chip_sweep_fits(&c->at[i])) return &c->at[i];
    return NULL;
}

static Err compare(const Options *o, Arena *a) {
    ChipCompareParams r;
    ChipChoices       c;
    Progress          p;
    Match             m = {.champion = o->champion};
    bool              show = term_is_tty(stderr);
    TRY(read_rules(o, a, &r));
    TRY(chip_choice_read(o->policies, &o->common.sets, a, &c));
    if (policies_chip_find(o->champion) == NULL)
        return err_set(ERR_ARG, "--champion %s: there is no such policy; see 'chip policies'",
                       o->champion);
    TRY(check_size(&r, c.n));
    const ChipChoice *of = swept(o, &c);
    if (o->sweep && of == NULL)
        return err_set(ERR_ARG, "--sweep: no policy that takes part has a network");
    if (show)
        progress_begin(&p, stderr, clock_monotonic(), "comparing",
                       (int64_t)chip_compare_steps(&r, c.n) +
                           (of != NULL ? chip_sweep_steps(&r) : 0));
    Err e = chip_compare_run(&r, &c, show ? &p : NULL, a, &m);
    if (e == ERR_OK && of != NULL) e = chip_sweep_run(&r, of, show ? &p : NULL, a, &m);
    if (show) progress_end(&p);
    if (e == ERR_OK && o->trace != NULL) e = trace_first(o, &r, &c, a);
    return e == ERR_OK ? tell(o, &m, a) : e;
}

static int run_command(const Options *o) {
    Arena a = {0};
    Err   e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = compare(o, &a);
    int code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

int cmd_chip_compare(const Command *c, int argc, char **argv) {
    Options o = {.common = {.requests = REQUESTS},
                 .mix = "light,heavy,mixed",
                 .load = "0.6,1.0",
                 .policies = "all",
                 .champion = "relmas",
                 .traces = 20,
                 .seed = FIRST_SEED};
    ArgRow  rows[OWN_ROWS + CHIP_ARG_ROWS] = {
         {"mix", ARG_TEXT, &o.mix, "LIST",
          "of light, heavy, mixed and networks parted by + (default: those three)", 0, 0},
         {"load", ARG_TEXT, &o.load, "LIST", "1: what the package can just answer (default 0.6,1.0)",
          0, 0},
         {"bandwidth", ARG_TEXT, &o.bandwidth, "LIST",
          "of the memory, bytes a cycle (default: the package's)", 0, 0},
         {"policies", ARG_TEXT, &o.policies, "LIST", "such as edf,relmas,oracle (default all)", 0,
          0},
         {"champion", ARG_TEXT, &o.champion, "NAME",
          "who is compared with the best of the others (default relmas)", 0, 0},
         {"traces", ARG_INT, &o.traces, "N", "of each cell (default 20)", 1, MATCH_TRACES},
         {"seed", ARG_INT, &o.seed, "S", "of the first trace (default 101)", 0, INT32_MAX},
         {"threads", ARG_INT, &o.threads, "N", "runs at once (default: all cores)", 1, 256},
         {"measure", ARG_FLAG, &o.measure, NULL, "also what decisions take on this machine", 0, 0},
         {"sweep", ARG_FLAG, &o.sweep, NULL, "energy of the policy by hidden size and T_s", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
         {"o", ARG_TEXT, &o.page, "FILE.html", "a page with the charts", 0, 0},
         {"trace", ARG_TEXT, &o.trace, "FILE", "the champion's first run for ui.perfetto.dev", 0, 0},
    };
    chip_args_rows(&o.common, rows + OWN_ROWS);
    for (ArgRow *row = rows + OWN_ROWS; row < rows + sizeof rows / sizeof *rows; row++) {
        if (row->to == &o.common.chip) {
            row->arg = "LIST";
            row->help = "of packages and YAML files (default 4+4)";
        }
        if (row->to == &o.common.requests) row->help = "of each run (default 200)";
    }
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : run_command(&o);
}

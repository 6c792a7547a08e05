// Policies against each other: what rate each carries on each mix, in a table, as JSON, on a page.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/term.h"
#include "cli/commands.h"
#include "base/parallel_for.h"
#include "eval/run_file.h"
#include "eval/node_compare.h"

enum { MIXES_MAX = 8, SEEDS_MAX = 1000 };
enum { FIRST_SEED = 101 };  // settings of policies were chosen on lower ones

typedef struct Options {
    NodeScenarioOptions scenario;
    const char         *mix, *policies, *baseline, *page, *trace;
    ArgList             sets;
    int64_t             seeds, seed, requests, threads;
    bool                live, json;
    NodeCompareParams   rules;
} Options;

static uint32_t list_mixes(const char *mix, const char **out) {
    uint32_t n = 0;
    out[0] = mix;
    if (strcmp(mix, "all") != 0) return 1;
    for (; mix_name(n) != NULL && n < MIXES_MAX; n++) out[n] = mix_name(n);
    return n;
}

// The best policy of a mix at the calm load, on the first seed.
static Err trace_best(const Options *o, const NodeScenario *s, const NodeChoices *c,
                      const ContestMix *m, Arena *a) {
    RecordList records = {.arena = a};
    NodeRun    run;
    NodeResult result;
    uint32_t   best = 0;
    for (uint32_t i = 1; i < m->n_entries; i++)
        if (m->entries[i].qps.mean > m->entries[best].qps.mean) best = i;
    NodeTraffic r = {.choice = c->at[best],
                     .rate = o->rules.calm * m->entries[best].qps.mean,
                     .seed = o->rules.first_seed,
                     .requests = o->rules.requests,
                     .records = record_list(&records)};
    if (!(r.rate > 0)) return err_set(ERR_INVALID, "no policy meets the target: nothing to trace");
    TRY(node_scenario_run(s, &r, a, &run, &result));
    return run_file_trace(o->trace, s, run.policy->name, &records, a);
}

static Err one_mix(const Options *o, const char *mix, const NodeChoices *c, Progress *p, Arena *a,
                   const char **machine, ContestMix *out) {
    NodeScenarioOptions so = o->scenario;
    NodeScenario        s = {0};
    so.mix = mix;
    TRY(node_scenario_open(&so, a, &s));
    *machine = arena_str(a, s.machine);
    Err e = node_compare_run(&s, c, o->baseline, &o->rules, p, a, out);
    if (e == ERR_OK && o->trace != NULL) {
        e = trace_best(o, &s, c, out, a);
    }
    node_scenario_close(&s);
    return e;
}

static Err save_page(const Options *o, const Contest *c, Arena *a) {
    AtomicFile f;
    Page       p;
    TRY(file_begin(&f, o->page));
    page_begin(&p, f.out, a, "Policies on a shared node");
    Err e = contest_page(c, a, &p);
    if (e == ERR_OK) e = page_end(&p);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

static Err tell(const Options *o, const Contest *c, Arena *a) {
    json_t *doc = NULL;
    if (o->page != NULL) TRY(save_page(o, c, a));
    if (!o->json) return contest_print(c, a, stdout);
    TRY(contest_json(c, &doc));
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

static Err compare(Options *o, Arena *a) {
    NodeChoices c;
    const char *mixes[MIXES_MAX];
    uint32_t    n = list_mixes(o->mix, mixes);
    Progress    p;
    Mix         known;
    bool        show = term_is_tty(stderr);
    Contest     contest = {.baseline = o->baseline,
                           .target = o->rules.target,
                           .calm = o->rules.calm,
                           .equal_share = {o->rules.equal_share[0], o->rules.equal_share[1]},
                           .seeds = o->rules.seeds,
                           .mixes = arena_new(a, ContestMix, n),
                           .n_mixes = n};
    for (uint32_t i = 0; i < n; i++) TRY(mix_find(mixes[i], MIX_SERVER, &known));
    TRY(node_choice_read(o->policies, &o->sets, a, &c));
    if (show)
        progress_begin(&p, stderr, clock_monotonic(), "comparing",
                       (int64_t)n * node_compare_steps(c.n, &o->rules));
    Err e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < n; i++) {
        e = one_mix(o, mixes[i], &c, show ? &p : NULL, a, &contest.machine, &contest.mixes[i]);
        o->trace = NULL;  // of the first mix
    }
    if (show) progress_end(&p);
    return e == ERR_OK ? tell(o, &contest, a) : e;
}

static int run_command(Options *o) {
    Arena a = {0};
    if (o->live) o->scenario.machine = NULL;
    o->rules.seeds = (uint32_t)o->seeds;
    o->rules.first_seed = (uint64_t)o->seed;
    o->rules.requests = (uint32_t)o->requests;
    o->rules.threads = parallel_threads(o->threads);
    Err e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = compare(o, &a);
    int code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

int cmd_node_compare(const Command *c, int argc, char **argv) {
    Options o = {
        .scenario = {.machine = "server64"},
        .mix = "light",
        .policies = "all",
        .baseline = "planaria",
        .seeds = 5,
        .seed = FIRST_SEED,
        .rules = {.target = 0.95, .calm = 0.8, .equal_share = {0.8, 1}, .tolerance = 0.02}};
    const ArgRow rows[] = {
        {"live", ARG_FLAG, &o.live, NULL, "on this machine, in real time", 0, 0},
        {"machine", ARG_TEXT, &o.scenario.machine, "NAME",
         "a simulated machine or a YAML file (default server64)", 0, 0},
        {"mix", ARG_TEXT, &o.mix, "NAME", "light, medium, heavy, mix or all (default light)", 0, 0},
        {"policies", ARG_TEXT, &o.policies, "LIST", "such as fcfs,slack (default all)", 0, 0},
        {"baseline", ARG_TEXT, &o.baseline, "NAME",
         "what others are compared with (default planaria)", 0, 0},
        {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE", "a setting of a policy", 0, 0},
        {"seeds", ARG_INT, &o.seeds, "N", "arrivals that are tried (default 5)", 1, SEEDS_MAX},
        {"seed", ARG_INT, &o.seed, "S", "the first of them (default 101)", 1, INT32_MAX},
        {"requests", ARG_INT, &o.requests, "N",
         "of each run (default 2000; live: those of 5 seconds)", 20, 100000000},
        {"slack", ARG_REAL, &o.scenario.slack, "K", "QoS: K times the latency alone on all cores",
         0, 1000000},
        {"threads", ARG_INT, &o.threads, "N", "simulated runs at once (default: all cores)", 1,
         CORES_MAX},
        {"store", ARG_TEXT, &o.scenario.store, "FILE", "profile store, live", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
        {"o", ARG_TEXT, &o.page, "FILE.html", "a page with the charts", 0, 0},
        {"trace", ARG_TEXT, &o.trace, "FILE", "a trace of the best policy for ui.perfetto.dev", 0,
         0},
    };
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : run_command(&o);
}
